// SPDX-License-Identifier: Apache-2.0

// Package peer finds out which process is at the other end of a local connection.
package peer

import (
	"errors"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// ErrOtherUser is Same's error about a process of another user.
var ErrOtherUser = errors.New("the other end of the socket belongs to another user")

// CredentialsOf returns the process that made the other end of conn, as it was then.
func CredentialsOf(conn *net.UnixConn) (unix.Ucred, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return unix.Ucred{}, err
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, credErr); err != nil {
		return unix.Ucred{}, err
	}
	return *cred, nil
}

// CheckSameUser returns an error unless the other end of conn is a process of this user.
func CheckSameUser(conn *net.UnixConn) error {
	cred, err := CredentialsOf(conn)
	if err == nil && int(cred.Uid) != os.Geteuid() {
		err = ErrOtherUser
	}
	return err
}

// A Listener closes connections of other users.
type Listener struct{ *net.UnixListener }

// Accept returns the next connection of this user.
func (l Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if CheckSameUser(c) == nil {
			return c, nil
		}
		_ = c.Close()
	}
}
