// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/egress/segment"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	device  = "eth0"
	tunPath = "/dev/net/tun"
)

// Make makes a network. It needs permission to make namespaces and devices: without
// it, it returns a *proposal.StopError with code network.unavailable that names what
// is missing.
func Make(c Config) (*Namespace, error) {
	if c.Segment.MTU == 0 {
		c.Segment = segment.Default()
	}
	if err := c.Segment.Check(); err != nil {
		return nil, err
	}
	var n *Namespace
	err := inThread(func() (err error) {
		n, err = makeHere(c.Segment)
		return err
	})
	if err != nil {
		return nil, err
	}
	return n, nil
}

// Restore gives the device its addresses and routes again after a sandbox, which has ended, has taken them.
func (n *Namespace) Restore() error {
	return inThread(func() error {
		if err := unix.Setns(int(n.File.Fd()), unix.CLONE_NEWNET); err != nil {
			return missingSupportError("enter the network namespace", err)
		}
		_, err := assignAddresses(n.Segment)
		return err
	})
}

// CheckAvailable returns the error that Make would return.
func CheckAvailable() error {
	n, err := Make(Config{})
	if err != nil {
		return err
	}
	return n.Close()
}

// inThread calls f in a thread that ends afterwards, whatever f changed in it.
func inThread(f func() error) error {
	done := make(chan error)
	go func() {
		// Never unlocked: the thread ends with the goroutine.
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			done <- f()
			return
		}
		// The process's first thread cannot end, and /proc/PID/ns refers to it. While
		// it is locked here, another thread does the work.
		done <- inThread(f)
		runtime.UnlockOSThread()
	}()
	return <-done
}

// makeHere moves this thread to a new namespace and builds the network there.
func makeHere(s segment.Segment) (*Namespace, error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, missingSupportError("make a network namespace", err)
	}
	// Not /proc/self: that is the first thread, which is in another namespace.
	file, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, missingSupportError("open the network namespace", err)
	}
	tap, err := openTap()
	if err != nil {
		file.Close()
		return nil, err
	}
	n := &Namespace{File: file, Tap: tap}
	if n.Segment, err = configureNamespace(s); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// openTap makes eth0 in this thread's namespace.
func openTap() (*os.File, error) {
	fd, err := unix.Open(tunPath, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, missingSupportError("open "+tunPath, err)
	}
	request, err := unix.NewIfreq(device)
	if err != nil {
		panic("netns: internal error: " + err.Error())
	}
	request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_TUN_EXCL)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		unix.Close(fd)
		return nil, missingSupportError("make a TAP device", err)
	}
	return os.NewFile(uintptr(fd), "tap"), nil
}

// missingSupportError returns an error that names what the host lacks.
func missingSupportError(what string, err error) error {
	stop := &proposal.StopError{
		Code:    "network.unavailable",
		Message: "cannot " + what,
		Hint:    "use a host whose kernel has network namespaces and TAP devices, or remove network from the plan",
		Err:     err,
	}
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		stop.Hint = fmt.Sprintf("load the kernel's tun module (modprobe tun); in a container, give it the device %s",
			tunPath)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		stop.Hint = "run fumehood as root or with sudo; in a container, with the capabilities SYS_ADMIN and NET_ADMIN"
	}
	return stop
}
