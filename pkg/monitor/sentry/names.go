// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sentry

import (
	"path"

	"gvisor.dev/gvisor/pkg/abi/linux"
	"gvisor.dev/gvisor/pkg/hostarch"
	"gvisor.dev/gvisor/pkg/sentry/kernel"
	"gvisor.dev/gvisor/pkg/sentry/vfs"

	"github.com/fumehood/fumehood/pkg/monitor/wire"
)

// pid is the id of a task's process as the sandbox's init and the supervisor see it.
func pid(t *kernel.Task) int32 {
	return int32(t.Kernel().RootPIDNamespace().IDOfThreadGroup(t.ThreadGroup()))
}

// parent returns the process that t's was started by, or was left to.
func parent(t *kernel.Task) (int32, *kernel.Task) {
	p := t.Parent()
	if p == nil {
		return 0, nil
	}
	return pid(p), p
}

// program is the path, as ctx would name it, of the file that t's process last began
// with.
func program(ctx *kernel.Task, t *kernel.Task) string {
	var f *vfs.FileDescription
	t.WithMuLocked(func(t *kernel.Task) {
		if m := t.MemoryManager(); m != nil { // it has none when it is ending
			f = m.Executable()
		}
	})
	if f == nil {
		return ""
	}
	defer f.DecRef(ctx)
	return wire.Cut(f.MappedName(ctx), wire.MaxPath)
}

// outside reports whether t has mounts or a root of its own, so that its names may
// be of anything.
func outside(t *kernel.Task) bool {
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

// cwd is t's working directory.
func cwd(t *kernel.Task) string {
	root := t.FSContext().RootDirectory()
	defer root.DecRef(t)
	wd := t.FSContext().WorkingDirectory()
	defer wd.DecRef(t)
	name, _ := t.Kernel().VFS().PathnameWithDeleted(t, root, wd)
	return wire.Cut(name, wire.MaxPath)
}

// named is the path that the argument at of a call names, relative to the folder dir.
// dir and at are what the call was given; a path that cannot be read is "".
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

func folder(t *kernel.Task, dir int32) string {
	if dir == linux.AT_FDCWD {
		return cwd(t)
	}
	return opened(t, dir)
}

// opened is the path of an open file.
func opened(t *kernel.Task, number int32) string {
	f := t.GetFile(number)
	if f == nil {
		return ""
	}
	defer f.DecRef(t)
	return f.MappedName(t)
}
