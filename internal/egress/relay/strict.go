// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

// A strictReader filters the input of an HTTP/1 server, so that the server sees only requests
// that any two servers parse alike, with unambiguous boundaries. In place of any other
// head the server reads one request with refusedMethod, and then the end.
type strictReader struct {
	net.Conn
	in    *bufio.Reader
	out   []byte // checked, not yet read
	head  []byte // whole lines of a head or of trailers
	line  []byte
	state strictState
	left  int64 // of a body or a chunk
	after strictState
	bad   atomic.Pointer[string]

	open atomic.Int32  // heads that were delivered and are not yet served
	wake chan struct{} // ends lastWord's wait
	over <-chan struct{}
}

type strictState int

const (
	inHead strictState = iota
	inData
	inChunkSize
	inChunkEnd
	inTrailers
	atEnd
)

const (
	refusedMethod = "FUMEHOOD-REFUSED"
	refusedHead   = refusedMethod + " / HTTP/1.1\r\nHost: refused.invalid\r\nConnection: close\r\n\r\n"
	maxChunkLine  = 16
	maxTrailers   = 8 << 10
)

var errMalformed = errors.New("malformed HTTP")

// newStrictReader returns a strict that reads from c. When over is closed, it stops waiting.
func newStrictReader(c net.Conn, over <-chan struct{}) *strictReader {
	return &strictReader{Conn: c, over: over, in: bufio.NewReaderSize(c, smallBuffer), wake: make(chan struct{}, 1)}
}

// malformedReason returns what was wrong with the last input; "" means nothing.
func (s *strictReader) malformedReason() string {
	if why := s.bad.Load(); why != nil {
		return *why
	}
	return ""
}

// CloseWrite closes the connection for writing.
func (s *strictReader) CloseWrite() error { return closeWrite(s.Conn) }

// Read may be interrupted by a deadline and called again: no input is lost.
func (s *strictReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(s.out) == 0 {
		if s.state == inData {
			return s.readBody(p)
		}
		if err := s.handleLine(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.out)
	s.out = s.out[n:]
	return n, nil
}

// readBody returns more of a body or a chunk.
func (s *strictReader) readBody(p []byte) (int, error) {
	n, err := s.in.Read(p[:min(int64(len(p)), s.left)])
	if s.left -= int64(n); s.left == 0 {
		s.state = s.after
	}
	return n, err
}

// handleLine reads one line and handles it.
func (s *strictReader) handleLine() error {
	if s.state == atEnd {
		return errMalformed
	}
	whole, err := s.takeLine()
	if err != nil || !whole {
		return err
	}
	line := s.line
	s.line = nil
	switch s.state {
	case inChunkSize:
		return s.beginChunk(line)
	case inChunkEnd:
		if len(line) != 2 {
			return s.refuseMalformed("a chunk is longer than it says")
		}
		s.out, s.state = line, inChunkSize
		return nil
	}
	s.head = append(s.head, line...)
	if len(line) > 2 {
		return nil
	}
	return s.endHeaderBlock()
}

// takeLine appends to line until a valid line end.
func (s *strictReader) takeLine() (bool, error) {
	part, err := s.in.ReadSlice('\n')
	s.line = append(s.line, part...)
	if len(s.head)+len(s.line) > s.lineLimit() {
		return false, s.refuseMalformed("a head, or a line of a chunk, is too long")
	}
	if err == bufio.ErrBufferFull {
		return false, nil
	}
	if err == io.EOF && s.state == inHead {
		return false, s.lastWord()
	}
	if err != nil {
		return false, err
	}
	if why := lineShape(s.line); why != "" {
		return false, s.refuseMalformed(why)
	}
	return true, nil
}

// lastWord reports the end of the input once nothing is being served any more. A program
// that has closed its side may still wait for an answer, but the server takes the end of
// its input for a lost client.
func (s *strictReader) lastWord() error {
	if s.open.Load() <= 0 {
		return io.EOF
	}
	select {
	case <-s.wake:
		return os.ErrDeadlineExceeded
	case <-s.over:
		return io.EOF
	}
}

// SetReadDeadline is called by the server to interrupt a Read after it has served a
// request, and before the next.
func (s *strictReader) SetReadDeadline(t time.Time) error {
	past := !t.IsZero() && !t.After(time.Now())
	select {
	case <-s.wake:
	default:
	}
	if past {
		s.wake <- struct{}{}
	}
	return s.Conn.SetReadDeadline(t)
}

// markServed is called when a request has been served.
func (s *strictReader) markServed() { s.open.Add(-1) }

func (s *strictReader) lineLimit() int {
	switch s.state {
	case inHead:
		return maxHead
	case inTrailers:
		return maxTrailers
	}
	return maxChunkLine + 2
}

// lineShape returns what is wrong with a line, including its end, or "".
func lineShape(line []byte) string {
	n := len(line) - 2
	if n < 0 || line[n] != '\r' {
		return "a line ends without a carriage return"
	}
	for _, c := range line[:n] {
		if c < ' ' && c != '\t' || c == 0x7f {
			return "a line has a control character"
		}
	}
	return ""
}

// beginChunk begins a chunk, or the trailers.
func (s *strictReader) beginChunk(line []byte) error {
	digits := string(line[:len(line)-2])
	size, err := strconv.ParseUint(digits, 16, 63)
	if err != nil || digits == "" || digits[0] == '+' {
		return s.refuseMalformed("the size of a chunk is not a plain number")
	}
	s.out = line
	if size == 0 {
		s.state = inTrailers
		return nil
	}
	s.state, s.left, s.after = inData, int64(size), inChunkEnd
	return nil
}

// endHeaderBlock ends a head or trailers.
func (s *strictReader) endHeaderBlock() error {
	block := s.head
	s.head = nil
	if s.state == inTrailers {
		if why := checkTrailers(block); why != "" {
			return s.refuseMalformed(why)
		}
		s.out, s.state = block, inHead
		return nil
	}
	f, why := checkHead(block)
	switch {
	case why != "":
		return s.refuseMalformed(why)
	case f.chunked:
		s.state = inChunkSize
	case f.length > 0:
		s.state, s.left, s.after = inData, f.length, inHead
	}
	s.out = block
	s.open.Add(1)
	return nil
}

// refuseMalformed ends the stream: where a head is expected with a request that marks the
// refusal, within a body with an error.
func (s *strictReader) refuseMalformed(why string) error {
	s.bad.Store(&why)
	state := s.state
	s.state, s.head, s.line = atEnd, nil, nil
	if state == inHead {
		s.out = []byte(refusedHead)
		s.open.Add(1)
		return nil
	}
	return errMalformed
}
