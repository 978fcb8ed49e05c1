// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"os"
)

const blockSize = 4096

var (
	errLength = errors.New("the content is not as long as announced")
	errFull   = errors.New("the image is full")
)

var zeros [blockSize]byte

// An output is the image file, written from its second block on.
type output struct {
	file   *os.File
	buffer *bufio.Writer
	offset int64
	limit  int64
}

func newOutput(file *os.File, limit int64) output {
	return output{file: file, buffer: bufio.NewWriterSize(&sparse{file: file, offset: blockSize}, 1<<20),
		offset: blockSize, limit: limit}
}

// reserveBlock returns the block that is written next, and an error unless size more bytes fit.
func (o *output) reserveBlock(size int64) (uint32, error) {
	block := o.offset / blockSize
	if size > o.limit || o.offset > o.limit-roundUp(size) || block > math.MaxUint32 {
		return 0, errFull
	}
	return uint32(block), nil
}

// copyPadded writes exactly size bytes of content, padded, and returns the block where they
// begin.
func (o *output) copyPadded(content io.Reader, size int64) (uint32, error) {
	start, err := o.reserveBlock(size)
	if err != nil {
		return 0, err
	}
	n, err := io.CopyN(o.buffer, content, size)
	o.offset += n
	if err == io.EOF {
		return 0, errLength
	}
	if err != nil {
		return 0, err
	}
	var more [1]byte
	if n, _ := io.ReadFull(content, more[:]); n > 0 {
		return 0, errLength
	}
	if size == 0 {
		return 0, nil
	}
	return start, o.padBlock()
}

// writePadded writes data, padded, and returns the block where it begins.
func (o *output) writePadded(data []byte) (uint32, error) {
	return o.copyPadded(bytes.NewReader(data), int64(len(data)))
}

func (o *output) padBlock() error {
	n, err := o.buffer.Write(zeros[:roundUp(o.offset)-o.offset])
	o.offset += int64(n)
	return err
}

func roundUp(n int64) int64 { return (n + blockSize - 1) &^ (blockSize - 1) }

// sparse writes a file, leaving holes where whole buffers are zeros, so that a sparse
// file does not fill the disk.
type sparse struct {
	file   *os.File
	offset int64
}

func (s *sparse) Write(data []byte) (int, error) {
	if !allZero(data) {
		if n, err := s.file.WriteAt(data, s.offset); err != nil {
			return n, err
		}
	}
	s.offset += int64(len(data))
	return len(data), nil
}

func allZero(data []byte) bool {
	for len(data) > 0 {
		n := min(len(data), blockSize)
		if !bytes.Equal(data[:n], zeros[:n]) {
			return false
		}
		data = data[n:]
	}
	return true
}
