// SPDX-License-Identifier: Apache-2.0

package spare

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxRequest is the maximum size of a request in bytes.
const maxRequest = 1 << 20

// shimSocket is the descriptor at which a shim has its socket.
const shimSocket = 3

// Waits returns the kind of a process that is to wait, or "".
func Waits() (kind string) {
	kind, _, _ = strings.Cut(os.Getenv(variable), ":")
	return kind
}

// Wait returns when this process has become the shim of a container. With an error, it must end.
func Wait() error {
	_, at, _ := strings.Cut(os.Getenv(variable), ":")
	lock, err := os.OpenFile(at+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // after the socket was removed
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("another process waits: %w", err)
	}
	if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: at})
	if err != nil {
		return err
	}
	defer l.Close()
	return accept(l, time.Now().Add(Lifetime))
}

// accept returns after the first request. A client that only connects has looked whether a process waits.
func accept(l *net.UnixListener, end time.Time) error {
	for time.Now().Before(end) {
		if err := l.SetDeadline(time.Now().Add(interval)); err != nil {
			return err
		}
		conn, err := l.AcceptUnix()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if err := answers(); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if asked, err := receive(conn); asked {
			return err
		}
	}
	return errors.New("no container came")
}

// answers returns an error if containerd does not listen at its address.
func answers() error {
	for i, a := range os.Args[:len(os.Args)-1] {
		if a == "-address" {
			conn, err := net.DialTimeout("unix", strings.TrimPrefix(os.Args[i+1], "unix://"), patience)
			if err != nil {
				return err
			}
			return conn.Close()
		}
	}
	return errors.New("there is no containerd")
}

// send sends a request with the shim's socket, and waits for the answer.
func (q request) send(conn *net.UnixConn, socket *os.File) error {
	text, err := json.Marshal(q)
	if err == nil {
		err = conn.SetDeadline(time.Now().Add(patience))
	}
	if err != nil {
		return err
	}
	if _, _, err := conn.WriteMsgUnix([]byte{0}, unix.UnixRights(int(socket.Fd())), nil); err != nil {
		return err
	}
	if err := json.NewEncoder(conn).Encode(json.RawMessage(text)); err != nil {
		return err
	}
	var refused string
	if err := json.NewDecoder(conn).Decode(&refused); err != nil {
		return err
	}
	if refused != "" {
		return errors.New(refused)
	}
	return nil
}

// receive reads a request, becomes the shim, and answers. asked is false for a connection without a request.
func receive(conn *net.UnixConn) (asked bool, err error) {
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return false, err
	}
	begin, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	n, size, _, _, err := conn.ReadMsgUnix(begin, rights)
	if err != nil || n == 0 {
		return false, nil
	}
	var q request
	err = keep(rights[:size])
	if err == nil {
		err = json.NewDecoder(io.LimitReader(conn, maxRequest)).Decode(&q)
	}
	if err == nil {
		err = q.become()
	}
	why := ""
	if err != nil {
		why = err.Error()
	}
	return true, errors.Join(err, json.NewEncoder(conn).Encode(why))
}

// keep makes the descriptor that came with a message shimSocket.
func keep(rights []byte) error {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return err
	}
	if len(messages) != 1 {
		return errNoSocket
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return err
	}
	if len(fds) != 1 {
		return errNoSocket // this process ends, and its descriptors with it
	}
	return errors.Join(unix.Dup3(fds[0], shimSocket, unix.O_CLOEXEC), unix.Close(fds[0]))
}

var errNoSocket = errors.New("the request has no socket, or several")

// become makes this process the shim, if nothing differs but its container.
func (q request) become() error {
	program, err := identity()
	if err != nil {
		return err
	}
	if program != q.Program {
		return errors.New("the shim is another program, or has other namespaces")
	}
	if err := os.Chdir(q.Dir); err != nil {
		return err
	}
	os.Clearenv()
	for _, v := range q.Env {
		key, value, _ := strings.Cut(v, "=")
		if err := os.Setenv(key, value); err != nil {
			return err
		}
	}
	return rename(q.Args)
}

// rename replaces the arguments of this process, also where the kernel shows them. Only the id may differ.
func rename(args []string) error {
	if len(args) != len(os.Args) {
		return errors.New("the shim has other arguments")
	}
	for i, a := range args {
		if len(a) != len(os.Args[i]) || a != os.Args[i] && !strings.HasPrefix(os.Args[i], name) {
			return errors.New("the shim has other arguments")
		}
	}
	for i, a := range args {
		if a != os.Args[i] {
			// The runtime's strings are the kernel's memory, which is on the stack and can be written to.
			copy(unsafe.Slice(unsafe.StringData(os.Args[i]), len(a)), a)
		}
	}
	return nil
}
