// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package sentry is the part of fumehood that is linked into runsc and lives in
// gVisor's kernel, where no process of the sandbox can reach it. Only
// cmd/fumehood-runsc imports it.
//
// It registers two seccheck sinks. "fumehood" tells the supervisor facts that no
// exit code tells: that a fork was refused because the process limit was met, that a
// write was refused because the disk limit was met, and why the other sink gave up.
// Each is one byte on a FIFO that runsc opens on the host before the sandbox exists.
// A byte is lost when the FIFO is full, which takes 65,536 unread ones; they are
// latches, not counts, so nothing is lost by it.
//
// "fumehood-gate" asks the supervisor about every execve before it takes effect and
// refuses with EACCES what is not allowed; and it tells what processes do. Messages
// are those of package wire. What it promises:
//
//   - A program that begins has been allowed: by an answer of the supervisor to
//     this very exec, or by one that it said may be used again. No answer, a late one,
//     one that is not understood, a program that cannot be read: refused.
//   - Path, layer and digest are of the file that the kernel opened, not of a name
//     that is looked up again. Of a script, the file and each interpreter are told.
//   - Nothing is dropped unless the supervisor stops reading; then it is counted, the
//     FIFO says so, and every exec is refused.
//   - The values of environment variables never leave the sandbox.
//
// # What a digest is worth
//
// On the read-only root the content cannot change, and its digest is computed once.
// Anywhere else a process may write to a file between the check and the moment that
// a page of it is first used, because gVisor does not refuse that (ETXTBSY). So a
// digest binds on LayerRootfs; elsewhere it is evidence, and the layer is what a
// policy must go by. A file on LayerWorkspace or LayerWritten is whatever a command
// wants it to be.
//
// The interpreter of a script is found by the kernel and, a moment later, again by
// the gate. Where each step of the way to it lies on the read-only root both find the
// same; where not, the interpreter counts as written, wherever it lies.
//
// Names that calls such as rename and unlink were given are read from the caller's
// memory after the call, and another thread may have changed them meanwhile; names of
// opened files are the kernel's own.
package sentry

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/context"
	"gvisor.dev/gvisor/pkg/fd"
	"gvisor.dev/gvisor/pkg/sentry/seccheck"
	pb "gvisor.dev/gvisor/pkg/sentry/seccheck/points/points_go_proto"
)

// Name is the sink's name in a trace session's configuration.
const Name = "fumehood"

// What the supervisor reads.
const (
	Hello        = 'h' // the sink is in force
	ProcessLimit = 'p' // a fork or a thread was refused with EAGAIN
	DiskLimit    = 'd' // a file operation was refused with ENOSPC
)

func init() {
	seccheck.RegisterSink(seccheck.SinkDesc{Name: Name, Setup: setup, New: newSink})
}

// setup runs on the host, in the process that creates the sandbox.
func setup(config map[string]any) (*os.File, error) {
	path, ok := config["fifo"].(string)
	if !ok {
		return nil, errors.New("sink fumehood: no fifo in the configuration")
	}
	return os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
}

// newSink runs in the sandbox's kernel.
func newSink(_ map[string]any, endpoint *fd.FD) (seccheck.Sink, error) {
	if endpoint == nil {
		return nil, errors.New("sink fumehood: no fifo")
	}
	s := &sink{fifo: endpoint}
	latch.Store(s)
	s.tell(Hello)
	return s, nil
}

type sink struct {
	seccheck.SinkDefaults
	fifo *fd.FD
}

// Name implements seccheck.Sink.
func (*sink) Name() string { return Name }

// Stop implements seccheck.Sink.
func (s *sink) Stop() { _ = s.fifo.Close() }

// RawSyscall implements seccheck.Sink. The session asks for exits only, and only
// of the calls that can meet one of the two limits.
func (s *sink) RawSyscall(_ context.Context, _ seccheck.FieldSet, info *pb.Syscall) error {
	if info.Exit == nil {
		return nil
	}
	switch unix.Errno(info.Exit.Errorno) {
	case unix.EAGAIN:
		if forks(info.Sysno) {
			s.tell(ProcessLimit)
		}
	case unix.ENOSPC, unix.EDQUOT:
		s.tell(DiskLimit)
	}
	return nil
}

func (s *sink) tell(what byte) {
	_, _ = unix.Write(s.fifo.FD(), []byte{what})
}
