// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"net"
	"runtime"

	"golang.org/x/sys/unix"
)

// listen listens at all addresses of a network namespace. The socket belongs to it from then on,
// and this process does not.
func listen(netns string, port int) (l net.Listener, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // which ends with this goroutine, because it is never unlocked
		var fd int
		if fd, err = unix.Open(netns, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return
		}
		defer unix.Close(fd)
		if err = unix.Setns(fd, unix.CLONE_NEWNET); err == nil {
			l, err = net.Listen("tcp", fmt.Sprintf(":%d", port))
		}
	}()
	<-done
	return l, err
}
