// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Writer writes decisions, a line each. A regular file gets its name only when it is complete. Its errors are
// *proposal.StopErrors with the code decisions.not-writable.
type Writer struct {
	w     *bufio.Writer
	file  *os.File // nil for a writer of the caller's
	final string   // what file will be called, when that is not its name yet
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: bufio.NewWriter(w)} }

// Create returns a Writer to the file at path. Close or Abandon must be called.
func Create(path string) (*Writer, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // a pipe or a terminal
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		return newFile(f, "", err)
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".decisions-*")
	return newFile(f, path, err)
}

func newFile(f *os.File, final string, err error) (*Writer, error) {
	if err != nil {
		return nil, notWritable(err)
	}
	return &Writer{w: bufio.NewWriter(f), file: f, final: final}, nil
}

func notWritable(err error) error {
	if err == nil {
		return nil
	}
	return &proposal.StopError{Code: "decisions.not-writable", Message: "cannot write the export",
		Hint: "name a file in an existing directory", Err: err}
}

// Write writes d. It may be passed to Log and Report.
func (w *Writer) Write(d Decision) error {
	line, err := EncodeLine(d)
	if err != nil {
		return err
	}
	_, err = w.w.Write(line)
	return notWritable(err)
}

// Close gives a file its name. After an error there is no file.
func (w *Writer) Close() error {
	err := w.w.Flush()
	if w.file == nil {
		return notWritable(err)
	}
	if err = errors.Join(err, w.file.Close()); err == nil {
		err = w.publishFile()
	}
	if err != nil {
		w.removeTemporary()
	}
	return notWritable(err)
}

func (w *Writer) publishFile() error {
	if w.final == "" {
		return nil
	}
	if err := os.Chmod(w.file.Name(), 0o644); err != nil {
		return err
	}
	return os.Rename(w.file.Name(), w.final)
}

// Abandon leaves no file that looks complete. What went to a pipe is gone.
func (w *Writer) Abandon() {
	if w.file == nil {
		_ = w.w.Flush()
		return
	}
	w.file.Close()
	w.removeTemporary()
}

func (w *Writer) removeTemporary() {
	if w.final != "" {
		_ = os.Remove(w.file.Name())
	}
}
