// SPDX-License-Identifier: Apache-2.0

// Package netns makes a sandbox's network: an unnamed network namespace with one device,
// eth0, whose other end is a file. Programs in the namespace can communicate only with
// the holder of that file.
//
// runsc gets the namespace by path. It moves the device's addresses and routes into
// gVisor's own stack and removes them from the device, so that the host kernel has no
// address there to answer for. Restore is for the next sandbox in the same namespace.
//
// Nothing is left when the process ends, however it ends: the namespace is held by an
// open file, the device by another; there is no mount and no name.
package netns

import (
	"fmt"
	"os"
	"sync"

	"github.com/fumehood/fumehood/internal/egress/segment"
)

// A Config configures Make.
type Config struct {
	// Segment has the addresses. The zero Segment means segment.Default.
	Segment segment.Segment
}

// A Namespace is one sandbox's network. Its files are closed on exec.
type Namespace struct {
	// File keeps the namespace alive.
	File *os.File
	// Tap is the other end of eth0. Each read or write is one frame with its Ethernet
	// header and does not block. The device is gone when the last copy of Tap is closed,
	// so a caller that passes it to the gateway must close its own.
	Tap *os.File
	// Segment is the network that was made: without IPv6 if the host's kernel has none.
	Segment segment.Segment

	once sync.Once
}

// Path returns the namespace's path for an OCI spec. It is valid while n is open and
// this process lives.
func (n *Namespace) Path() string {
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.File.Fd())
}

// Close releases the namespace and the device. It may be called more than once, and
// after Tap was closed.
func (n *Namespace) Close() error {
	n.once.Do(func() {
		n.Tap.Close()
		n.File.Close()
	})
	return nil
}
