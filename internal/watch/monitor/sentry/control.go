// SPDX-License-Identifier: Apache-2.0

package sentry

import (
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/abi/linux"
	"gvisor.dev/gvisor/pkg/errors/linuxerr"
	"gvisor.dev/gvisor/pkg/fspath"
	"gvisor.dev/gvisor/pkg/sentry/arch"
	"gvisor.dev/gvisor/pkg/sentry/kernel"
	"gvisor.dev/gvisor/pkg/sentry/socket"
	syscalls "gvisor.dev/gvisor/pkg/sentry/syscalls/linux"
	"gvisor.dev/gvisor/pkg/sentry/vfs"

	"github.com/fumehood/fumehood/internal/watch/monitor/calls"
	"github.com/fumehood/fumehood/internal/watch/monitor/wire"
)

// The control places are the directories of the workspace that control git and the code host.
// A command that may not run the repository's code changes nothing in them, whatever option,
// archive, script, link or mount names them: only git itself does, when it adds, commits or checks
// out, and it names them without a link. A .git elsewhere (of a copy, or a nested repository) is not
// one of them: what it names starts only where the repository's code may. The files are compared, not names, so
// that it does not matter where a process has mounted them.
//
// The path of each change is followed before the call, and no other name changes meanwhile. An
// opened file is compared again afterwards. Between the two, another process of the same command
// could exchange a link, or another thread of the process the text of the path: a file may be made,
// emptied or renamed then.
var controlPlaces = []string{".git", ".github"}

// changing are the calls that change names, or open files for writing.
var changing = changingCalls()

// A change is one of them.
type change struct{ calls.Call }

func changingCalls() map[string]change {
	all := map[string]change{}
	add := func(dir, at int, names ...string) {
		for _, name := range names {
			all[name] = change{calls.Call{Name: name, Class: calls.Mode, Dir: dir, Path: at, ToDir: calls.None,
				To: calls.None}}
		}
	}
	add(calls.None, 0, "truncate", "utime", "utimes", "setxattr", "lsetxattr", "removexattr", "lremovexattr")
	add(0, 1, "futimesat", "utimensat")
	add(0, calls.None, "fsetxattr", "fremovexattr")
	for _, c := range calls.Table {
		switch c.Class {
		case calls.Open, calls.Make, calls.Remove, calls.Rename, calls.Link, calls.Symlink, calls.Mode:
			all[c.Name] = change{c}
		}
	}
	return all
}

// makeCall makes the call, unless it would change a control place that t must not change.
func (c change) makeCall(g *execGate, t *kernel.Task, args arch.SyscallArguments, own call) (uintptr, error) {
	if g.pod != nil || g.lineages.generationOf(t.ThreadGroup()).control ||
		c.Class == calls.Open && !c.mayWrite(t, args) {
		result, _, err := own()
		return result, err
	}
	if c.Class != calls.Open { // which may wait for another process, and is followed again
		g.changes.Lock()
		defer g.changes.Unlock()
	}
	paths := [][2]int{{c.Dir, c.Path}}
	if c.Class == calls.Rename || c.Class == calls.Link {
		paths = append(paths, [2]int{c.ToDir, c.To})
	}
	git, named := g.isGit(t), ""
	for i, arguments := range paths {
		n, err := c.nameOf(t, args, arguments[0], arguments[1])
		if err != nil {
			return 0, err // as that of the call
		}
		if git {
			named = n.absolutePath(t)
		}
		follows := c.Class == calls.Open || c.Class == calls.Mode || c.Class == calls.Link && i == 0
		place, err := g.findControlPlace(t, &n, follows, c.Class == calls.Mode)
		n.releaseRefs(t)
		if err != nil {
			return 0, err
		}
		if place != "" && place != named {
			return 0, c.refuseChange(g, t, place)
		}
	}
	result, _, err := own()
	if err != nil || c.Class != calls.Open {
		return result, err
	}
	place, err := g.openedControlPlace(t, int32(result))
	if err == nil && (place == "" || place == named) {
		return result, nil
	}
	if file := t.FDTable().Remove(t, int32(result)); file != nil {
		file.DecRef(t)
	}
	if err != nil {
		return 0, err
	}
	return 0, c.refuseChange(g, t, place)
}

