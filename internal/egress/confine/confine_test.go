// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/roottest"
)

// TestMain also runs the process that confines itself and then tries what its
// argument names; its result is what it prints on stderr.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && attempts[os.Args[1]] != nil {
		text, _ := io.ReadAll(os.Stdin)
		port = string(text)
		runtime.LockOSThread()
		if err := Self(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Fprint(os.Stderr, attempts[os.Args[1]]())
		os.Exit(0)
	}
	roottest.RunTests(m)
}

var port string // of the test's server

func call(number uintptr, args ...uintptr) func() string {
	return func() string {
		var a [6]uintptr
		copy(a[:], args)
		if _, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
			return unix.ErrnoName(errno)
		}
		return "done"
	}
}

func errnoOf(f func() error) func() string {
	return func() string {
		err := f()
		var errno syscall.Errno
		if errors.As(err, &errno) {
			return unix.ErrnoName(errno)
		}
		return fmt.Sprint(err)
	}
}

var attempts = map[string]func() string{
	"wait": func() string {
		fmt.Fprint(os.Stderr, "ready")
		_, _ = unix.Read(3, make([]byte, 1))
		return ""
	},
	"socket inet":        call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0),
	"socket inet6 dgram": call(unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDP),
	"socket raw":         call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP),
	"socket ping":        call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP),
	"socket sctp":        call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP),
	"socket unix":        call(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM, 0),
	"socket netlink":     call(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, 0),
	"socket packet":      call(unix.SYS_SOCKET, unix.AF_PACKET, unix.SOCK_RAW, 0),
	"socket vsock":       call(unix.SYS_SOCKET, unix.AF_VSOCK, unix.SOCK_STREAM, 0),
	"clone":              call(unix.SYS_CLONE, uintptr(unix.SIGCHLD)),
	"clone3":             call(unix.SYS_CLONE3),
	"kill":               call(unix.SYS_KILL, 1, 0),
	"setuid":             call(unix.SYS_SETUID, 0),
	"memory":             call(unix.SYS_MMAP, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, ^uintptr(0)),
	"open":               errnoOf(func() error { _, err := os.Open("/"); return err }),
	"create":             errnoOf(func() error { _, err := os.Create("/x"); return err }),
	"readlink":           errnoOf(func() error { _, err := os.Readlink("/proc/self/exe"); return err }),
	"fork":               errnoOf(func() error { return exec.Command("/bin/true").Run() }),
	"listen":             call(unix.SYS_LISTEN, 3, 1),
	"execve":             call(unix.SYS_EXECVE),
	"ptrace":             call(unix.SYS_PTRACE),
	"mount":              call(unix.SYS_MOUNT),
	"chroot":             call(unix.SYS_CHROOT),
	"unshare":            call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER),
	"bpf":                call(unix.SYS_BPF),
	"io_uring":           call(unix.SYS_IO_URING_SETUP),
	"threads": func() string {
		for range 20 {
			done := make(chan struct{})
			go func() { runtime.LockOSThread(); close(done) }() // each ends its thread
			<-done
		}
		return "done"
	},
	"dial": func() string {
		conn, err := net.DialTimeout("tcp", "127.0.0.1:"+port, time.Second)
		if err != nil {
			return err.Error()
		}
		b, err := io.ReadAll(conn)
		return fmt.Sprint(string(b), err)
	},
	"memory limit": func() string {
		var all [][]byte
		for range 64 {
			all = append(all, bytes.Repeat([]byte("x"), 32<<20))
		}
		return fmt.Sprint(len(all))
	},
}

