// SPDX-License-Identifier: Apache-2.0

package image

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
)

// An Entry is one file of an image.
type Entry struct {
	Path     string      // slash-separated, relative, clean; "." is the root
	Mode     fs.FileMode // type and permissions; setuid and setgid are dropped; devices, sockets and pipes are refused
	UID, GID uint32
	ModTime  time.Time
	Link     string // target of a symbolic link, not interpreted
	Hard     string // path of an earlier regular file that this is another name of; all else is the file's
	Size     int64  // bytes of a regular file
}

// A Writer writes one image. It is for one goroutine.
type Writer struct {
	o     Options
	path  string
	file  *os.File
	out   output
	root  *node
	count int
	err   error // the first one

	private bool // Close returns no digest
}

// Create begins an image in a new file, which only this user can read.
func Create(path string, o Options) (*Writer, error) {
	o.MaxFiles, o.MaxBytes = cmp.Or(o.MaxFiles, DefaultMaxFiles), cmp.Or(o.MaxBytes, DefaultMaxBytes)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, cannotWrite(path, err)
	}
	w := &Writer{o: o, path: path, file: file, count: 1, root: newDirectory("")}
	w.out = newOutput(file, o.MaxBytes)
	return w, nil
}

// Add adds an entry. Entries come in any order; a directory that is not added belongs to
// root, with mode 0755. content is that of a regular file, exactly Size bytes, and may be
// nil for others.
//
// An error is a *proposal.StopError and final: every later Add and Close return it.
// Paths that occur twice, are not clean or are below something that is not a directory
// are errors, and content that is shorter or longer than Size.
func (w *Writer) Add(e Entry, content io.Reader) error {
	if w.err == nil {
		w.err = w.addEntry(e, content)
	}
	return w.err
}

func (w *Writer) addEntry(e Entry, content io.Reader) error {
	if err := checkEntry(e); err != nil {
		return err
	}
	if e.Path == "." {
		return w.root.setEntry(e)
	}
	parent, name, err := w.parentOf(e.Path)
	if err != nil {
		return err
	}
	if e.Hard != "" {
		return w.addHardLink(parent, name, e)
	}
	if old := parent.children[name]; old != nil {
		return old.setEntry(e)
	}
	n, err := w.newNode(parent, name, e.Path)
	if err != nil {
		return err
	}
	if err := n.setEntry(e); err != nil || !e.Mode.IsRegular() {
		return err
	}
	return w.copyContent(n, e, content)
}

// parentOf returns the directory that has path, which it makes if there is none.
func (w *Writer) parentOf(path string) (*node, string, error) {
	dir := w.root
	for {
		first, rest, more := strings.Cut(path, "/")
		if !more {
			return dir, first, nil
		}
		next := dir.children[first]
		if next == nil {
			var err error
			if next, err = w.newNode(dir, first, path); err != nil {
				return nil, "", err
			}
			next.replaceWith(newDirectory(first))
		}
		if !next.isDir() {
			return nil, "", entryError(path, "a parent of it is not a directory")
		}
		dir, path = next, rest
	}
}

func (w *Writer) newNode(parent *node, name, path string) (*node, error) {
	if w.count++; w.count > w.o.MaxFiles {
		return nil, tooLarge("files", int64(w.o.MaxFiles))
	}
	n := &node{name: name, implied: true}
	parent.children[name] = n
	return n, nil
}

func (w *Writer) addHardLink(parent *node, name string, e Entry) error {
	target := w.findNode(e.Hard)
	if target == nil || !target.mode.IsRegular() || target.implied {
		return entryError(e.Path, "it is a hard link to what is not an earlier regular file")
	}
	if parent.children[name] != nil {
		return entryError(e.Path, "the path occurs twice")
	}
	if w.count++; w.count > w.o.MaxFiles {
		return tooLarge("files", int64(w.o.MaxFiles))
	}
	parent.children[name] = target
	target.links++
	return nil
}

func (w *Writer) copyContent(n *node, e Entry, content io.Reader) error {
	if content == nil {
		content = strings.NewReader("")
	}
	from := &source{content: content}
	block, err := w.out.copyPadded(from, e.Size)
	n.size, n.block = e.Size, block
	switch {
	case from.err != nil:
		return unreadableError(e.Path, from.err)
	case errors.Is(err, errLength):
		return changedError(e.Path, err)
	}
	return w.wrapError(err)
}

// A source remembers an error of its own, to distinguish it from one of the image.
type source struct {
	content io.Reader
	err     error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.content.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// wrapError makes an error of the image file a StopError.
func (w *Writer) wrapError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errFull):
		return tooLarge("bytes", w.o.MaxBytes)
	default:
		return cannotWrite(w.path, err)
	}
}

// Has reports whether the image has path so far, and its type and permissions.
func (w *Writer) Has(path string) (fs.FileMode, bool) {
	n := w.findNode(path)
	if n == nil {
		return 0, false
	}
	return n.mode, true
}

func (w *Writer) findNode(path string) *node {
	n := w.root
	if path == "." {
		return n
	}
	for name := range strings.SplitSeq(path, "/") {
		if n = n.children[name]; n == nil {
			return nil
		}
	}
	return n
}

// Abort removes the unfinished image. After Close or Abort it does nothing.
func (w *Writer) Abort() {
	if w.file != nil {
		w.file.Close()
		os.Remove(w.path)
		w.file = nil
	}
	w.err = cmp.Or(w.err, error(fs.ErrClosed))
}

// Close writes the metadata and returns the digest of the whole file, "sha256:" and 64
// digits, and its size in bytes. After an error there is no file.
func (w *Writer) Close() (digest string, size int64, err error) {
	defer w.Abort()
	if w.err != nil {
		return "", 0, w.err
	}
	if err := w.writeMetadata(); err != nil {
		return "", 0, w.wrapError(err)
	}
	if size = w.out.offset; !w.private {
		digest, size, err = digestOf(w.file)
	}
	if err == nil {
		err = w.file.Close()
	}
	if err != nil {
		return "", 0, cannotWrite(w.path, err)
	}
	w.file = nil // Abort keeps the file
	return digest, size, nil
}
