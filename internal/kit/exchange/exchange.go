// SPDX-License-Identifier: Apache-2.0

// Package exchange reads and writes files in a directory that other users may write to at the
// same time, such as one that a runner restored from a cache.
//
// No link is followed, not even where the directory itself should be, and nothing but a regular
// file is read. What a file contains is anyone's: the caller must bound it, and verify a copy that
// others cannot change.
package exchange

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// A Dir is an open directory.
type Dir struct{ f *os.File }

// Open opens the directory at path. The error is fs.ErrNotExist if there is none.
func Open(path string) (*Dir, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	return &Dir{f}, nil
}

// Close closes the directory.
func (d *Dir) Close() error { return d.f.Close() }

// ReadEntries returns entries of the directory, at most max.
func (d *Dir) ReadEntries(max int) ([]fs.DirEntry, error) {
	list, err := d.f.ReadDir(max)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return list, err
}

// Open opens the regular file called name for reading. The error is fs.ErrNotExist if there is
// none.
func (d *Dir) Open(name string) (*os.File, error) {
	f, err := d.openAt(name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Put writes the file called name for the owner of the directory. It replaces what has that name,
// and appears complete or not at all.
func (d *Dir) Put(name string, write func(io.Writer) error) error {
	var owner unix.Stat_t
	if err := unix.Fstat(d.fd(), &owner); err != nil {
		return err
	}
	fresh := name + "." + rand.Text() // others may put the same name
	into, err := d.openAt(fresh, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return err
	}
	err = errors.Join(write(into), into.Chown(int(owner.Uid), int(owner.Gid)), into.Close())
	if err == nil {
		err = unix.Renameat(d.fd(), fresh, d.fd(), name)
	}
	if err != nil {
		return errors.Join(err, unix.Unlinkat(d.fd(), fresh, 0))
	}
	return nil
}

func (d *Dir) fd() int { return int(d.f.Fd()) }

// openAt opens a file of the directory, and not where a link leads.
func (d *Dir) openAt(name string, flags int) (*os.File, error) {
	fd, err := unix.Openat(d.fd(), name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}
