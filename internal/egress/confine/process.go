// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Process is a process that Start started.
type Process struct {
	cmd  *exec.Cmd
	said *outputTail
	done chan struct{} // closed: it is gone
	err  error         // how it ended, once done is closed
}

// Start starts argv, with input on its standard input and files from descriptor 3 on; the process
// is expected to confine itself with Self. It gets no environment, no other descriptor, only the
// capabilities that it needs to drop the rest, and its own namespaces except for the network's.
func Start(argv []string, input []byte, files ...*os.File) (*Process, error) {
	p := &Process{cmd: exec.Command(argv[0], argv[1:]...), said: &outputTail{}, done: make(chan struct{})}
	p.cmd.Stdin, p.cmd.Stderr = bytes.NewReader(input), p.said
	p.cmd.ExtraFiles, p.cmd.Env, p.cmd.Dir = files, []string{}, "/"
	p.cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP,
		Setsid:     true,
		Pdeathsig:  syscall.SIGKILL,
	}
	started := make(chan error)
	go func() {
		// The thread is changed permanently, so it ends with this goroutine. It must not end before
		// the process, which would be signaled that its parent had died.
		runtime.LockOSThread()
		err := limitThread()
		if err == nil {
			err = p.cmd.Start()
		}
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// kept are the capabilities that the process needs until it has confined itself.
const kept = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID

// limitThread empties the calling thread's bounding set, permanently, and leaves kept to the
// programs that the thread starts.
func limitThread() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return fmt.Errorf("cannot read capabilities: %v", err)
	}
	data[0].Inheritable, data[1].Inheritable = kept, 0
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("cannot hand down capabilities: %v", err)
	}
	for c := uintptr(0); ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) && c > 0 {
			return nil // beyond the last capability that this kernel knows
		}
		if err != nil {
			return fmt.Errorf("cannot give up capability %d: %v", c, err)
		}
	}
}

// Kill ends the process, even a stopped one.
func (p *Process) Kill() { _ = p.cmd.Process.Kill() }

// Pid returns the process's id, as its parent sees it.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the process is gone.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitError returns how the process ended, with its last output. It is nil while the process lives.
func (p *Process) ExitError() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	text := "exit status 0"
	if p.err != nil {
		text = p.err.Error()
	}
	if said := p.said.String(); said != "" {
		text += ": " + said
	}
	return errors.New(text)
}

// An outputTail keeps the last bytes written to it. A Go program's crash output begins with the reason, so
// it also keeps the first bytes.
type outputTail struct {
	mu    sync.Mutex
	first []byte
	last  []byte
}

const tailSize = 1024

func (t *outputTail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := min(len(p), tailSize-len(t.first))
	t.first = append(t.first, p[:n]...)
	t.last = append(t.last, p[n:]...)
	if more := len(t.last) - tailSize; more > 0 {
		t.last = append(t.last[:0], t.last[more:]...)
	}
	return len(p), nil
}

func (t *outputTail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(strings.TrimSpace(string(t.first)+string(t.last)), "\uFFFD")
}
