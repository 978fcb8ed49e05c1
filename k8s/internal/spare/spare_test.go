// SPDX-License-Identifier: Apache-2.0

package spare

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A shim is what a process that waited has become.
type shim struct {
	Dir, Command, Socket string
	Args, Env            []string
}

const out = "SPARE_TEST_OUT"

func TestMain(m *testing.M) {
	if Waits() == "" {
		os.Exit(m.Run())
	}
	if err := Wait(); err != nil {
		os.Exit(1)
	}
	dir, _ := os.Getwd()
	command, _ := os.ReadFile("/proc/self/cmdline")
	socket, _ := os.Readlink("/proc/self/fd/3")
	text, _ := json.Marshal(shim{dir, string(command), socket, os.Args, os.Environ()})
	if os.WriteFile(os.Getenv(out)+".new", text, 0o600) != nil || os.Rename(os.Getenv(out)+".new", os.Getenv(out)) != nil {
		os.Exit(1)
	}
}

// A node is a directory in which processes wait, with a socket of containerd's.
type node struct {
	t          *testing.T
	dir        string
	containerd net.Listener
}

var id = strings.Repeat("0123456789abcdef", 4)

func newNode(t *testing.T) *node {
	n := &node{t: t, dir: t.TempDir()}
	var err error
	if n.containerd, err = net.Listen("unix", filepath.Join(n.dir, "c.sock")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.containerd.Close(); n.ended() }) // processes that wait end
	own := os.Args
	os.Args = n.args(id)
	t.Cleanup(func() { os.Args = own })
	return n
}

func (n *node) args(id string) []string {
	program, err := os.Executable()
	if err != nil {
		n.t.Fatal(err)
	}
	return []string{program, "-namespace", "test", "-address", filepath.Join(n.dir, "c.sock"), "-id", id}
}

// fill returns when a process waits.
func (n *node) fill() {
	n.t.Helper()
	if err := Fill(n.dir, Pod, "SECRET=of-another-pod"); err != nil {
		n.t.Fatal(err)
	}
	n.poll(func() bool {
		conn, err := net.Dial("unix", Socket(n.dir, Pod))
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

func (n *node) poll(done func() bool) {
	n.t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			n.t.Fatal("it takes too long")
		}
	}
}

// ended returns when no process waits.
func (n *node) ended() {
	n.t.Helper()
	n.poll(func() bool {
		lock, err := os.Open(Socket(n.dir, Pod) + ".lock")
		if errors.Is(err, os.ErrNotExist) {
			return true
		}
		if err != nil {
			n.t.Fatal(err)
		}
		defer lock.Close()
		return unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
	})
}

// shim returns the command of a shim, and its socket.
func (n *node) shim(id string) *exec.Cmd {
	n.t.Helper()
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(n.dir, id[:8]+".s")})
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { socket.Close() })
	file, err := socket.File()
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { file.Close() })
	cmd := exec.Command(n.args(id)[0])
	cmd.Args, cmd.Dir, cmd.Env, cmd.ExtraFiles = n.args(id), n.t.TempDir(), []string{"A=b", out + "=" + filepath.Join(n.dir, id)}, []*os.File{file}
	return cmd
}

// became returns what the process has become.
func (n *node) became(id string) (s shim) {
	n.t.Helper()
	n.poll(func() bool {
		text, err := os.ReadFile(filepath.Join(n.dir, id))
		return err == nil && json.Unmarshal(text, &s) == nil
	})
	return s
}

// A process that waited is what it would be if it had been started, and one shim alone.
func TestTake(t *testing.T) {
	n := newNode(t)
	if pid := Take(Socket(n.dir, Pod), n.shim(id)); pid != 0 {
		t.Fatalf("the process %d waited, and none was started", pid)
	}
	n.fill()
	cmd := n.shim("f" + id[1:])
	pid := Take(Socket(n.dir, Pod), cmd)
	if pid == 0 {
		t.Fatal("no process waits")
	}
	s := n.became("f" + id[1:])
	command := strings.Join(cmd.Args, "\x00") + "\x00"
	if s.Dir != cmd.Dir || s.Command != command || !reflect.DeepEqual(s.Args, cmd.Args) || !reflect.DeepEqual(s.Env, cmd.Env) || !strings.HasPrefix(s.Socket, "socket:") {
		t.Errorf("it became %+v, want %+v", s, cmd)
	}
	n.ended()
	if _, err := os.Lstat(Socket(n.dir, Pod)); err == nil {
		t.Error("its socket is left")
	}
}

