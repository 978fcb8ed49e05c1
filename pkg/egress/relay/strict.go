// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"bufio"
	"errors"
	"net"
	"strconv"
	"sync/atomic"
)

// A strict stands before a server of HTTP/1 and lets it see only requests that any two
// servers would read alike: where one ends and the next begins is plain. In the place
// of a head that is not, the server reads one request of refusedMethod, and then the
// end.
type strict struct {
	net.Conn
	in    *bufio.Reader
	out   []byte // checked, and not yet read
	head  []byte // whole lines of a head or of trailers
	line  []byte
	state strictState
	left  int64 // of a body or a chunk
	after strictState
	bad   atomic.Pointer[string]
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

func newStrict(c net.Conn) *strict {
	return &strict{Conn: c, in: bufio.NewReaderSize(c, smallBuffer)}
}

// why says what was wrong with what came last; "" is nothing.
func (s *strict) why() string {
	if why := s.bad.Load(); why != nil {
		return *why
	}
	return ""
}

// CloseWrite says that no more comes.
func (s *strict) CloseWrite() error { return closeWrite(s.Conn) }

// Read may be ended by a deadline and called again: nothing is lost.
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

// data passes on what is left of a body or a chunk.
func (s *strict) data(p []byte) (int, error) {
	n, err := s.in.Read(p[:min(int64(len(p)), s.left)])
	if s.left -= int64(n); s.left == 0 {
		s.state = s.after
	}
	return n, err
}

// step takes one line and decides what it is.
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

// takeLine adds to line until it ends as lines must.
func (s *strict) takeLine() (bool, error) {
	part, err := s.in.ReadSlice('\n')
	s.line = append(s.line, part...)
	if len(s.head)+len(s.line) > s.most() {
		return false, s.malformed("a head, or a line of a chunk, is too long")
	}
	if err == bufio.ErrBufferFull {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if why := lineShape(s.line); why != "" {
		return false, s.malformed(why)
	}
	return true, nil
}

func (s *strict) most() int {
	switch s.state {
	case inHead:
		return maxHead
	case inTrailers:
		return maxTrailers
	}
	return maxChunkLine + 2
}

// lineShape says what is wrong with a line, its end included.
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
		return s.malformed("the size of a chunk is no plain number")
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
	return nil
}

// malformed ends the stream: before a head with a request that says so, within a body
// with an error.
func (s *strict) malformed(why string) error {
	s.bad.Store(&why)
	state := s.state
	s.state, s.head, s.line = atEnd, nil, nil
	if state == inHead {
		s.out = []byte(refusedHead)
		return nil
	}
	return errMalformed
}
