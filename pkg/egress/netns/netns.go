// SPDX-License-Identifier: Apache-2.0

// Package netns makes the network that a sandbox lives in: a network namespace with no
// name and one device, eth0, whose other end is a file. Whoever holds that file is the
// only one to whom anything in the namespace can speak.
//
// runsc is given the namespace by path. It takes the device's addresses and routes over
// into gVisor's own stack and removes them from the device, so from then on the host
// kernel has no address there to answer for.
//
// Nothing is left when the process ends, however it ends: the namespace is held by an
// open file, the device by another; there is no mount and no name.
package netns

import (
	"fmt"
	"os"
	"sync"

	"github.com/fumehood/fumehood/pkg/egress/segment"
)

// A Config says what Make makes.
type Config struct {
	// Segment has the addresses. The zero Segment is segment.Default.
	Segment segment.Segment
}

// A Namespace is one sandbox's network. Its files are closed on exec.
type Namespace struct {
	// File keeps the namespace.
	File *os.File
	// Tap is the other end of eth0: frames with Ethernet headers, one a read or write,
	// not blocking. The device is gone when its last copy is closed, so whoever hands it
	// to the gateway closes this one.
	Tap *os.File
	// Segment is what was made: without IPv6 where the host's kernel has none.
	Segment segment.Segment

	once sync.Once
}

// Path names the namespace for an OCI spec, as long as n is not closed and this process
// lives.
func (n *Namespace) Path() string {
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.File.Fd())
}

// Close lets go of the namespace and the device. It may be called again, and after Tap
// was closed.
func (n *Namespace) Close() error {
	n.once.Do(func() {
		n.Tap.Close()
		n.File.Close()
	})
	return nil
}
