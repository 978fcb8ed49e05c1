// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lease"
	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/peer"
	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	socketName = "socket"
	infoName   = "session.json"
)

var validName = pattern.New(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// CheckName returns an error if name cannot be a session's.
func CheckName(name string) error {
	if validName.MatchString(name) {
		return nil
	}
	return newStopError("session.name", fmt.Sprintf("invalid session name %q", name),
		"use up to 63 lower-case letters, digits, '.', '_' and '-'")
}

func newStopError(code, message, hint string) error {
	return &proposal.StopError{Code: code, Message: message, Hint: hint}
}

// userSessionsDir returns the directory of all sessions of this user, which no other user may enter.
func userSessionsDir() (string, error) {
	state, err := process.StateHome()
	dir := filepath.Join(state, "fumehood", "sessions")
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	var info fs.FileInfo
	if err == nil {
		info, err = os.Lstat(dir)
	}
	if err != nil {
		return "", &proposal.StopError{Code: "session.directory",
			Message: fmt.Sprintf("cannot use the directory of sessions %q", dir),
			Hint:    "set XDG_STATE_HOME to a directory that you can write to", Err: err}
	}
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 || !isOwnedByUser(info) {
		return "", newStopError("session.directory",
			fmt.Sprintf("other users can use the directory of sessions %q", dir),
			"make it yours alone: chmod 0700, and chown it to the user that runs fumehood")
	}
	return dir, nil
}

// A sessionDir is the directory of a living session, which this process holds.
type sessionDir struct {
	*lease.Dir
	name string
}

// claimSessionDir makes the place of a new session. One that was killed makes room for it.
func claimSessionDir(name string) (*sessionDir, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	parent, err := userSessionsDir()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(parent, name)
	for range 100 { // another process may be cleaning up
		if err = os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		made := err == nil
		switch dir, err := lease.Take(path); {
		case err == nil && made:
			return &sessionDir{dir, name}, nil
		case err == nil:
			_ = dir.Remove()
		case errors.Is(err, lease.ErrHeld) && !made:
			return nil, newStopError("session.exists", fmt.Sprintf("there is a session %q already", name),
				"end it with: fumehood session end "+name+", or give the new one another --name")
		case !errors.Is(err, lease.ErrHeld) && !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return nil, newStopError("session.directory",
		fmt.Sprintf("cannot keep the directory %q: other processes remove it at once", path), "try again")
}

// listen makes the socket. Its path may be longer than the kernel accepts for sockets.
func (p *sessionDir) listen() (listener peer.Listener, err error) {
	dir, err := os.Open(p.Path)
	if err != nil {
		return listener, err
	}
	defer dir.Close()
	l, err := net.ListenUnix("unix",
		&net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), socketName), Net: "unix"})
	if err != nil {
		return listener, err
	}
	l.SetUnlinkOnClose(false) // the place removes it
	return peer.Listener{UnixListener: l}, nil
}

// writeInfo says what is known of the session, for when its process does not answer.
func (p *sessionDir) writeInfo(info Info) error {
	data, err := json.Marshal(info)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.Path, infoName), data, 0o600)
}

// removeKilled removes what a killed session left, and returns what is known of it. It reports false
// if the session lives.
func removeKilled(path string) (info Info, dead bool) {
	dir, err := lease.Take(path)
	if err != nil {
		return info, errors.Is(err, fs.ErrNotExist)
	}
	if data, err := dir.ReadFile(infoName); err == nil {
		info.Killed = json.Unmarshal(data, &info) == nil
	}
	_ = dir.Remove()
	return info, true
}

// waitUntilFree waits until the place of an ended session is free.
func waitUntilFree(path string) {
	for begin := time.Now(); time.Since(begin) < 10*time.Second; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
}
