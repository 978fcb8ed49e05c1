// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A file is what a Log needs from its open file.
type file interface {
	io.Writer
	io.Closer
	Sync() error
	Stat() (fs.FileInfo, error)
}

// createFile creates a new file that no other user may read or append to.
func createFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, &proposal.StopError{
			Code: "audit.exists", Message: fmt.Sprintf("the audit log %q exists already", path), Err: err,
			Hint: "name a new file, or move the old log away",
		}
	}
	if err != nil {
		return nil, writeError(path, err)
	}
	if err := lockFile(path, f); err != nil {
		return nil, errors.Join(err, discardFile(path, f))
	}
	return f, nil
}

// discardFile closes a new file and removes it, unless its name now belongs to another file.
func discardFile(path string, f file) error {
	made, err := f.Stat()
	if named, gone := os.Lstat(path); err == nil && gone == nil && os.SameFile(made, named) {
		err = os.Remove(path)
	}
	return errors.Join(err, f.Close())
}

// lockFile keeps a second fumehood from appending. It ends when the file is closed.
func lockFile(path string, f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return nil
	}
	return &proposal.StopError{
		Code: "audit.locked", Message: fmt.Sprintf("another process appends to the audit log %q", path), Err: err,
		Hint: "wait until it has ended, or name another file",
	}
}

// syncDir makes the file's name durable across a crash, not only its content.
func syncDir(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// checkUnchanged checks that path still names the open file and that it is as long as this
// process left it.
func checkUnchanged(path string, f file, size int64) error {
	open, err := f.Stat()
	if err != nil {
		return writeError(path, err)
	}
	named, err := os.Lstat(path)
	if err == nil && !os.SameFile(open, named) {
		err = errors.New("the name belongs to another file now")
	}
	if err == nil && open.Size() != size {
		err = fmt.Errorf("it has %d bytes where %d were written", open.Size(), size)
	}
	if err == nil {
		return nil
	}
	return &proposal.StopError{
		Code: "audit.replaced", Message: fmt.Sprintf("the audit log %q was replaced or changed while it was open",
			path), Err: err,
		Hint: "find out what else writes there, and keep the log where only fumehood can write",
	}
}

func writeError(path string, err error) error {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, full) {
			return &proposal.StopError{
				Code: "audit.full", Message: fmt.Sprintf("no space to write the audit log %q", path), Err: err,
				Hint: "free disk space or quota, or put the log on another file system",
			}
		}
	}
	return &proposal.StopError{
		Code: "audit.not-writable", Message: fmt.Sprintf("cannot write the audit log %q", path), Err: err,
		Hint: "give a path in an existing directory that this user may write to",
	}
}
