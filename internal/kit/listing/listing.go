// SPDX-License-Identifier: Apache-2.0

// Package listing is the form in which gVisor's kernel lists a directory, and all that is below it,
// for the sandbox's init. Both ends come from one commit.
//
// # Format
//
// A listing is a sequence of records, each of which begins with a byte. Numbers are little-endian.
//
//	'/'   a directory is listed next   length 2 bytes, path; "" for the root of the listing
//	kind  an entry of that directory   length 2 bytes, size, mtime, ctime, inode and mapped 8 bytes each, name
//	'?'   something cannot be listed
//	'.'   the end
//
// A directory comes after its entry in the one above. Times are in nanoseconds.
package listing

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"syscall"
)

// What an entry is.
const (
	File      = 'f'
	Directory = 'd'
	Symlink   = 'l'
	Other     = 'o'
	Whiteout  = 'w' // hides what is below it in an overlay
	Opaque    = 'D' // a directory that hides the one below it in an overlay
	Unread    = '?' // not an entry: something that cannot be listed
)

const (
	listDirectory = '/'
	end           = '.'
)

// OpaqueName is the extended attribute of an opaque directory, and OpaqueValue its value.
const (
	OpaqueName  = "trusted.overlay.opaque"
	OpaqueValue = "y"
)

// KindOf returns what a file with this mode and device is. A directory may still be opaque.
func KindOf(mode uint32, device uint64) byte {
	switch mode & syscall.S_IFMT {
	case syscall.S_IFREG:
		return File
	case syscall.S_IFDIR:
		return Directory
	case syscall.S_IFLNK:
		return Symlink
	case syscall.S_IFCHR:
		if device == 0 {
			return Whiteout
		}
	}
	return Other
}

// An Entry is what a directory has under one name.
type Entry struct {
	Kind               byte
	Size, Mtime, Ctime int64
	Inode              uint64
	Mapped             uint64 // a number that is another one if a process could write through a mapping since
	Path               []byte // relative to the root of the listing; valid until the next call of Next
}

const entryHeader = 1 + 2 + 5*8

// AppendDirectory appends that the next entries are those of the directory at path.
func AppendDirectory(b []byte, path string) []byte {
	b = append(b, listDirectory)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(path)))
	return append(b, path...)
}

// AppendEntry appends an entry. Its path is not used.
func AppendEntry(b []byte, name string, e Entry) []byte {
	b = append(b, e.Kind)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(name)))
	for _, n := range [...]uint64{uint64(e.Size), uint64(e.Mtime), uint64(e.Ctime), e.Inode, e.Mapped} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return append(b, name...)
}

// AppendUnread appends that something cannot be listed.
func AppendUnread(b []byte) []byte { return append(b, Unread) }

// AppendEnd appends the end.
func AppendEnd(b []byte) []byte { return append(b, end) }

// A Reader reads a listing.
type Reader struct {
	r    *bufio.Reader
	dir  int // the length of the directory's path in path, with a slash
	path []byte
}

// NewReader returns a Reader of r.
func NewReader(r io.Reader) *Reader { return &Reader{r: bufio.NewReaderSize(r, 256<<10)} }

// Next returns the next entry, or one of the kind Unread. At the listing's end it returns io.EOF, and if that
// is missing, io.ErrUnexpectedEOF.
func (r *Reader) Next() (Entry, error) {
	for {
		e, err := r.readRecord()
		if err != nil || e.Kind != listDirectory {
			return e, err
		}
	}
}

func (r *Reader) readRecord() (Entry, error) {
	kind, err := r.r.ReadByte()
	if err != nil {
		return Entry{}, convertEOF(err)
	}
	switch kind {
	case end:
		return Entry{}, io.EOF
	case Unread:
		return Entry{Kind: Unread}, nil
	case listDirectory:
		return Entry{Kind: listDirectory}, r.readDirectory()
	case File, Directory, Symlink, Other, Whiteout, Opaque:
		return r.readEntry(kind)
	}
	return Entry{}, fmt.Errorf("listing with a record %q", kind)
}

func (r *Reader) readDirectory() error {
	head, err := r.r.Peek(2)
	if err != nil {
		return convertEOF(err)
	}
	length := int(binary.LittleEndian.Uint16(head))
	r.dir = 0
	if err := r.readName(2, length); err != nil {
		return err
	}
	if length > 0 {
		r.path = append(r.path, '/')
	}
	r.dir = len(r.path)
	return nil
}

func (r *Reader) readEntry(kind byte) (Entry, error) {
	const size = entryHeader - 1
	head, err := r.r.Peek(size)
	if err != nil {
		return Entry{}, convertEOF(err)
	}
	number := func(at int) uint64 { return binary.LittleEndian.Uint64(head[2+8*at:]) }
	e := Entry{Kind: kind, Size: int64(number(0)), Mtime: int64(number(1)), Ctime: int64(number(2)), Inode: number(3),
		Mapped: number(4)}
	err = r.readName(size, int(binary.LittleEndian.Uint16(head)))
	e.Path = r.path
	return e, err
}

// readName puts length bytes, which follow the next skip ones, behind the directory's path.
func (r *Reader) readName(skip, length int) error {
	both, err := r.r.Peek(skip + length)
	if err != nil {
		return convertEOF(err)
	}
	r.path = append(r.path[:r.dir], both[skip:]...)
	_, err = r.r.Discard(len(both))
	return err
}

func convertEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
