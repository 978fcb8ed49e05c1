// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/fumehood/fumehood/pkg/proposal"
)

var errTooLong = errors.New("it is too long")

// decodeBounded decodes a JSON document with at most max values into v. A few bytes of a document can
// be a large value in memory.
func decodeBounded(data []byte, max int, v any) error {
	if n := countValues(data); n > max {
		return invalidAnswer(fmt.Errorf("it has more than %d values", max))
	}
	if err := json.Unmarshal(data, v); err != nil {
		return invalidAnswer(err)
	}
	return nil
}

// countValues returns an upper bound of the number of JSON values in data.
func countValues(data []byte) int {
	n, inside := 1, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inside && c == '\\':
			i++
		case c == '"':
			inside = !inside
		case !inside && (c == ',' || c == '[' || c == '{'):
			n++
		}
	}
	return n
}

// A reader reads lines, each of at most max bytes, and at most left bytes together.
type reader struct {
	in   *bufio.Reader
	max  int
	left int64
	lost func(error) error // the error of a connection
}

func (c *Client) newReader(in io.Reader, max int, left int64) *reader {
	return &reader{bufio.NewReaderSize(in, 32<<10), max, left, c.lost}
}

// readLine returns the next line. The connection's error is lost's, others are invalidAnswer's.
func (r *reader) readLine() (line []byte, err error) {
	for {
		piece, err := r.in.ReadSlice('\n')
		if r.left -= int64(len(piece)); len(line)+len(piece) > r.max || r.left < 0 {
			return nil, invalidAnswer(errTooLong)
		}
		line = append(line, piece...)
		if err == nil {
			return line, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, r.lost(err)
		}
	}
}

// minEvent is what an event counts at least, so that many small ones have an end.
const minEvent = 64

// readEvent returns the next event.
func (r *reader) readEvent(values int) (e event, err error) {
	line, err := r.readLine()
	if err != nil {
		return e, err
	}
	r.left -= max(minEvent-int64(len(line)), 0)
	if err := decodeBounded(line, values, &e); err != nil {
		return e, err
	}
	return e, checkEvent(e)
}

// checkEvent refuses an event that says nothing, or more than one thing.
func checkEvent(e event) error {
	n := 0
	for _, is := range []bool{e.ID != "", e.Output != nil, e.Record != nil, e.Error != nil, e.Started, e.Alive,
		e.Ended} {
		if is {
			n++
		}
	}
	if n != 1 || len(e.ID) > 64 {
		return invalidAnswer(errors.New("an event is not one thing"))
	}
	if e.Output != nil {
		return checkChunk(*e.Output)
	}
	return nil
}

func checkChunk(c proposal.Chunk) error {
	shows := c.Stream == proposal.ChunkDisplay
	if !shows && c.Stream != proposal.ChunkStdout && c.Stream != proposal.ChunkStderr || c.Dropped < 0 ||
		!shows && c.Display != nil || shows && len(c.Data) > 0 {
		return invalidAnswer(errors.New("an output is invalid"))
	}
	return nil
}
