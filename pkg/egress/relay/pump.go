// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"io"
	"net"
	"sync"
)

// passRaw passes bytes on as they are.
func (s *session) passRaw(ctx context.Context) {
	up, ok := s.reach(ctx)
	if !ok {
		return
	}
	s.pump(up)
}

// reach dials, and says what became of that.
func (s *session) reach(ctx context.Context) (net.Conn, bool) {
	up, err := s.dial(ctx)
	if err != nil {
		s.end("unreachable", "cannot connect to "+s.name+": "+err.Error())
		return nil, false
	}
	return up, true
}

// pump passes bytes both ways until both ends have said their last, or one is gone.
func (s *session) pump(up net.Conn) {
	var ways sync.WaitGroup
	way := func(to, from net.Conn) {
		if err := stream(to, from); err != nil {
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

// A connection that is quiet holds smallBuffer each way, so that a thousand of them cost
// little; one that streams borrows a bigBuffer.
const (
	smallBuffer = 4 << 10
	bigBuffer   = 64 << 10
)

var bigBuffers = sync.Pool{New: func() any { return new([bigBuffer]byte) }}

// stream copies until from ends, and returns why else it stopped.
func stream(to io.Writer, from io.Reader) error {
	small := make([]byte, smallBuffer)
	buffer := small
	var big *[bigBuffer]byte
	defer func() {
		if big != nil {
			bigBuffers.Put(big)
		}
	}()
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch {
		case big == nil && n == len(small):
			big = bigBuffers.Get().(*[bigBuffer]byte)
			buffer = big[:]
		case big != nil && n < len(small):
			bigBuffers.Put(big)
			big, buffer = nil, small
		}
	}
}