// bindSocket gives a socket its address, as gVisor's own bind does: that of a Unix socket is a name of a file,
// which is made.
func (g *execGate) bindSocket(t *kernel.Task, args arch.SyscallArguments, own call) (uintptr, error) {
	file := t.GetFile(args[0].Int())
	if file == nil {
		return 0, linuxerr.EBADF
	}
	defer file.DecRef(t)
	s, ok := file.Impl().(socket.Socket)
	if !ok {
		return 0, linuxerr.ENOTSOCK
	}
	family, _, _ := s.Type()
	if family != linux.AF_UNIX || g.pod != nil || g.lineages.generationOf(t.ThreadGroup()).control {
		result, _, err := own()
		return result, err
	}
	address, err := syscalls.CaptureAddress(t, args[1].Pointer(), args[2].Uint())
	if err != nil {
		return 0, err
	}
	g.changes.Lock()
	defer g.changes.Unlock()
	if name := socketPath(address); name != "" {
		made := change{calls.Call{Name: "bind", Class: calls.Make, Dir: calls.None}}
		n := callName{root: t.FSContext().RootDirectory(), start: t.FSContext().WorkingDirectory(), path: name}
		if path.IsAbs(name) {
			n.start.DecRef(t)
			n.start = t.FSContext().RootDirectory()
		}
		place, err := g.findControlPlace(t, &n, false, false)
		n.releaseRefs(t)
		if err != nil {
			return 0, err
		}
		if place != "" {
			return 0, made.refuseChange(g, t, place)
		}
	}
	return 0, s.Bind(t, address).ToError()
}

// socketPath returns the path in the address of a Unix socket, "" if there is none or it is abstract.
func socketPath(address []byte) string {
	const family = 2
	if len(address) <= family {
		return ""
	}
	name, _, _ := strings.Cut(string(address[family:]), "\x00")
	return name
}

// refuseChange reports the attempt to change place, once for each command, and returns the call's error.
func (c change) refuseChange(g *execGate, t *kernel.Task, place string) error {
	kinds := map[calls.Class]uint8{calls.Remove: wire.EventRemove, calls.Rename: wire.EventRename,
		calls.Link: wire.EventLink, calls.Symlink: wire.EventLink, calls.Mode: wire.EventMode}
	kind, ok := kinds[c.Class]
	if !ok || c.Name == "truncate" {
		kind = wire.EventWrite
	}
	if g.isFirstReport(g.lineages.generationOf(t.ThreadGroup()).hashParts("control", string(kind), place)) {
		e := g.newEvent(t, kind)
		e.Path, e.Errno = place, uint16(unix.EACCES)
		g.reportEvent(e)
	}
	return linuxerr.EACCES
}

// isGit reports whether t runs git of the read-only root.
func (g *execGate) isGit(t *kernel.Task) bool {
	file := programFile(t)
	if file == nil {
		return false
	}
	defer file.DecRef(t)
	name := file.MappedName(t)
	return g.isReadOnlyMount(t, file.Mount()) && wire.IsGit(name)
}

// mayWrite reports whether an open may change a file.
func (c change) mayWrite(t *kernel.Task, args arch.SyscallArguments) bool {
	var flags uint64
	switch {
	case c.Flags != calls.None:
		flags = args[c.Flags].Uint64()
	case c.Name == "openat2":
		how, err := copyInHow(t, args)
		if err != nil {
			return true
		}
		flags = how.Flags
	default:
		return true
	}
	return flags&linux.O_ACCMODE != linux.O_RDONLY || flags&(linux.O_CREAT|linux.O_TRUNC) != 0
}

// copyInHow returns what openat2 is called with.
func copyInHow(t *kernel.Task, args arch.SyscallArguments) (how linux.OpenHow, err error) {
	_, err = how.CopyIn(t, args[2].Pointer())
	return how, err
}

// A callName is what a call names: a path relative to start, below root; "" is start itself.
type callName struct {
	root, start vfs.VirtualDentry // with a reference each
	path        string
}

// nameOf returns what the arguments dir and at name. The caller must release it.
func (c change) nameOf(t *kernel.Task, args arch.SyscallArguments, dir, at int) (n callName, err error) {
	if at != calls.None && args[at].Pointer() != 0 { // utimensat without a path changes the descriptor's file
		if n.path, err = t.CopyInString(args[at].Pointer(), unix.PathMax); err != nil {
			return n, err
		}
	}
	inRoot := false // the start is the root
	if c.Name == "openat2" {
		how, err := copyInHow(t, args)
		if err != nil {
			return n, err
		}
		inRoot = how.Resolve&linux.RESOLVE_IN_ROOT != 0
	}
	switch {
	case path.IsAbs(n.path) && !inRoot:
		n.start = t.FSContext().RootDirectory()
	case dir == calls.None || args[dir].Int() == linux.AT_FDCWD:
		n.start = t.FSContext().WorkingDirectory()
	default:
		file := t.GetFile(args[dir].Int())
		if file == nil {
			return n, linuxerr.EBADF
		}
		defer file.DecRef(t)
		n.start = file.VirtualDentry()
		n.start.IncRef()
	}
	if n.root = n.start; inRoot {
		n.root.IncRef()
	} else {
		n.root = t.FSContext().RootDirectory()
	}
	return n, nil
}

func (n *callName) releaseRefs(t *kernel.Task) {
	n.root.DecRef(t)
	n.start.DecRef(t)
}

