// SPDX-License-Identifier: Apache-2.0

package outlet

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// unread begins the names of the folders for what no search has read yet.
const unread = "fumehood-unread-"

// A folder is one that its process holds a lock on. The lock ends with the process,
// however that ends: a folder without one is nobody's, and the next run removes it.
type folder struct {
	path string
	lock *os.File
}

// Raw makes the folder that the sandbox leaves its files in, where nobody else looks,
// and removes those of runs that were killed.
func (u *Outlet) Raw() (string, error) {
	if u.raw != nil {
		return u.raw.path, nil
	}
	removeForsaken()
	f, err := newFolder()
	if err != nil {
		return "", &proposal.StopError{Code: "output.unreadable", Message: "cannot make a folder for what commands leave", Hint: "make room in the folder for temporary files (TMPDIR)", Err: err}
	}
	u.raw = f
	return f.path, nil
}

// Close removes what was not taken out.
func (u *Outlet) Close() error {
	if u == nil || u.raw == nil {
		return nil
	}
	return u.raw.remove()
}

// newFolder tries again when another process took the folder for a forsaken one in the
// moment before it was locked.
func newFolder() (*folder, error) {
	for {
		dir, err := os.MkdirTemp("", unread)
		if err == nil {
			dir, err = filepath.EvalSymlinks(dir)
		}
		if err != nil {
			return nil, err
		}
		f, err := locked(dir)
		if err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.EWOULDBLOCK) {
			return f, err
		}
	}
}

// locked opens a folder of this user and locks it; one that was removed meanwhile does
// not exist.
func locked(dir string) (*folder, error) {
	file, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = owned(file, dir)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &folder{dir, file}, nil
}

func owned(file *os.File, dir string) error {
	held, err := file.Stat()
	if err != nil {
		return err
	}
	now, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, known := held.Sys().(*syscall.Stat_t)
	if !os.SameFile(held, now) || !known || int(stat.Uid) != os.Geteuid() {
		return fs.ErrNotExist
	}
	return nil
}

func (f *folder) remove() error {
	return errors.Join(os.RemoveAll(f.path), f.lock.Close())
}

// removeForsaken does what it can: what cannot be removed now is tried again by the
// next run, and is no reason not to run.
func removeForsaken() {
	list, _ := os.ReadDir(os.TempDir()) // no pattern: the folder's name may look like one
	for _, x := range list {
		if !strings.HasPrefix(x.Name(), unread) {
			continue
		}
		if f, err := locked(filepath.Join(os.TempDir(), x.Name())); err == nil {
			_ = f.remove()
		}
	}
}
