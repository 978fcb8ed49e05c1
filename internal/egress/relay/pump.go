// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"io"
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// passRaw forwards bytes unchanged, and notes the server name that the first of them have.
func (s *session) passRaw(ctx context.Context) {
	up, ok := s.dialUpstream(ctx)
	if !ok {
		return
	}
	first := &firstBytes{Conn: up}
	s.pumpBytes(first)
	s.noteServerName(first.serverName())
}

// dialUpstream dials, and records the outcome.
func (s *session) dialUpstream(ctx context.Context) (net.Conn, bool) {
	up, err := s.dialTarget(ctx)
	if err != nil {
		s.recordEndReason("unreachable", "cannot connect to "+s.name+": "+err.Error())
		return nil, false
	}
	return up, true
}

// pumpBytes forwards bytes both ways until both ends have closed, or one is gone.
func (s *session) pumpBytes(up net.Conn) {
	var ways sync.WaitGroup
	way := func(to, from net.Conn) {
		if err := copyStream(to, from); err != nil {
			to.Close()
			from.Close()
			return
		}
		closeWrite(to)
	}
	ways.Go(func() { way(up, s.client) })
	ways.Go(func() { way(s.client, up) })
	ways.Wait()
}

// An idle connection uses at most smallBuffer, so that a thousand of them cost little. A
// streaming connection borrows a bigBuffer for as long as there is something to read. That is a
// little less than one frame to the sandbox holds (see segment.MTU): 64 KiB would be a full frame
// and a tiny one.
const (
	smallBuffer = 4 << 10
	bigBuffer   = 63 << 10
)

var bigBuffers = sync.Pool{New: func() any { return new([bigBuffer]byte) }}

// copyStream copies until from ends. It returns why it stopped, if for another reason.
func copyStream(to io.Writer, from io.Reader) error {
	wait := func() ([]byte, error) { return nil, nil }
	if patient, ok := from.(interface{ Await() error }); ok {
		wait = func() ([]byte, error) { return nil, patient.Await() }
	} else if _, ok := from.(interface{ Ready() bool }); ok {
		small := make([]byte, smallBuffer)
		wait = func() ([]byte, error) {
			n, err := from.Read(small)
			return small[:n], err
		}
	}
	for {
		first, err := wait()
		if err == nil && (len(first) == 0 || len(first) == smallBuffer && isReadable(from)) {
			err = copyBurst(to, from, first)
		} else if len(first) > 0 {
			if _, err := to.Write(first); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// copyBurst copies first, and then reads from from, until a read does not fill the buffer.
func copyBurst(to io.Writer, from io.Reader, first []byte) error {
	big := bigBuffers.Get().(*[bigBuffer]byte)
	defer bigBuffers.Put(big)
	kept := copy(big[:], first)
	for {
		n, err := from.Read(big[kept:])
		if kept+n > 0 {
			if _, err := to.Write(big[:kept+n]); err != nil {
				return err
			}
		}
		if err != nil || kept+n < len(big) || !isReadable(from) {
			return err
		}
		kept = 0
	}
}

// isReadable reports whether a Read of r would return at once; false if that is unknown.
func isReadable(r any) bool {
	can, ok := r.(interface{ Ready() bool })
	return ok && can.Ready()
}

// waitReadable waits until a socket has bytes, or its end, to read.
func waitReadable(c syscall.Conn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	one := make([]byte, 1)
	return raw.Read(func(fd uintptr) bool {
		_, _, err := unix.Recvfrom(int(fd), one, unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return err != unix.EAGAIN && err != unix.EINTR
	})
}