// absolutePath returns n as an absolute path, "" if there is none.
func (n *callName) absolutePath(t *kernel.Task) string {
	if path.IsAbs(n.path) {
		return path.Clean(n.path)
	}
	dir, err := t.Kernel().VFS().PathnameWithDeleted(t, n.root, n.start)
	if err != nil {
		return ""
	}
	return path.Join(dir, n.path)
}

// lookUp returns the file called name, with a reference, after any links.
func (n *callName) lookUp(t *kernel.Task, name string) (vfs.VirtualDentry, error) {
	op := vfs.PathOperation{Root: n.root, Start: n.start, Path: fspath.Parse(name), FollowFinalSymlink: true}
	if op.Path.Absolute {
		op.Start = n.root
	}
	return t.Kernel().VFS().GetDentryAt(t, t.Credentials(), &op, &vfs.GetDentryOptions{})
}

// maxLinks is how many links that lead to no file are followed, as for Linux.
const maxLinks = 40

// findControlPlace returns the path of what n names if that is a control place, also if it does not
// exist. follows says that the call follows a link at the end, and both that it may change the link
// as well. An error is one of the path, and so of the call.
func (g *execGate) findControlPlace(t *kernel.Task, n *callName, follows, both bool) (place string, err error) {
	if n.path == "" {
		return g.controlPlace(t, n.start, "")
	}
	if follows {
		if file, err := n.lookUp(t, n.path); err == nil {
			place, err := g.controlPlace(t, file, "")
			file.DecRef(t)
			if place != "" || err != nil || !both {
				return place, err
			}
		}
	}
	for range maxLinks {
		name, last := splitLast(n.path)
		dir, err := n.lookUp(t, name)
		if err != nil {
			return "", err
		}
		n.start.DecRef(t)
		n.start, n.path = dir, last
		if !follows || both || last == "" {
			return g.controlPlace(t, dir, last)
		}
		op := vfs.PathOperation{Root: n.root, Start: dir, Path: fspath.Parse(last)}
		if n.path, err = t.Kernel().VFS().ReadlinkAt(t, t.Credentials(), &op); err != nil || n.path == "" {
			return g.controlPlace(t, dir, last) // not a link
		}
	}
	return "", linuxerr.ELOOP
}

// splitLast splits a path before its last name, if that is a name.
func splitLast(name string) (dir, last string) {
	name = strings.TrimRight(name, "/")
	at := strings.LastIndexByte(name, '/') + 1
	if last = name[at:]; last == "" || last == "." || last == ".." {
		return name + "/", ""
	}
	return name[:at], last
}

// openedControlPlace returns the path of an open file if it is in a control place.
func (g *execGate) openedControlPlace(t *kernel.Task, number int32) (string, error) {
	file := t.GetFile(number)
	if file == nil { // closed meanwhile by another thread
		return "", linuxerr.EBADF
	}
	defer file.DecRef(t)
	return g.controlPlace(t, file.VirtualDentry(), "")
}

// controlPlace returns the path, as init sees it, of last in the directory dir, or of dir itself if
// last is "", if that is a control place or in one. An error means that it is not known.
func (g *execGate) controlPlace(t *kernel.Task, dir vfs.VirtualDentry, last string) (string, error) {
	first := t.Kernel().GlobalInit().Leader()
	if first == nil || first.FSContext() == nil {
		return "", linuxerr.EACCES
	}
	root := first.FSContext().RootDirectory()
	defer root.DecRef(t)
	look := func(start vfs.VirtualDentry, name string) (vfs.VirtualDentry, error) {
		op := vfs.PathOperation{Root: root, Start: start, Path: fspath.Parse(name)}
		return t.Kernel().VFS().GetDentryAt(t, first.Credentials(), &op, &vfs.GetDentryOptions{})
	}
	top, err := look(root, workspace)
	if err != nil {
		return "", linuxerr.EACCES
	}
	defer top.DecRef(t)
	tree := top.Mount().Filesystem()
	if dir.Mount().Filesystem() != tree {
		return "", nil
	}
	within := dir.Dentry() == top.Dentry() && slices.Contains(controlPlaces, last)
	for _, name := range controlPlaces {
		place, err := look(top, name)
		if linuxerr.Equals(linuxerr.ENOENT, err) {
			continue
		}
		if err != nil {
			return "", linuxerr.EACCES
		}
		within = within || tree.Impl().IsDescendant(place, dir)
		place.DecRef(t)
	}
	if !within {
		return "", nil
	}
	name, err := t.Kernel().VFS().PathnameWithDeleted(t, root, vfs.MakeVirtualDentry(top.Mount(), dir.Dentry()))
	if err != nil {
		return "", linuxerr.EACCES
	}
	return path.Join(name, last), nil
}
