// SPDX-License-Identifier: Apache-2.0

package sentry

import (
	"encoding/binary"
	"hash/maphash"
	"strings"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/abi/linux"
	"gvisor.dev/gvisor/pkg/context"
	"gvisor.dev/gvisor/pkg/errors/linuxerr"
	"gvisor.dev/gvisor/pkg/hostarch"
	"gvisor.dev/gvisor/pkg/sentry/kernel"
	"gvisor.dev/gvisor/pkg/sentry/seccheck"
	pb "gvisor.dev/gvisor/pkg/sentry/seccheck/points/points_go_proto"

	"github.com/fumehood/fumehood/internal/watch/monitor/calls"
	"github.com/fumehood/fumehood/internal/watch/monitor/wire"
)

// workspace is the directory whose changes are found by comparison, not reported one
// by one.
const workspace = "/workspace/"

// userHome is the workspace's place in sandboxes for clients that expect it there. In others nothing can be
// written there.
const userHome = "/home/user/"

func isInWorkspace(path string) bool {
	return strings.HasPrefix(path, workspace) || strings.HasPrefix(path, userHome)
}

// RawSyscall implements seccheck.Sink. The session requests exits only.
func (g *execGate) RawSyscall(ctx context.Context, _ seccheck.FieldSet, info *pb.Syscall) error {
	call, ok := calls.Table[info.Sysno]
	t, isTask := ctx.(*kernel.Task)
	if !ok || !isTask || info.Exit == nil {
		return nil
	}
	if call.Class == calls.Write {
		if info.Exit.Errorno == 0 && info.Exit.Result > 0 {
			g.lineages.generationOf(t.ThreadGroup()).bytes.Add(uint64(info.Exit.Result))
		}
		return nil
	}
	if g.init(t) {
		return nil
	}
	s := observedCall{t: t, call: call,
		args:   [6]uint64{info.Arg1, info.Arg2, info.Arg3, info.Arg4, info.Arg5, info.Arg6},
		result: info.Exit.Result, errno: uint16(info.Exit.Errorno)}
	switch call.Class {
	case calls.Connect, calls.Bind, calls.Listen, calls.SendTo, calls.SendMsg, calls.SendMMsg:
		g.reportNetwork(s)
	case calls.Privilege:
		g.reportPrivilege(s)
	default:
		if s.errno == 0 {
			g.reportChange(s)
		}
	}
	return nil
}

// An observedCall is a system call that has ended.
type observedCall struct {
	t      *kernel.Task
	call   calls.Call
	args   [6]uint64
	result int64
	errno  uint16
}

// argumentPath returns the path in the call's arguments dir and at.
func (s observedCall) argumentPath(dir, at int) string {
	from := int32(linux.AT_FDCWD)
	if dir != calls.None {
		from = int32(s.args[dir])
	}
	if at == calls.None {
		return openFilePath(s.t, from)
	}
	return resolveArgument(s.t, from, s.args[at])
}

// reportChange reports a change of files outside the workspace.
func (g *execGate) reportChange(s observedCall) {
	var path, target string
	kind := uint8(wire.EventWrite)
	switch s.call.Class {
	case calls.Open:
		if path = s.writtenPath(); path == "" {
			return
		}
	case calls.Make:
		path = s.argumentPath(s.call.Dir, s.call.Path)
	case calls.Remove:
		kind, path = wire.EventRemove, s.argumentPath(s.call.Dir, s.call.Path)
	case calls.Rename:
		kind, path, target = wire.EventRename, s.argumentPath(s.call.Dir, s.call.Path),
			s.argumentPath(s.call.ToDir, s.call.To)
	case calls.Link:
		kind, path, target = wire.EventLink, s.argumentPath(s.call.Dir, s.call.Path),
			s.argumentPath(s.call.ToDir, s.call.To)
	case calls.Symlink:
		kind, path = wire.EventLink, s.argumentPath(s.call.Dir, s.call.Path)
		target, _ = s.t.CopyInString(hostarch.Addr(s.args[s.call.To]), wire.MaxPath)
	case calls.Mode:
		kind, path = wire.EventMode, s.argumentPath(s.call.Dir, s.call.Path)
	}
	inside := g.pod == nil && isInWorkspace(path) &&
		(kind != wire.EventRename && kind != wire.EventLink || s.call.Class == calls.Symlink ||
			isInWorkspace(target))
	of := g.lineages.generationOf(s.t.ThreadGroup())
	if (inside || kind == wire.EventWrite && !g.isFirstReport(of.hashParts(path))) && !g.hasOwnFileTree(s.t) {
		if kind == wire.EventWrite {
			of.writes.Add(1)
		}
		return
	}
	e := g.newEvent(s.t, kind)
	e.Path, e.Target = path, target
	g.reportEvent(e)
}

