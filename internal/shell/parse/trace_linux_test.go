// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// stubs are programs that do nothing; a traced text can name them freely.
var stubs = strings.Fields("id whoami uname date go git grep wc tail head sort ls p q r hidden curl python3 node make sed awk tee jq rm sudo su watch")

// real are the wrappers that must really start their command.
var real = strings.Fields("env timeout nice nohup xargs find bash sh setsid stdbuf cat seq ionice taskset true false flock")

// A lab is a scratch directory with a PATH of stubs, and the user that runs there.
type lab struct {
	dir, path string
	as        *syscall.Credential
}

// newLab creates a lab. Root gives it to an unprivileged user, so that no text can harm
// the host.
func newLab(t testing.TB) lab {
	t.Helper()
	l := lab{dir: t.TempDir(), path: t.TempDir()}
	if os.Geteuid() == 0 {
		const nobody = 65534
		l.as = &syscall.Credential{Uid: nobody, Gid: nobody}
		for _, dir := range []string{filepath.Dir(l.dir), filepath.Dir(l.path), l.path} {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chown(l.dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range stubs {
		link(t, "/bin/true", filepath.Join(l.path, name))
	}
	for _, name := range real {
		found, err := exec.LookPath(name)
		if err != nil {
			t.Fatalf("the differential test needs %s: %v", name, err)
		}
		link(t, found, filepath.Join(l.path, name))
	}
	l.clean(t)
	return l
}

var labFiles = []string{"f", "x y", "a.go", "-n"}

// clean leaves labFiles in the directory and nothing else: a file that one text wrote is
// not a script of the repository to the next.
func (l lab) clean(t testing.TB) {
	t.Helper()
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && slices.Contains(labFiles, e.Name()) && info.Mode().IsRegular() {
			continue
		}
		if err := os.RemoveAll(filepath.Join(l.dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range labFiles {
		if err := os.WriteFile(filepath.Join(l.dir, name), []byte("one\ntwo\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func link(t testing.TB, from, to string) {
	t.Helper()
	if err := os.Symlink(from, to); err != nil {
		t.Fatal(err)
	}
}

// trace runs text with bash and returns the argv of every program that was really
// executed, except for the first bash.
func (l lab) trace(t testing.TB, text string) [][]string {
	t.Helper()
	return l.traceShell(t, []string{"/bin/bash", "--norc", "--noprofile"}, text)
}

// traceDash is trace with dash.
func (l lab) traceDash(t testing.TB, text string) [][]string {
	t.Helper()
	return l.traceShell(t, []string{"/bin/dash"}, text)
}

// tracing is held while a tracer waits: it reaps every child of its thread. Code that
// starts a child that someone else waits for needs the write lock.
var tracing sync.RWMutex

func (l lab) traceShell(t testing.TB, shell []string, text string) [][]string {
	t.Helper()
	tracing.RLock()
	defer tracing.RUnlock()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command(shell[0], append(shell[1:], "-c", text)...)
	cmd.Dir = l.dir
	cmd.Env = []string{"PATH=" + l.path, "HOME=" + l.dir, "LC_ALL=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Setpgid: true, Credential: l.as}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Release()
	f := &tracer{seen: map[int]bool{cmd.Process.Pid: true}}
	stop := time.AfterFunc(5*time.Second, f.kill)
	defer stop.Stop()
	defer f.kill()
	if err := f.follow(cmd.Process.Pid); err != nil {
		t.Fatalf("cannot trace %q: %v", text, err)
	}
	return f.execs
}

const (
	traceOptions = syscall.PTRACE_O_TRACEEXEC | syscall.PTRACE_O_TRACEFORK | syscall.PTRACE_O_TRACEVFORK | syscall.PTRACE_O_TRACECLONE | 0x100000 // EXITKILL
	waitOptions  = syscall.WALL | 0x20000000                                                                                                      // WNOTHREAD
)

// A tracer follows a whole process tree.
type tracer struct {
	execs [][]string
	mutex sync.Mutex
	seen  map[int]bool
}

// kill ends every process of the tree, including those that left its group.
func (f *tracer) kill() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for pid := range f.seen {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

func (f *tracer) note(pid int, alive bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if delete(f.seen, pid); alive {
		f.seen[pid] = true
	}
}

// limits apply to the shell and everything it starts.
var limits = map[int]uint64{syscall.RLIMIT_CPU: 3, syscall.RLIMIT_FSIZE: 1 << 20, syscall.RLIMIT_AS: 1 << 30, 6 /* NPROC */ : 256}

// follow is a minimal ptrace loop.
func (f *tracer) follow(root int) error {
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(root, &status, waitOptions, nil); err != nil {
		return err
	}
	if err := syscall.PtraceSetOptions(root, traceOptions); err != nil {
		return err
	}
	for resource, limit := range limits {
		value := syscall.Rlimit{Cur: limit, Max: limit}
		syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(root), uintptr(resource), uintptr(unsafe.Pointer(&value)), 0, 0, 0)
	}
	if err := syscall.PtraceCont(root, 0); err != nil {
		return err
	}
	for {
		pid, err := syscall.Wait4(-1, &status, waitOptions, nil)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.ECHILD:
			return nil
		case err != nil:
			return err
		}
		if f.note(pid, status.Stopped()); !status.Stopped() {
			continue
		}
		signal := 0
		switch cause := status.TrapCause(); {
		case cause == syscall.PTRACE_EVENT_EXEC:
			if argv := argvOf(pid); argv != nil {
				f.execs = append(f.execs, argv)
			}
		case cause <= 0 && status.StopSignal() != syscall.SIGTRAP && status.StopSignal() != syscall.SIGSTOP:
			signal = int(status.StopSignal())
		}
		syscall.PtraceCont(pid, signal)
	}
}

// argvOf reads the words of a process; nil if it was killed in the meantime.
func argvOf(pid int) (argv []string) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || len(data) == 0 {
		return nil
	}
	for word := range bytes.SplitSeq(bytes.TrimSuffix(data, []byte{0}), []byte{0}) {
		argv = append(argv, string(word))
	}
	return argv
}
