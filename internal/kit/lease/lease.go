// SPDX-License-Identifier: Apache-2.0

// Package lease creates directories in a place where other processes create and clean up
// their directories at the same time, such as /tmp or /run.
//
// A leased directory belongs to the process that holds the lock on it. The kernel
// releases the lock when that process ends, however it ends. An unlocked directory is
// therefore abandoned, and Sweep in any process removes it.
//
// The package promises:
//
//   - Make returns a directory that no Sweep removes while its Dir is open.
//   - Sweep and Take lock a directory before anything in it is removed, and never touch
//     one that another process holds.
//   - A lock counts only if the locked directory still has its name, belongs to this
//     user and is writable by no other user. A symbolic link is never followed.
//
// It does not protect against root or another process of this user that ignores the
// locks. Make fails on file systems without locks on directories, such as some NFS.
//
// # Why
//
// A directory cannot be created and locked in one step. Between the two it looks
// abandoned, and a Sweep may remove it. Locking the parent first would prevent that, but
// any user can lock /tmp. So Make checks after locking that the directory is still there,
// and creates another one if it is not. A process sweeps only once, so the retries end.
package lease

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrHeld means that another process holds the lock.
var ErrHeld = errors.New("another process holds the lock on the directory")

// attempts is more than the number of processes that can be sweeping at once.
const attempts = 1000

// A Dir is a directory whose lock this process holds, until the Dir is closed or no
// longer reachable.
type Dir struct {
	Path string // absolute and without symbolic links if Make made it

	lock *os.File
	own  *os.Root // the locked directory, even if it was renamed
}

// Make creates a directory in parent that only this user may enter. Its name is prefix
// followed by a random suffix.
func Make(parent, prefix string) (*Dir, error) {
	parent, err := filepath.Abs(parent)
	if err == nil {
		parent, err = filepath.EvalSymlinks(parent)
	}
	if err != nil {
		return nil, err
	}
	for range attempts {
		path := filepath.Join(parent, prefix+rand.Text())
		if err := os.Mkdir(path, 0o700); err != nil {
			return nil, err
		}
		d, err := Take(path)
		switch {
		case err == nil:
			return d, nil
		case !errors.Is(err, ErrHeld) && !errors.Is(err, fs.ErrNotExist):
			return nil, errors.Join(err, os.Remove(path))
		}
	}
	return nil, fmt.Errorf("cannot keep a directory in %q: other processes remove each one at once", parent)
}

// Take locks an existing directory of this user. The error is ErrHeld if another process
// holds it, and fs.ErrNotExist if it is gone or its name belongs to another directory.
func Take(path string) (*Dir, error) {
	lock, err := lockNamed(path, syscall.LOCK_EX)
	if err != nil {
		return nil, err
	}
	d := &Dir{Path: path, lock: lock}
	if err = checkOwned(lock); err == nil {
		// By the open file, not by name: where others may rename it, the name could
		// belong to something else by now.
		d.own, err = os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", lock.Fd()))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot use directory %q: %v", path, err), d.Close())
	}
	return d, nil
}

// Share locks a directory of any user with a shared lock. While the file is open, Take
// returns ErrHeld. The errors are those of Take.
func Share(path string) (*os.File, error) { return lockNamed(path, syscall.LOCK_SH) }

// lockNamed locks a directory and checks that it still has its name afterwards. The open
// uses O_DIRECTORY, so that another user's FIFO cannot block it.
func lockNamed(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrHeld
	}
	if err == nil {
		err = stillNamed(f, path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func stillNamed(f *os.File, path string) error {
	locked, err := f.Stat()
	if err != nil {
		return err
	}
	named, err := os.Lstat(path)
	if err == nil && !os.SameFile(locked, named) {
		err = fs.ErrNotExist
	}
	return err
}

// checkOwned refuses a directory in which another user could change anything.
func checkOwned(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fs.ErrPermission
	}
	return nil
}

// ReadFile reads a file in the directory.
func (d *Dir) ReadFile(name string) ([]byte, error) { return d.own.ReadFile(name) }

// Remove removes the directory and its contents, and then releases the lock. What could
// not be removed is abandoned.
func (d *Dir) Remove() error {
	list, err := fs.ReadDir(d.own.FS(), ".")
	for _, x := range list {
		err = errors.Join(err, d.own.RemoveAll(x.Name()))
	}
	if err == nil {
		err = syscall.Rmdir(d.Path)
	}
	return errors.Join(err, d.Close())
}

// Close releases the lock and keeps the directory, which is abandoned from then on.
func (d *Dir) Close() error {
	err := d.lock.Close()
	if d.own != nil {
		err = errors.Join(err, d.own.Close())
	}
	return err
}

// Sweep calls remove with each abandoned directory of this user in parent whose name
// begins with prefix. It holds the directory's lock during the call. Errors are ignored:
// the next Sweep tries again.
func Sweep(parent, prefix string, remove func(*Dir) error) {
	list, _ := os.ReadDir(parent) // not filepath.Glob: parent's name may look like a pattern
	for _, x := range list {
		if !strings.HasPrefix(x.Name(), prefix) {
			continue
		}
		if d, err := Take(filepath.Join(parent, x.Name())); err == nil {
			_ = remove(d)
			_ = d.Close()
		}
	}
}
