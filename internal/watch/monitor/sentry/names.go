// SPDX-License-Identifier: Apache-2.0

package sentry

import (
	"path"
	"strconv"
	"strings"

	"gvisor.dev/gvisor/pkg/abi/linux"
	"gvisor.dev/gvisor/pkg/hostarch"
	"gvisor.dev/gvisor/pkg/sentry/kernel"
	"gvisor.dev/gvisor/pkg/sentry/vfs"

	"github.com/fumehood/fumehood/internal/watch/monitor/wire"
)

// processID returns the id of a task's process as the sandbox's init and the supervisor see
// it.
func processID(t *kernel.Task) int32 {
	return int32(t.Kernel().RootPIDNamespace().IDOfThreadGroup(t.ThreadGroup()))
}

// parentProcess returns the process that started t's process, or that it was reparented to.
func parentProcess(t *kernel.Task) (int32, *kernel.Task) {
	p := t.Parent()
	if p == nil {
		return 0, nil
	}
	return processID(p), p
}

// programPath returns the path, as seen by ctx, of the file that t's process last
// executed.
func programPath(ctx *kernel.Task, t *kernel.Task) string {
	f := programFile(t)
	if f == nil {
		return ""
	}
	defer f.DecRef(ctx)
	return wire.Truncate(f.MappedName(ctx), wire.MaxPath)
}

// programFile returns the file that t's process last executed, with a reference, or nil if t is ending.
func programFile(t *kernel.Task) (f *vfs.FileDescription) {
	t.WithMuLocked(func(t *kernel.Task) {
		if m := t.MemoryManager(); m != nil {
			f = m.Executable()
		}
	})
	return f
}

// hasOwnFileTree reports whether t has its own mounts or root, so that its names may mean
// other files.
func (g *execGate) hasOwnFileTree(t *kernel.Task) bool {
	if g.pod != nil {
		return g.pod.hasOwnFileTree(t)
	}
	first := t.Kernel().GlobalInit().Leader()
	if first == nil || t.MountNamespace() != first.MountNamespace() {
		return true
	}
	ours := first.FSContext()
	if ours == nil {
		return true
	}
	want := ours.RootDirectory()
	defer want.DecRef(t)
	got := t.FSContext().RootDirectory()
	defer got.DecRef(t)
	return got != want
}

// workingDir returns t's working directory, of any length.
func workingDir(t *kernel.Task) string {
	root := t.FSContext().RootDirectory()
	defer root.DecRef(t)
	wd := t.FSContext().WorkingDirectory()
	defer wd.DecRef(t)
	name, _ := t.Kernel().VFS().PathnameWithDeleted(t, root, wd)
	return name
}

// resolveArgument returns the path in the call's argument at, resolved relative to the
// directory descriptor dir; "" if the path cannot be read.
func resolveArgument(t *kernel.Task, dir int32, at uint64) string {
	name, err := t.CopyInString(hostarch.Addr(at), wire.MaxPath)
	if err != nil {
		return ""
	}
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(dirPath(t, dir), name)
}

// askedPath returns the path name that was passed to execve, absolute and without "." and "..".
// execveat's descriptor is in the form /dev/fd/NUMBER, or that with a path below it.
func askedPath(t *kernel.Task, name string) string {
	if rest, ok := strings.CutPrefix(name, "/dev/fd/"); ok {
		number, below, _ := strings.Cut(rest, "/")
		if n, err := strconv.ParseInt(number, 10, 32); err == nil {
			name = path.Join(openFilePath(t, int32(n)), below)
		}
	}
	if !path.IsAbs(name) {
		name = path.Join(workingDir(t), name)
	}
	return wire.Truncate(path.Clean(name), wire.MaxPath)
}

func dirPath(t *kernel.Task, dir int32) string {
	if dir == linux.AT_FDCWD {
		return workingDir(t)
	}
	return openFilePath(t, dir)
}

// openFilePath returns the path of an open file.
func openFilePath(t *kernel.Task, number int32) string {
	f := t.GetFile(number)
	if f == nil {
		return ""
	}
	defer f.DecRef(t)
	return f.MappedName(t)
}
