// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stubs are programs that do nothing; a traced text can name them freely.
var stubs = strings.Fields("id whoami uname date go git grep wc tail head sort ls p q r hidden curl python3 node make sed awk tee jq rm sudo su watch")

// real are the wrappers that must really start what they wrap.
var real = strings.Fields("env timeout nice nohup xargs find bash sh setsid stdbuf cat seq ionice taskset true false flock")

// A lab is a scratch directory with a PATH of stubs.
type lab struct{ dir, path string }

func newLab(t testing.TB) lab {
	t.Helper()
	l := lab{dir: t.TempDir(), path: t.TempDir()}
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
	for _, name := range []string{"f", "x y", "a.go", "-n"} {
		if err := os.WriteFile(filepath.Join(l.dir, name), []byte("one\ntwo\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func link(t testing.TB, from, to string) {
	t.Helper()
	if err := os.Symlink(from, to); err != nil {
		t.Fatal(err)
	}
}

// trace runs text with bash and returns the argv of every program that was really
// executed, the first bash apart.
func (l lab) trace(t testing.TB, text string) [][]string {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command("/bin/bash", "--norc", "--noprofile", "-c", text)
	cmd.Dir = l.dir
	cmd.Env = []string{"PATH=" + l.path, "HOME=" + l.dir, "LC_ALL=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	stop := time.AfterFunc(5*time.Second, func() { syscall.Kill(-pid, syscall.SIGKILL) })
	defer stop.Stop()
	execs, err := follow(pid)
	syscall.Kill(-pid, syscall.SIGKILL)
	cmd.Process.Release()
	if err != nil {
		t.Fatalf("cannot trace %q: %v", text, err)
	}
	return execs
}

const (
	traceOptions = syscall.PTRACE_O_TRACEEXEC | syscall.PTRACE_O_TRACEFORK | syscall.PTRACE_O_TRACEVFORK | syscall.PTRACE_O_TRACECLONE | 0x100000 // EXITKILL
	waitOptions  = syscall.WALL | 0x20000000                                                                                                      // WNOTHREAD
)

// follow is a small ptrace loop over the whole process tree.
func follow(root int) (execs [][]string, err error) {
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(root, &status, waitOptions, nil); err != nil {
		return nil, err
	}
	if err := syscall.PtraceSetOptions(root, traceOptions); err != nil {
		return nil, err
	}
	if err := syscall.PtraceCont(root, 0); err != nil {
		return nil, err
	}
	for {
		pid, err := syscall.Wait4(-1, &status, waitOptions, nil)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.ECHILD:
			return execs, nil
		case err != nil:
			return nil, err
		case !status.Stopped():
			continue
		}
		signal := 0
		switch cause := status.TrapCause(); {
		case cause == syscall.PTRACE_EVENT_EXEC:
			argv, err := argvOf(pid)
			if err != nil {
				return nil, err
			}
			execs = append(execs, argv)
		case cause <= 0 && status.StopSignal() != syscall.SIGTRAP && status.StopSignal() != syscall.SIGSTOP:
			signal = int(status.StopSignal())
		}
		syscall.PtraceCont(pid, signal)
	}
}

func argvOf(pid int) ([]string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil, err
	}
	var argv []string
	for word := range bytes.SplitSeq(bytes.TrimSuffix(data, []byte{0}), []byte{0}) {
		argv = append(argv, string(word))
	}
	return argv, nil
}