// Of shims that start at the same time one gets the process.
func TestTogether(t *testing.T) {
	n := newNode(t)
	n.fill()
	var taken atomic.Int32
	var all sync.WaitGroup
	for _, first := range "abcdef" {
		cmd := n.shim(string(first) + id[1:])
		all.Go(func() {
			if Take(Socket(n.dir, Pod), cmd) != 0 {
				taken.Add(1)
			}
		})
	}
	all.Wait()
	if taken.Load() != 1 {
		t.Errorf("%d shims have it", taken.Load())
	}
}

// Where anything differs, nothing is taken, and no process is left that could still become the shim.
func TestDifferent(t *testing.T) {
	for name, change := range map[string]func(*exec.Cmd){
		"an argument more":   func(c *exec.Cmd) { c.Args = append(c.Args, "-debug") },
		"another containerd": func(c *exec.Cmd) { c.Args[4] = strings.Replace(c.Args[4], "c.sock", "d.sock", 1) },
		"a longer id":        func(c *exec.Cmd) { c.Args[6] += "0" },
		"no directory":       func(c *exec.Cmd) { c.Dir = "/missing" },
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.fill()
			cmd := n.shim(id)
			change(cmd)
			if pid := Take(Socket(n.dir, Pod), cmd); pid != 0 {
				t.Errorf("the process %d is taken", pid)
			}
			n.ended()
		})
	}
}

// What a request cannot say exactly is not requested, and the process goes on waiting.
func TestNotUTF8(t *testing.T) {
	n := newNode(t)
	n.fill()
	cmd := n.shim(id)
	cmd.Env = append(cmd.Env, "NAME=\xff")
	if pid := Take(Socket(n.dir, Pod), cmd); pid != 0 {
		t.Errorf("the process %d is taken", pid)
	}
	if pid := Take(Socket(n.dir, Pod), n.shim("e"+id[1:])); pid == 0 {
		t.Error("no process waits")
	}
}

// Whatever a client sends, a process does not become a shim without a whole request of the same program.
func TestRequests(t *testing.T) {
	socket, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	file, err := socket.(*net.UnixListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rights := unix.UnixRights(int(file.Fd()))
	own, err := identity()
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(own, "net:[", "net:[1", 1)
	text := func(program string, n *node) string {
		data, err := json.Marshal(request{Program: program, Args: n.args(id), Dir: n.dir, Env: []string{out + "=" + filepath.Join(n.dir, id)}})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for name, send := range map[string]func(n *node) (string, []byte){
		"no descriptor":   func(n *node) (string, []byte) { return text(own, n), nil },
		"another network": func(n *node) (string, []byte) { return text(other, n), rights },
		"no program":      func(n *node) (string, []byte) { return text("", n), rights },
		"nothing":         func(n *node) (string, []byte) { return "{}", rights },
		"no JSON":         func(n *node) (string, []byte) { return "x\n", rights },
		"without an end":  func(n *node) (string, []byte) { return `{"Program":"` + strings.Repeat("x", 64), rights },
		"too large":       func(n *node) (string, []byte) { return `{"Program":"` + strings.Repeat("x", maxRequest), rights },
		"descriptors enough": func(n *node) (string, []byte) {
			return text(own, n), unix.UnixRights(int(file.Fd()), int(file.Fd()), int(file.Fd()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.fill()
			conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: Socket(n.dir, Pod)})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			data, control := send(n)
			if _, _, err := conn.WriteMsgUnix([]byte{0}, control, nil); err != nil {
				t.Fatal(err)
			}
			_, _ = conn.Write([]byte(data)) // the process may have ended
			n.ended()
			if _, err := os.Lstat(filepath.Join(n.dir, id)); err == nil {
				t.Error("it became the shim")
			}
		})
	}
}

// A process that was stopped is not waited for, and is killed.
func TestStopped(t *testing.T) {
	n := newNode(t)
	n.fill()
	conn, err := net.Dial("unix", Socket(n.dir, Pod))
	if err != nil {
		t.Fatal(err)
	}
	p, err := peerOf(conn.(*net.UnixConn))
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	defer p.close()
	if err := syscall.Kill(p.pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	n.poll(func() bool { return hasStopped(t, p.pid) })
	if pid := Take(Socket(n.dir, Pod), n.shim(id)); pid != 0 {
		t.Errorf("the process %d is taken", pid)
	}
	n.ended()
}

// hasStopped reports whether all threads of a process are stopped: they go on for a moment after the signal.
func hasStopped(t *testing.T, pid int) bool {
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(stats) == 0 {
		t.Fatalf("%v, threads %q", err, stats)
	}
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, state, _ := strings.Cut(string(stat), ") "); !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return true
}

// A process ends with containerd.
func TestEnd(t *testing.T) {
	n := newNode(t)
	n.fill()
	n.containerd.Close()
	n.ended()
}
