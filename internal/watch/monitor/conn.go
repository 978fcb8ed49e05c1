// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A conn is the connection as a blocking descriptor. Go's poller would wake two
// threads for each message where a blocked read wakes one, and the sandbox's kernel
// waits meanwhile.
type conn struct {
	fd       int
	patience time.Duration // for one write

	mu     sync.RWMutex // locked for writing to close the descriptor
	closed bool
}

// newConn takes ownership of c.
func newConn(c *net.UnixConn, patience time.Duration) (*conn, error) {
	f, err := c.File() // a duplicate
	if err != nil {
		return nil, err
	}
	defer f.Close()
	defer c.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	grace := unix.NsecToTimeval(patience.Nanoseconds())
	err = errors.Join(unix.SetNonblock(fd, false),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &grace))
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return &conn{fd: fd, patience: patience}, nil
}

// readMessage waits for one message.
func (c *conn) readMessage(b []byte) (int, error) {
	for {
		n, err := unix.Read(c.fd, b)
		if err == unix.EINTR {
			continue
		}
		if err == nil && n == 0 {
			err = io.EOF
		}
		return max(n, 0), err
	}
}

// writeMessage sends one message, within c.patience.
func (c *conn) writeMessage(b []byte) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		return net.ErrClosed
	}
	for end := time.Now().Add(c.patience); ; {
		_, err := unix.Write(c.fd, b)
		if err != unix.EINTR || time.Now().After(end) {
			return err
		}
	}
}

// hangUp shuts the connection down in both directions; a blocked read returns.
func (c *conn) hangUp() {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if !c.closed {
		_ = unix.Shutdown(c.fd, unix.SHUT_RDWR)
	}
}

// close closes the descriptor. Only the reader may call it.
func (c *conn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	_ = unix.Close(c.fd)
}
