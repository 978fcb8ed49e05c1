// SPDX-License-Identifier: Apache-2.0

// Package control is a client of a running sandbox's control socket, which is
// gVisor's own.
//
// Starting runsc for each command costs 8–10 ms; a call here costs 1.3–1.6 ms. The
// cost is that the protocol is internal to gVisor: the method names and argument
// fields below mirror runsc/boot/controller.go and pkg/sentry/control/proc.go of
// the version pinned in go.mod. TestProtocol runs each call against the real
// runsc, so an incompatible version fails there and not in a run.
//
// The socket belongs to the sandbox's kernel, which the host trusts less than
// itself: answers are bounded and parsed by the client library into fixed types.
package control

import (
	"fmt"
	"os"
	"syscall"

	"gvisor.dev/gvisor/pkg/unet"
	"gvisor.dev/gvisor/pkg/urpc"
)

// A Conn is one connection. It carries one call at a time; use one for each
// command in progress.
type Conn struct{ client *urpc.Client }

// Dial connects to the control socket at path.
func Dial(path string) (*Conn, error) {
	socket, err := unet.Connect(path, false)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to control socket: %v", err)
	}
	return &Conn{urpc.NewClient(socket)}, nil
}

// Close closes the connection, if c is not nil; a call in progress returns an error.
func (c *Conn) Close() error {
	if c == nil {
		return nil
	}
	return c.client.Close()
}

// A Process is what Exec starts. It gets no capabilities and can gain none.
type Process struct {
	Path     string // of the program; if empty, it is looked up with Argv and Env
	Argv     []string
	Env      []string
	Dir      string
	UID, GID uint32
	Stdin    *os.File
	Stdout   *os.File
	Stderr   *os.File
	More     map[int]*os.File // by descriptor, from 3
}

type capabilities struct {
	PermittedCaps, InheritableCaps, EffectiveCaps, BoundingCaps, AmbientCaps uint64
}

type execArgs struct {
	Filename         string        `json:"filename"`
	Argv             []string      `json:"argv"`
	Envv             []string      `json:"envv"`
	WorkingDirectory string        `json:"wd"`
	KUID             uint32        // in the sandbox's root user namespace
	KGID             uint32        //
	NoNewPrivileges  bool          //
	Capabilities     *capabilities // not nil: nil would mean the container's own
	urpc.FilePayload
	GuestFDs    []int
	ContainerID string
}

// Exec starts p in a container and returns its process id there.
func (c *Conn) Exec(container string, p Process) (int32, error) {
	args := execArgs{
		Filename: p.Path, Argv: p.Argv, Envv: p.Env, WorkingDirectory: p.Dir,
		KUID: p.UID, KGID: p.GID,
		NoNewPrivileges: true,
		Capabilities:    &capabilities{},
		GuestFDs:        []int{0, 1, 2},
		ContainerID:     container,
	}
	args.Files = []*os.File{p.Stdin, p.Stdout, p.Stderr}
	for fd, f := range p.More {
		args.GuestFDs, args.Files = append(args.GuestFDs, fd), append(args.Files, f)
	}
	var pid int32
	if err := c.client.Call("containerManager.ExecuteAsync", &args, &pid); err != nil {
		return 0, err
	}
	return pid, nil
}

// Wait waits until process pid is gone and returns its wait status.
func (c *Conn) Wait(container string, pid int32) (syscall.WaitStatus, error) {
	args := struct {
		PID int32
		CID string
	}{pid, container}
	var status uint32
	if err := c.client.Call("containerManager.WaitPID", &args, &status); err != nil {
		return 0, err
	}
	return syscall.WaitStatus(status), nil
}

// TraceSessions returns the names of the active monitoring sessions. If a point's
// name is misspelled, runsc starts the sandbox without the session, so callers
// that rely on one must check.
func (c *Conn) TraceSessions() ([]string, error) {
	var sessions []struct {
		Name string `json:"name"`
	}
	if err := c.client.Call("containerManager.ListTraceSessions", nil, &sessions); err != nil {
		return nil, err
	}
	names := make([]string, len(sessions))
	for i, s := range sessions {
		names[i] = s.Name
	}
	return names, nil
}

// Save saves the sandbox, which must be at rest, into three empty files: its state, and the list and the content of
// its memory's pages. The sandbox goes on, also after an error.
func (c *Conn) Save(state, list, pages *os.File) error {
	args := struct {
		Metadata      map[string]string `json:"metadata"`
		HavePagesFile bool              `json:"have_pages_file"`
		urpc.FilePayload
		Resume bool
	}{Metadata: map[string]string{"compression": "none"}, HavePagesFile: true, Resume: true}
	args.Files = []*os.File{state, list, pages}
	return c.client.Call("containerManager.Checkpoint", &args, nil)
}