// try returns how a confined process ended after it tried one action.
func try(t *testing.T, what, input string) string {
	t.Helper()
	p, err := Start([]string{"/proc/self/exe", what}, []byte(input), pipeEnd(t), pipeEnd(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	select {
	case <-p.Done():
		return p.ExitError().Error()
	case <-time.After(60 * time.Second):
		t.Fatalf("%s: does not end", what)
		return ""
	}
}

// pipeEnd returns an end of a pipe that stays open until the test ends.
func pipeEnd(t *testing.T) *os.File {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r
}

func TestConfined(t *testing.T) {
	lanetest.SkipShort(t)
	const killed = "signal: bad system call"
	tests := []struct {
		what string
		want string // the prefix of the answer
	}{
		{"socket inet", "exit status 0: done"}, {"socket inet6 dgram", "exit status 0: done"}, {"threads", "exit status 0: done"},
		{"socket raw", "exit status 0: EPERM"}, {"socket ping", "exit status 0: EPERM"}, {"socket sctp", "exit status 0: EPERM"},
		{"socket unix", "exit status 0: EPERM"}, {"socket netlink", "exit status 0: EPERM"}, {"socket packet", "exit status 0: EPERM"},
		{"socket vsock", "exit status 0: EPERM"}, {"clone", "exit status 0: EPERM"}, {"clone3", "exit status 0: ENOSYS"},
		{"kill", "exit status 0: EPERM"}, {"setuid", "exit status 0: EPERM"}, {"memory", "exit status 0: EPERM"},
		{"open", "exit status 0: EPERM"}, {"create", "exit status 0: EPERM"}, {"readlink", "exit status 0: EPERM"},
		{"fork", "exit status 0: EPERM"}, {"listen", killed}, {"execve", killed}, {"ptrace", killed}, {"mount", killed},
		{"chroot", killed}, {"unshare", killed}, {"bpf", killed}, {"io_uring", killed},
	}
	for _, test := range tests {
		if got := try(t, test.what, ""); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %.300s\nwant %s", test.what, got, test.want)
		}
	}
}

// A process that takes all memory it can get ends itself and does not harm the host.
func TestMemoryLimit(t *testing.T) {
	lanetest.SkipShort(t)
	if got := try(t, "memory limit", ""); strings.HasPrefix(got, "exit status 0") {
		t.Error(got)
	}
}

func TestDials(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if conn, err := l.Accept(); err == nil {
			_, _ = conn.Write([]byte("hello"))
			conn.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if got := try(t, "dial", port); got != "exit status 0: hello<nil>" {
		t.Error(got)
	}
}

// The kernel's status of the process and each of its threads.
func TestStatus(t *testing.T) {
	p, err := Start([]string{"/proc/self/exe", "wait"}, nil, pipeEnd(t), pipeEnd(t), pipeEnd(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	for end := time.Now().Add(20 * time.Second); p.said.String() != "ready"; time.Sleep(5 * time.Millisecond) {
		if how := p.ExitError(); how != nil || time.Now().After(end) {
			t.Fatal(how, p.said)
		}
	}
	proc := fmt.Sprintf("/proc/%d/", p.Pid())
	threads, err := os.ReadDir(proc + "task")
	if err != nil || len(threads) < 3 {
		t.Fatal(threads, err)
	}
	for _, thread := range threads {
		text, err := os.ReadFile(proc + "task/" + thread.Name() + "/status")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"Uid:\t65533\t65533\t65533\t65533\n", "Gid:\t65533\t65533\t65533\t65533\n", "Groups:\t \n", "NoNewPrivs:\t1\n", "Seccomp:\t2\n",
			"CapPrm:\t0000000000000000\n", "CapEff:\t0000000000000000\n", "CapBnd:\t0000000000000000\n", "CapAmb:\t0000000000000000\n",
		} {
			if !strings.Contains(string(text), want) {
				t.Errorf("thread %s lacks %q:\n%s", thread.Name(), want, text)
			}
		}
	}
	fds, err := os.ReadDir(proc + "fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink(proc + "fd/" + fd.Name()); err != nil || fd.Name() > "4" && !strings.HasPrefix(to, "anon_inode:[event") {
			t.Errorf("descriptor %s is open: %s, %v", fd.Name(), to, err)
		}
	}
	if entries, err := os.ReadDir(proc + "root"); err != nil || len(entries) != 0 {
		t.Errorf("its root has %v, %v", entries, err)
	}
	if err := os.WriteFile(proc+"root/x", nil, 0o600); !errors.Is(err, unix.EROFS) {
		t.Errorf("its root can be written: %v", err)
	}
	if mounts, err := os.ReadFile(proc + "mounts"); err != nil || strings.Count(string(mounts), "\n") != 1 {
		t.Errorf("mounts %q, %v", mounts, err)
	}
	for _, ns := range []string{"mnt", "pid", "ipc", "uts", "cgroup"} {
		if same(t, proc, ns) {
			t.Errorf("it shares our namespace %s", ns)
		}
	}
	if !same(t, proc, "net") {
		t.Error("it is not in our network")
	}
}

func same(t *testing.T, proc, ns string) bool {
	its, err := os.Readlink(proc + "ns/" + ns)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := os.Readlink("/proc/self/ns/" + ns)
	if err != nil {
		t.Fatal(err)
	}
	return its == ours
}

// A process that was started in any other way is left unchanged.
func TestRefusals(t *testing.T) {
	before := os.Getuid()
	if err := Self(); err == nil || !strings.Contains(err.Error(), "the environment is not empty") {
		t.Fatal(err)
	}
	if os.Getuid() != before {
		t.Error("the user was changed")
	}
}
