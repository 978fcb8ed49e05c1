// SPDX-License-Identifier: Apache-2.0

package nodetest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Directories of nodes. They are short, and not below the test's: the path of a socket
// has at most 107 bytes, of which runsc's have 83 below Root.
const (
	parent = "/tmp"
	prefix = "fhn"
)

// newDir makes a directory, which is this process's while the returned lock is open.
func newDir() (string, *os.File, error) {
	dir, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return "", nil, err
	}
	if err := os.Chmod(dir, 0o711); err != nil { // the sentry's user passes through
		return "", nil, err
	}
	lock, err := lockDir(dir)
	return dir, lock, err
}

// lockDir locks a directory until the file is closed, or the process ends.
func lockDir(dir string) (*os.File, error) {
	file, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// sweep removes the nodes of processes that ended without doing so, such as a test that
// reached its time limit.
func sweep() error {
	dirs, err := filepath.Glob(filepath.Join(parent, prefix+"[0-9]*"))
	for _, dir := range dirs {
		err = errors.Join(err, sweepDir(dir))
	}
	return err
}

// sweepDir removes the node in dir if no process has its lock. A directory that is
// younger than a minute may not have been locked yet.
func sweepDir(dir string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || !info.IsDir() || info.Sys().(*syscall.Stat_t).Uid != 0 ||
		time.Since(info.ModTime()) < time.Minute {
		return err
	}
	lock, err := lockDir(dir)
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	return at(dir).force()
}
