// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The HTTP/2 frames and errors that are distinguished (RFC 9113).
const (
	frameHead = 9

	frameData    = 0
	frameHeaders = 1
	frameReset   = 3
	frameGoAway  = 7

	flagEndStream = 1

	// maxOpen is how many streams are tracked. A program that resets more than that before their
	// end is only counted by the server's resets.
	maxOpen = 10 * maxStreams
)

// faults are the errors that blame the peer. A stream that the server itself gave up has others,
// and the ones for a stream that was closed or one too many come up without a fault, too.
var faults = map[uint32]bool{1: true /* PROTOCOL_ERROR */, 3: true, /* FLOW_CONTROL_ERROR */
	4: true, /* SETTINGS_TIMEOUT */
	6: true /* FRAME_SIZE_ERROR */, 9: true /* COMPRESSION_ERROR */, 11: true /* ENHANCE_YOUR_CALM */}

const streamClosed = 5 // a fault in a GOAWAY only

// A frames is the program's end of an HTTP/2 connection. It reads what the server sends, because
// the server refuses malformed requests itself: with a reset, an end of the connection, or an
// answer of its own, and without a call of the handler. Of a program that closes the connection at
// once nothing may be seen.
type frames struct {
	net.Conn
	read    atomic.Bool  // whether the program has sent anything
	handled atomic.Int64 // calls of the handler, each before its answer

	mu      sync.Mutex
	part    []byte // of a frame: the head, and the beginning that counts
	skip    int    // bytes of the payload that do not count
	open    map[uint32]bool
	begun   bool  // the server has sent a frame
	answers int64 // streams with an answer
	resets  int64
	ended   bool // by a GOAWAY for a fault
}

func newFrames(c net.Conn) *frames { return &frames{Conn: c, open: map[uint32]bool{}} }

func (f *frames) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	if n > 0 {
		f.read.Store(true)
	}
	return n, err
}

func (f *frames) Write(p []byte) (int, error) {
	f.scanFrames(p)
	return f.Conn.Write(p)
}

// CloseWrite closes the connection for writing.
func (f *frames) CloseWrite() error { return closeWrite(f.Conn) }

// scanFrames reads more of what the server sends, which may end anywhere in a frame.
func (f *frames) scanFrames(p []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(p) > 0 {
		if f.skip > 0 {
			n := min(f.skip, len(p))
			p, f.skip = p[n:], f.skip-n
			continue
		}
		f.part, p = append(f.part, p[0]), p[1:]
		if length, whole := f.isWholeFrame(); whole {
			f.skip = length
			f.recordFrame()
			f.part = f.part[:0]
		}
	}
}

// isWholeFrame reports whether part is all of a frame that counts, and how much more the frame has.
func (f *frames) isWholeFrame() (rest int, ok bool) {
	if len(f.part) < frameHead {
		return 0, false
	}
	length := int(f.part[0])<<16 | int(f.part[1])<<8 | int(f.part[2])
	counts := 0
	switch f.part[3] {
	case frameReset:
		counts = 4
	case frameGoAway:
		counts = 8
	}
	counts = min(counts, length)
	return length - counts, len(f.part) == frameHead+counts
}

// recordFrame takes part's frame into account.
func (f *frames) recordFrame() {
	f.begun = true
	kind, flags := f.part[3], f.part[4]
	stream := binary.BigEndian.Uint32(f.part[5:]) &^ (1 << 31)
	switch {
	case kind == frameReset && len(f.part) == frameHead+4:
		delete(f.open, stream)
		if faults[binary.BigEndian.Uint32(f.part[frameHead:])] {
			f.resets++
		}
	case kind == frameGoAway && len(f.part) == frameHead+8:
		code := binary.BigEndian.Uint32(f.part[frameHead+4:])
		f.ended = f.ended || faults[code] || code == streamClosed
	case kind == frameHeaders && !f.open[stream] && len(f.open) < maxOpen:
		f.answers++
		f.open[stream] = true
	}
	if (kind == frameHeaders || kind == frameData) && flags&flagEndStream != 0 {
		delete(f.open, stream)
	}
}

// malformedReason returns what was malformed in the connection, or "".
func (f *frames) malformedReason() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	refused := f.resets + max(0, f.answers-f.handled.Load())
	switch {
	case !f.begun && f.read.Load():
		return "the connection does not begin as HTTP/2 does"
	case refused > 0:
		return fmt.Sprintf("the connection has malformed HTTP/2: %d requests were refused unread", refused)
	case f.ended:
		return "the connection has malformed HTTP/2, and was ended"
	}
	return ""
}

// reportFault reports as one request all that were refused before they could be read.
func (s *session) reportFault(f *frames) {
	why := f.malformedReason()
	if why == "" {
		return
	}
	e := s.target.Egress
	e.Kind, e.Protocol, e.SNI = points.EgressRequest, "https", e.Name
	s.relay.options.Report(proposal.Flow{Egress: e,
		Decision: proposal.EgressDecision{Reason: refusalReason("protocol", why)}, Code: "protocol",
		Inside: s.target.Inside})
}
