// SPDX-License-Identifier: Apache-2.0

//go:build linux

package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// sameUser is a listener that closes connections of other users.
type sameUser struct{ *net.UnixListener }

func (l sameUser) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if checkPeer(c) == nil {
			return c, nil
		}
		_ = c.Close()
	}
}

var errOtherUser = errors.New("the other end of the socket belongs to another user")

// checkPeer returns an error unless the other end of c was opened by a process of this user.
func checkPeer(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) { peer, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return err
	}
	if credErr != nil {
		return credErr
	}
	if int(peer.Uid) != os.Geteuid() {
		return errOtherUser
	}
	return nil
}

// dial connects to the session in the directory at path.
func dial(ctx context.Context, path string) (net.Conn, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", filepath.Join(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()), socketName))
	if err != nil {
		return nil, err
	}
	if err := checkPeer(c.(*net.UnixConn)); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func ours(info fs.FileInfo) bool {
	st, known := info.Sys().(*syscall.Stat_t)
	return known && int(st.Uid) == os.Geteuid()
}
