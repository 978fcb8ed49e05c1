// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sentry

import (
	"encoding/binary"
	"path"
	"strings"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/abi/linux"
	"gvisor.dev/gvisor/pkg/errors/linuxerr"
	"gvisor.dev/gvisor/pkg/fspath"
	"gvisor.dev/gvisor/pkg/sentry/arch"
	"gvisor.dev/gvisor/pkg/sentry/kernel"
	"gvisor.dev/gvisor/pkg/sentry/vfs"

	"github.com/fumehood/fumehood/pkg/internal/pathwalk"
	"github.com/fumehood/fumehood/pkg/monitor/calls"
	"github.com/fumehood/fumehood/pkg/monitor/wire"
)

// The control places are the directories of the workspace that control git and the code host.
// A command that may not run the repository's code changes nothing in them, whatever option,
// archive, script or link names them: only git itself does, when it adds, commits or checks out,
// and it names them without a link.
//
// The path of each change is followed before the call, and no other name changes meanwhile. An
// opened file's is followed again afterwards. Between the two, another process of the same command
// could exchange a link: a file may be made or emptied then, but nothing is written through the
// descriptor.
var controlPlaces = []string{workspace + ".git", workspace + ".github"}

// changing are the calls that change names, or open files for writing.
var changing = changingCalls()

// A change is one of them.
type change struct{ calls.Call }

func changingCalls() map[string]change {
	all := map[string]change{}
	for _, name := range []string{"truncate", "utime", "utimes", "setxattr", "lsetxattr", "removexattr", "lremovexattr"} {
		all[name] = change{calls.Call{Name: name, Class: calls.Mode, Dir: calls.None, Path: 0, ToDir: calls.None, To: calls.None}}
	}
	for _, name := range []string{"futimesat", "utimensat"} {
		all[name] = change{calls.Call{Name: name, Class: calls.Mode, Dir: 0, Path: 1, ToDir: calls.None, To: calls.None}}
	}
	for _, c := range calls.Table {
		switch c.Class {
		case calls.Open, calls.Make, calls.Remove, calls.Rename, calls.Link, calls.Symlink, calls.Mode:
			if c.Path != calls.None { // else of an open file
				all[c.Name] = change{c}
			}
		}
	}
	return all
}

// decide makes the call, unless it would change a control place that t must not change.
func (c change) decide(g *gate, t *kernel.Task, args arch.SyscallArguments, own call) (uintptr, error) {
	if g.pod != nil || g.lineages.counting(t.ThreadGroup()).control || c.Class == calls.Open && !c.writes(t, args) {
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
	git, named := g.isGit(t), false
	for _, argument := range paths {
		place, direct := c.controlPlace(g, t, args, argument[0], argument[1])
		if named = named || git && direct; place != "" && !(git && direct) {
			return 0, c.refuse(g, t, place)
		}
	}
	result, _, err := own()
	if err != nil || c.Class != calls.Open || named {
		return result, err
	}
	if place := opened(t, int32(result)); isControlPlace(place, g.outside(t)) {
		if file := t.FDTable().Remove(t, int32(result)); file != nil {
			file.DecRef(t)
		}
		return 0, c.refuse(g, t, place)
	}
	return result, nil
}

// refuse reports the attempt to change place, once for each command, and returns the call's error.
func (c change) refuse(g *gate, t *kernel.Task, place string) error {
	kinds := map[calls.Class]uint8{calls.Remove: wire.EventRemove, calls.Rename: wire.EventRename, calls.Link: wire.EventLink, calls.Symlink: wire.EventLink, calls.Mode: wire.EventMode}
	kind, ok := kinds[c.Class]
	if !ok || c.Name == "truncate" {
		kind = wire.EventWrite
	}
	if g.once(g.lineages.counting(t.ThreadGroup()).hash("control", string(kind), place)) {
		e := g.event(t, kind)
		e.Path, e.Errno = wire.Cut(place, wire.MaxPath), uint16(unix.EACCES)
		g.report(e)
	}
	return linuxerr.EACCES
}

// isGit reports whether t runs git of the read-only root.
func (g *gate) isGit(t *kernel.Task) bool {
	file := running(t)
	if file == nil {
		return false
	}
	defer file.DecRef(t)
	name := file.MappedName(t)
	return g.fixed(t, file.Mount()) && (path.Base(name) == "git" || path.Base(path.Dir(name)) == "git-core")
}

// writes reports whether an open may change a file.
func (c change) writes(t *kernel.Task, args arch.SyscallArguments) bool {
	var flags uint64
	switch {
	case c.Flags != calls.None:
		flags = args[c.Flags].Uint64()
	case c.Name == "openat2":
		var first [8]byte // of struct open_how
		if _, err := t.CopyInBytes(args[2].Pointer(), first[:]); err != nil {
			return true
		}
		flags = binary.LittleEndian.Uint64(first[:])
	default:
		return true
	}
	return flags&linux.O_ACCMODE != linux.O_RDONLY || flags&(linux.O_CREAT|linux.O_TRUNC) != 0
}

// controlPlace returns where the path in the argument at, relative to the descriptor in dir, leads,
// if that is a control place, and whether the path itself names one, without a link.
func (c change) controlPlace(g *gate, t *kernel.Task, args arch.SyscallArguments, dir, at int) (place string, direct bool) {
	from := int32(linux.AT_FDCWD)
	if dir != calls.None {
		from = args[dir].Int()
	}
	name, err := t.CopyInString(args[at].Pointer(), unix.PathMax)
	if err != nil || name == "" {
		return "", false // the call fails
	}
	if !path.IsAbs(name) {
		name = folder(t, from) + "/" + name
	}
	direct = isControlPlace(path.Clean(name), false)
	last := ""
	if c.Class != calls.Open && c.Class != calls.Mode && c.Class != calls.Link {
		name, last = splitLast(name) // a link there is changed itself
	}
	found, err := pathwalk.Resolve(name, func(step string) (string, error) { return linkAt(t, step), nil })
	if found = path.Join(found, last); err != nil || !isControlPlace(found, g.outside(t)) {
		return "", direct
	}
	return found, direct
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

// linkAt returns the target of name, as t sees it, if it is a symbolic link.
func linkAt(t *kernel.Task, name string) string {
	root := t.FSContext().RootDirectory()
	defer root.DecRef(t)
	target, err := t.Kernel().VFS().ReadlinkAt(t, t.Credentials(), &vfs.PathOperation{Root: root, Start: root, Path: fspath.Parse(name)})
	if err != nil {
		return ""
	}
	return target
}

// isControlPlace reports whether name is one, or in one. Where a process has its own mounts or
// root, every directory of such a name is.
func isControlPlace(name string, outside bool) bool {
	for _, place := range controlPlaces {
		if name == place || strings.HasPrefix(name, place+"/") || outside && strings.Contains(name+"/", "/"+path.Base(place)+"/") {
			return true
		}
	}
	return false
}
