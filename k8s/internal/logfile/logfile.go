// SPDX-License-Identifier: Apache-2.0

// Package logfile is what a gate and the readers of its log agree on about the file: the gate holds a
// lock on it as long as it lives. Readers only ask, so that none can be in a gate's way.
package logfile

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Lock opens a file and locks it until it is closed, or this process ends.
func Lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK,
		&unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot lock %s: %w", path, err), f.Close())
	}
	return f, nil
}

// Locked reports whether there is a lock on the file.
func Locked(f *os.File) (bool, error) {
	lock := unix.Flock_t{Type: unix.F_RDLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
		return false, fmt.Errorf("cannot ask for the lock of %s: %w", f.Name(), err)
	}
	return lock.Type != unix.F_UNLCK, nil
}
