// SPDX-License-Identifier: Apache-2.0

// Package spare has a process wait for the next container of a node, so that this starts sooner: a
// shim that has been started, and whose policy is compiled. It becomes the shim of one container, and
// is then what it would be if containerd had started it: directory, environment, arguments (those
// that a list of processes shows, too) and socket.
//
// It is used only if nothing differs: program, Linux namespaces, and arguments except for the
// container's id. Without one, or on any doubt, the shim is started as usual. A process that waits
// ends by itself when containerd does not answer, or when it was not needed for Lifetime.
//
// The directory of the sockets must be of root alone: who can connect chooses what the process does.
package spare

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Kinds of processes that wait.
const (
	Pod       = "pod"       // for a pod's first container: policy is compiled
	Container = "container" // for others
)

// Lifetime is how long a process waits. It looks for containerd each interval.
const (
	Lifetime = 10 * time.Minute
	interval = 2 * time.Second
)

// patience is how long both ends wait for each other.
const patience = time.Second

// variable of a process's environment makes it wait: KIND:SOCKET.
const variable = "FUMEHOOD_SHIM_WAITS"

// name is the beginning of the id that a process has while it waits.
const name = "waits-for-a-container"

// Is reports whether a command line is that of a process that waits.
func Is(command string) bool { return strings.Contains(command, " "+name+"-") }

// Socket returns where the process of a kind waits.
func Socket(dir, kind string) string { return filepath.Join(dir, "waits-"+kind) }

// A request describes the shim that a process becomes.
type request struct {
	Program string // identifies the program, with the Linux namespaces
	Args    []string
	Env     []string
	Dir     string
}

// Take has the process that waits at a socket become cmd, whose ExtraFiles are the shim's socket alone. It
// returns 0 if there is none.
func Take(at string, cmd *exec.Cmd) (pid int) {
	if !utf8.ValidString(strings.Join(slices.Concat(cmd.Args, cmd.Env, []string{cmd.Dir}), "")) {
		return 0 // JSON would change it
	}
	conn, err := net.DialTimeout("unix", at, patience)
	if err != nil {
		return 0
	}
	defer conn.Close()
	peer, err := peerOf(conn.(*net.UnixConn))
	if err != nil {
		return 0
	}
	defer peer.close()
	q := request{Args: cmd.Args, Env: cmd.Env, Dir: cmd.Dir}
	q.Program, err = identity()
	if err == nil {
		err = q.send(conn.(*net.UnixConn), cmd.ExtraFiles[0])
	}
	if err != nil {
		peer.kill() // or it could still become the shim, beside another
		return 0
	}
	return peer.pid
}

// Fill starts a process of the kind that waits at the same node for a container like this shim's. It
// does nothing if one waits. env is added to its environment.
func Fill(dir, kind string, env ...string) error {
	at := Socket(dir, kind)
	if conn, err := net.DialTimeout("unix", at, patience); err == nil {
		return conn.Close()
	}
	id := len(os.Args) - 1
	for i, a := range os.Args {
		if a == "-id" {
			id = i + 1
		}
	}
	padding := len(os.Args[id]) - len(name)
	if padding < 1 {
		return errors.New("the container's id is too short")
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(program, os.Args[1:]...)
	cmd.Args[id] = name + strings.Repeat("-", padding)
	cmd.Env = append(append(os.Environ(), env...), variable+"="+kind+":"+at)
	cmd.Dir = "/"
	null, err := os.Open(os.DevNull) // keeps the descriptor that will be the shim's socket
	if err != nil {
		return err
	}
	defer null.Close()
	cmd.ExtraFiles = []*os.File{null}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release() // the shim's reaper gets its status
}

// identity identifies the program of this process and its Linux namespaces.
func identity() (string, error) {
	var program unix.Stat_t
	if err := unix.Stat("/proc/self/exe", &program); err != nil {
		return "", err
	}
	text := fmt.Sprintf("%d:%d", program.Dev, program.Ino)
	for _, kind := range []string{"mnt", "net", "pid", "user", "uts", "ipc", "cgroup"} {
		link, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			return "", err
		}
		text += " " + link
	}
	return text, nil
}

// A peer is the process at the other end of a connection.
type peer struct{ pid, fd int }

func peerOf(conn *net.UnixConn) (p peer, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return p, err
	}
	var bad error
	if err = raw.Control(func(fd uintptr) {
		var cred *unix.Ucred
		if cred, bad = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); bad == nil {
			p.pid = int(cred.Pid)
			p.fd, bad = unix.PidfdOpen(p.pid, 0)
		}
	}); err == nil {
		err = bad
	}
	return p, err
}

func (p peer) close() { _ = unix.Close(p.fd) }

// kill ends the process, and returns when it has ended or cannot be.
func (p peer) kill() {
	if unix.PidfdSendSignal(p.fd, unix.SIGKILL, nil, 0) == nil {
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}, int(patience.Milliseconds()))
	}
}
