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

// A strict filters the input of an HTTP/1 server, so that the server sees only requests
// that any two servers parse alike, with unambiguous boundaries. In place of any other
// head the server reads one request with refusedMethod, and then the end.
type strict struct {
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

// newStrict returns a strict that reads from c. When over is closed, it stops waiting.
func newStrict(c net.Conn, over <-chan struct{}) *strict {
	return &strict{Conn: c, over: over, in: bufio.NewReaderSize(c, smallBuffer), wake: make(chan struct{}, 1)}
}

// why returns what was wrong with the last input; "" means nothing.
func (s *strict) why() string {
	if why := s.bad.Load(); why != nil {
		return *why
	}
	return ""
}

// CloseWrite closes the connection for writing.
func (s *strict) CloseWrite() error { return closeWrite(s.Conn) }

// Read may be interrupted by a deadline and called again: no input is lost.
func (s *strict) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(s.out) == 0 {
		if s.state == inData {
			return s.data(p)
		}
		if err := s.step(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.out)
	s.out = s.out[n:]
	return n, nil
}

// data returns more of a body or a chunk.
func (s *strict) data(p []byte) (int, error) {
	n, err := s.in.Read(p[:min(int64(len(p)), s.left)])
	if s.left -= int64(n); s.left == 0 {
		s.state = s.after
	}
	return n, err
}

// step reads one line and handles it.
func (s *strict) step() error {
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
		return s.chunk(line)
	case inChunkEnd:
		if len(line) != 2 {
			return s.malformed("a chunk is longer than it says")
		}
		s.out, s.state = line, inChunkSize
		return nil
	}
	s.head = append(s.head, line...)
	if len(line) > 2 {
		return nil
	}
	return s.block()
}

// takeLine appends to line until a valid line end.
func (s *strict) takeLine() (bool, error) {
	part, err := s.in.ReadSlice('\n')
	s.line = append(s.line, part...)
	if len(s.head)+len(s.line) > s.limit() {
		return false, s.malformed("a head, or a line of a chunk, is too long")
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
		return false, s.malformed(why)
	}
	return true, nil
}

// lastWord reports the end of the input once nothing is being served any more. A program
// that has closed its side may still wait for an answer, but the server takes the end of
// its input for a lost client.
func (s *strict) lastWord() error {
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
func (s *strict) SetReadDeadline(t time.Time) error {
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

// served is called when a request has been served.
func (s *strict) served() { s.open.Add(-1) }

func (s *strict) limit() int {
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

// chunk begins a chunk, or the trailers.
func (s *strict) chunk(line []byte) error {
	digits := string(line[:len(line)-2])
	size, err := strconv.ParseUint(digits, 16, 63)
	if err != nil || digits == "" || digits[0] == '+' {
		return s.malformed("the size of a chunk is not a plain number")
	}
	s.out = line
	if size == 0 {
		s.state = inTrailers
		return nil
	}
	s.state, s.left, s.after = inData, int64(size), inChunkEnd
	return nil
}

// block ends a head or trailers.
func (s *strict) block() error {
	block := s.head
	s.head = nil
	if s.state == inTrailers {
		if why := checkTrailers(block); why != "" {
			return s.malformed(why)
		}
		s.out, s.state = block, inHead
		return nil
	}
	f, why := checkHead(block)
	switch {
	case why != "":
		return s.malformed(why)
	case f.chunked:
		s.state = inChunkSize
	case f.length > 0:
		s.state, s.left, s.after = inData, f.length, inHead
	}
	s.out = block
	s.open.Add(1)
	return nil
}

// malformed ends the stream: where a head is expected with a request that marks the
// refusal, within a body with an error.
func (s *strict) malformed(why string) error {
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
