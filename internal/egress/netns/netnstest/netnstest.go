// SPDX-License-Identifier: Apache-2.0

// Package netnstest makes empty network namespaces for tests, and runs functions in them. It needs
// the permission to make namespaces.
package netnstest

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// New returns a descriptor of a new network namespace, which exists as long as it is open.
func New() (fd int, err error) {
	err = inThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		fd, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		return err
	})
	return fd, err
}

// RunInNamespace calls f in a namespace: the sockets and processes that f itself makes stay there. It
// returns f's error.
func RunInNamespace(ns int, f func() error) error {
	return inThread(func() error {
		if err := unix.Setns(ns, unix.CLONE_NEWNET); err != nil {
			return err
		}
		return f()
	})
}

// inThread calls f in a thread that ends afterwards, because it is never unlocked.
func inThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- f()
	}()
	return <-done
}
