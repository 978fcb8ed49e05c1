// SPDX-License-Identifier: Apache-2.0

// Package sentry is the part of fumehood that is linked into runsc and runs in
// gVisor's kernel, out of reach of the sandbox's processes. Only cmd/fumehood-runsc
// imports it.
//
// It registers two seccheck sinks. "fumehood" reports to the supervisor what no exit
// code shows: that a fork was refused because of the process limit, that a write was
// refused because of the disk limit, and why the other sink gave up. Each is one byte
// on a FIFO that runsc opens on the host before the sandbox exists. A byte is dropped
// when the FIFO is full, which takes 65,536 unread bytes. This does no harm: each byte
// sets a flag and is not counted.
//
// "fumehood-gate" asks the supervisor about every execve before it takes effect, and about
// every file that is not on the read-only root before it is mapped as code (load.go), and
// refuses with EACCES what is not allowed. It also reports what processes do. The
// messages are those of package wire. Its guarantees:
//
//   - A program that starts, and a file that becomes code, has been allowed: by the
//     supervisor's answer to this request, or by an earlier reusable one. If there is no
//     answer, or a late or invalid one, or the file cannot be read, it is refused.
//   - The file that is mapped is the one that was asked about. Memory without a file
//     (anonymous, /dev/zero) may be executable: what a JIT writes is not seen.
//   - Path, layer and digest are of the file that the kernel opened, not of a name
//     that is looked up again. For a script, the file and each interpreter are sent.
//   - Nothing is dropped unless the supervisor stops reading; then it is counted, the
//     FIFO reports it, and every exec is refused.
//   - Every message has the generation of its process: the command that it belongs to, from
//     the first process on and through every fork. A process of a command that was ended can
//     neither fork nor exec, and is killed. An id that is used again inherits nothing.
//   - The values of environment variables never leave the sandbox.
//
// # What a digest is worth
//
// On the read-only root the content cannot change, and its digest is computed once. Of any
// other file it is computed again after a write, which changes the file's time of change, and
// each time once a process has mapped the file to write to it. A process may write to a file between the check
// and the first use of a page of such a file, because gVisor does not refuse that (ETXTBSY). So a digest is
// reliable on LayerRootfs; elsewhere it is only evidence, and a policy must decide by the layer. A command
// controls the content of a file on LayerWorkspace or LayerWritten.
//
// The interpreter of a script is looked up by the kernel and, a moment later, again by
// the gate. If each component of its path is on the read-only root, both find the same
// file; if not, the interpreter counts as written, wherever it is.
//
// Names passed to calls such as rename and unlink are read from the caller's memory
// after the call, so another thread may have changed them; names of opened files are
// the kernel's own.
package sentry

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/context"
	"gvisor.dev/gvisor/pkg/errors/linuxerr"
	"gvisor.dev/gvisor/pkg/fd"
	"gvisor.dev/gvisor/pkg/sentry/kernel"
	"gvisor.dev/gvisor/pkg/sentry/seccheck"
	pb "gvisor.dev/gvisor/pkg/sentry/seccheck/points/points_go_proto"
)

// Name is the sink's name in a trace session's configuration.
const Name = "fumehood"

// What the supervisor reads.
const (
	Hello        = 'h' // the sink is active
	ProcessLimit = 'p' // a fork or a thread was refused with EAGAIN
	DiskLimit    = 'd' // a file operation was refused with ENOSPC
)

func init() {
	seccheck.RegisterSink(seccheck.SinkDesc{Name: Name, Setup: openFIFO, New: newSink})
}

// openFIFO runs on the host, in the process that creates the sandbox.
func openFIFO(config map[string]any) (*os.File, error) {
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
	s.reportLimit(Hello)
	return s, nil
}

type sink struct {
	seccheck.SinkDefaults
	fifo    *fd.FD
	listing sync.Once
}

// Name implements seccheck.Sink.
func (*sink) Name() string { return Name }

// Stop implements seccheck.Sink.
func (s *sink) Stop() { _ = s.fifo.Close() }

// RawSyscall implements seccheck.Sink. The session requests exits only, and only those
// of calls that can reach one of the two limits.
func (s *sink) RawSyscall(_ context.Context, _ seccheck.FieldSet, info *pb.Syscall) error {
	if info.Exit == nil {
		return nil
	}
	switch unix.Errno(info.Exit.Errorno) {
	case unix.EAGAIN:
		if forks(info.Sysno) {
			s.reportLimit(ProcessLimit)
		}
	case unix.ENOSPC, unix.EDQUOT:
		s.reportLimit(DiskLimit)
	}
	return nil
}

// Clone implements seccheck.Sink. Init's first thread, which runs our own program only, makes ListingName available.
func (s *sink) Clone(ctx context.Context, _ seccheck.FieldSet, _ *pb.CloneInfo) error {
	t, ok := ctx.(*kernel.Task)
	if !ok {
		return linuxerr.EACCES
	}
	var err error
	s.listing.Do(func() { err = registerListing(t.Kernel()) })
	return err
}

func (s *sink) reportLimit(what byte) {
	_, _ = unix.Write(s.fifo.FD(), []byte{what})
}