// writtenPath returns the path of the opened file, if it was opened for writing or may
// have just been created. The name is the kernel's, not the caller's.
func (s observedCall) writtenPath() string {
	f := s.t.GetFile(int32(s.result))
	if f == nil {
		return ""
	}
	defer f.DecRef(s.t)
	asked := uint64(0)
	if s.call.Flags != calls.None {
		asked = s.args[s.call.Flags]
	}
	if f.StatusFlags()&linux.O_ACCMODE == linux.O_RDONLY && asked&(linux.O_CREAT|linux.O_TRUNC) == 0 {
		return ""
	}
	name := f.MappedName(s.t)
	if !strings.HasPrefix(name, "/") || strings.HasPrefix(name, "/dev/") && !strings.HasPrefix(name, "/dev/shm/") {
		return ""
	}
	return name
}

var seed = maphash.MakeSeed()

// hashParts returns a hash of a generation's parts.
func (g *generation) hashParts(parts ...string) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	var number [4]byte
	binary.LittleEndian.PutUint32(number[:], g.number)
	h.Write(number[:])
	for _, p := range parts {
		h.WriteString(p)
		h.WriteByte(0)
	}
	return h.Sum64()
}

// reportPrivilege reports an attempt, once for each process, call and outcome.
func (g *execGate) reportPrivilege(s observedCall) {
	var key [10]byte
	binary.LittleEndian.PutUint32(key[:], uint32(processID(s.t)))
	binary.LittleEndian.PutUint16(key[4:], s.errno)
	if !g.isFirstReport(g.lineages.generationOf(s.t.ThreadGroup()).hashParts(s.call.Name, string(key[:]))) {
		return
	}
	e := g.newEvent(s.t, wire.EventPrivilege)
	e.Call, e.Errno = s.call.Name, s.errno
	if s.call.Name == "chroot" {
		e.Path = resolveArgument(s.t, linux.AT_FDCWD, s.args[0])
	}
	if s.call.Name == "mount" {
		e.Path, e.Target = resolveArgument(s.t, linux.AT_FDCWD, s.args[0]),
			resolveArgument(s.t, linux.AT_FDCWD, s.args[1])
	}
	g.reportEvent(e)
}

// addFirst makes known what the sandbox's first process needs: in a pod, its container.
func (g *execGate) addFirst(k *kernel.Kernel) error {
	if g.pod != nil {
		return g.pod.addContainer(k, k.GlobalInit().Leader())
	}
	return g.registerRecorded(k)
}

// Clone implements seccheck.Sink. It is called before the new task runs; an error is the
// call's result. A task of which nothing could be known, or whose command has ended, does
// not run.
func (g *execGate) Clone(ctx context.Context, _ seccheck.FieldSet, info *pb.CloneInfo) error {
	t, ok := ctx.(*kernel.Task)
	if !ok {
		return linuxerr.EACCES
	}
	k := t.Kernel()
	if g.capacity.kernel.Swap(k) == nil { // it runs our own program
		if err := g.addFirst(k); err != nil {
			return linuxerr.EACCES
		}
	}
	child := k.RootPIDNamespace().ThreadGroupWithID(kernel.ThreadID(info.CreatedThreadGroupId))
	if g.init(t) {
		return nil
	}
	if child == nil || g.lineages.recordFork(k, t.ThreadGroup(), child) != nil {
		return linuxerr.EACCES
	}
	const spaces = unix.CLONE_NEWNS | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	if info.Flags&spaces == 0 {
		return nil
	}
	g.reportPrivilege(observedCall{t: t, call: calls.Call{Name: "clone"}})
	return nil
}
