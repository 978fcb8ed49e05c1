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

// pid returns the id of a task's process as the sandbox's init and the supervisor see
// it.
func pid(t *kernel.Task) int32 {
	return int32(t.Kernel().RootPIDNamespace().IDOfThreadGroup(t.ThreadGroup()))
}

// parent returns the process that started t's process, or that it was reparented to.
func parent(t *kernel.Task) (int32, *kernel.Task) {
	p := t.Parent()
	if p == nil {
		return 0, nil
	}
	return pid(p), p
}

// program returns the path, as seen by ctx, of the file that t's process last
// executed.
func program(ctx *kernel.Task, t *kernel.Task) string {
	f := running(t)
	if f == nil {
		return ""
	}
	defer f.DecRef(ctx)
	return wire.Cut(f.MappedName(ctx), wire.MaxPath)
}

// running returns the file that t's process last executed, with a reference, or nil if t is ending.
func running(t *kernel.Task) (f *vfs.FileDescription) {
	t.WithMuLocked(func(t *kernel.Task) {
		if m := t.MemoryManager(); m != nil {
			f = m.Executable()
		}
	})
	return f
}

// outside reports whether t has its own mounts or root, so that its names may mean
// other files.
func (g *gate) outside(t *kernel.Task) bool {
	if g.pod != nil {
		return g.pod.outside(t)
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

// cwd returns t's working directory, of any length.
func cwd(t *kernel.Task) string {
	root := t.FSContext().RootDirectory()
	defer root.DecRef(t)
	wd := t.FSContext().WorkingDirectory()
	defer wd.DecRef(t)
	name, _ := t.Kernel().VFS().PathnameWithDeleted(t, root, wd)
	return name
}

// named returns the path in the call's argument at, resolved relative to the
// directory descriptor dir; "" if the path cannot be read.
func named(t *kernel.Task, dir int32, at uint64) string {
	name, err := t.CopyInString(hostarch.Addr(at), wire.MaxPath)
	if err != nil {
		return ""
	}
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(folder(t, dir), name)
}

// askedPath returns the path name that was passed to execve, absolute and without "." and "..".
// execveat's descriptor is in the form /dev/fd/NUMBER, or that with a path below it.
func askedPath(t *kernel.Task, name string) string {
	if rest, ok := strings.CutPrefix(name, "/dev/fd/"); ok {
		number, below, _ := strings.Cut(rest, "/")
		if n, err := strconv.ParseInt(number, 10, 32); err == nil {
			name = path.Join(opened(t, int32(n)), below)
		}
	}
	if !path.IsAbs(name) {
		name = path.Join(cwd(t), name)
	}
	return wire.Cut(path.Clean(name), wire.MaxPath)
}

func folder(t *kernel.Task, dir int32) string {
	if dir == linux.AT_FDCWD {
		return cwd(t)
	}
	return opened(t, dir)
}

// opened returns the path of an open file.
func opened(t *kernel.Task, number int32) string {
	f := t.GetFile(number)
	if f == nil {
		return ""
	}
	defer f.DecRef(t)
	return f.MappedName(t)
}
