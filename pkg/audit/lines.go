// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"errors"
	"io"
)

var errLineTooLong = errors.New("line is longer than any line of a log")

// lines reads lines of at most maxLine bytes.
type lines struct {
	r   *bufio.Reader
	buf []byte
}

// nextLine returns the next line with its newline. At the end of the file a line without
// a newline counts only if it has bytes. The line is valid until the next call.
func (l *lines) nextLine() ([]byte, error) {
	l.buf = l.buf[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		if err == nil && len(l.buf) == 0 && len(part) <= maxLine {
			return part, nil
		}
		if len(l.buf)+len(part) > maxLine {
			return nil, errLineTooLong
		}
		l.buf = append(l.buf, part...)
		switch {
		case err == nil:
			return l.buf, nil
		case err == io.EOF && len(l.buf) > 0:
			return l.buf, nil
		case err != bufio.ErrBufferFull:
			return nil, err
		}
	}
}
