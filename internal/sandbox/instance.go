// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/kit/lease"
	"github.com/fumehood/fumehood/internal/sandbox/control"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An instance is one running sandbox.
type instance struct {
	o   Options
	id  string
	dir string
	// root holds runsc's state and the control socket, whose path must have fewer than
	// 108 bytes wherever dir is.
	root         *lease.Dir
	layout       layout
	images       []*os.File // that runsc inherits, from descriptor 3 on; of a restored sandbox more than images
	cgroup       *cgroup
	heavy        atomic.Bool // the last command took much memory
	launcher     *launcher
	cmd          *exec.Cmd
	gone         chan struct{} // closed when runsc has ended
	init         *initClient
	watch        *sinkReader
	gate         *execGate // nil without gate and monitor
	owner        *callbackHolder
	limited      proposal.Limits // the cgroup's current limits
	used         bool            // by a command that is not a service
	paused       bool            // see Runner.Pause
	prepared     *command        // see Runner.Prepare; nil without one
	services     int             // how many were started, or failed
	interpreters interpreters
	held         []int32 // what the last hold request named
	backgrounds  *backgrounds
	saved        *Saved // what it is restored from, until it is
	stderr       *tailBuffer
	undo         []func() error // in the order made; run in reverse
}

// A callbackHolder is whom the kernel's questions and events go to.
type callbackHolder struct {
	callbacks atomic.Pointer[callbacks] // nil while the sandbox waits in a Pool
	early     atomic.Bool               // something happened while it waited
}

// callbacks are a Runner's Options.Exec and Options.Event.
type callbacks struct {
	exec  func(proposal.Exec) proposal.ExecDecision
	event func(proposal.Event)
}

// askRunner asks the Runner. Without one, no program may start.
func (w *callbackHolder) askRunner(x proposal.Exec) proposal.ExecDecision {
	if c := w.callbacks.Load(); c != nil {
		return c.exec(x)
	}
	w.early.Store(true)
	return proposal.ExecDecision{Effect: proposal.Deny, Rules: []string{}}
}

// reportEvent reports e to the Runner.
func (w *callbackHolder) reportEvent(e proposal.Event) {
	if c := w.callbacks.Load(); c != nil {
		c.event(e)
		return
	}
	w.early.Store(true)
}

// startSandbox makes a sandbox and waits until its init is ready.
func startSandbox(ctx context.Context, o Options) (*instance, error) {
	s, err := startWaiting(ctx, o)
	if err == nil {
		s.owner.callbacks.Store(&callbacks{o.Exec, o.Event})
	}
	return s, err
}

// startWaiting is startSandbox for a sandbox without a Runner: no program can start in it yet.
func startWaiting(ctx context.Context, o Options) (*instance, error) {
	s := &instance{o: o, owner: &callbackHolder{}, backgrounds: &backgrounds{}, gone: make(chan struct{}),
		stderr: &tailBuffer{}}
	if err := s.bootSandbox(ctx); err != nil {
		err = s.describeStartError(err)
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *instance) bootSandbox(ctx context.Context) error {
	if err := s.prepareRunsc(ctx); err != nil {
		return err
	}
	if err := s.launchRunsc(); err != nil {
		return err
	}
	if err := s.askIfReady(); err != nil {
		return err
	}
	version, err := s.init.waitUntilReady(ctx, startGrace)
	if err != nil {
		return err
	}
	if err := s.checkGVisor(version); err != nil {
		return err
	}
	return s.waitForInterpreters()
}

// runscFlags apply to every sandbox; the package comment explains them.
func (s *instance) runscFlags() []string {
	return []string{
		"--root=" + s.root.Path,
		"--platform=systrap",
		"--network=" + s.networkMode(),
		"--ignore-cgroups", // fumehood has made and entered them
		"--overlay2=none",  // guest init mounts the overlays, so that it can report changes
		"--file-access-mounts=exclusive",
		"--host-uds=none",
		"--host-fifo=none",
		"--pod-init-config=" + s.watch.configPath(s.dir),
		"--log=" + filepath.Join(s.dir, "runsc.log"),
		"--log-format=json",
	}
}

func (s *instance) networkMode() string {
	if s.o.Netns != "" {
		return "sandbox"
	}
	return "none"
}

func (s *instance) launchRunsc() error {
	requests, requestsOurs, err := os.Pipe()
	if err != nil {
		return err
	}
	answersOurs, answers, err := os.Pipe()
	if err != nil {
		return errors.Join(err, requests.Close(), requestsOurs.Close())
	}
	s.init = newInitClient(requestsOurs, answersOurs)
	s.onClose(s.init.close)
	verb := []string{"run"}
	if s.saved != nil {
		var theirs []*os.File
		verb, theirs, err = s.restoreArgs()
		defer func() {
			for _, f := range theirs {
				_ = f.Close()
			}
		}()
		if err != nil {
			return errors.Join(err, requests.Close(), answers.Close())
		}
	}
	args := slices.Concat(s.runscFlags(), verb, []string{"--bundle=" + filepath.Join(s.dir, "bundle"), s.id})
	s.cmd = exec.Command(s.o.Runsc, args...)
	s.cmd.Env = []string{}
	s.cmd.Dir = "/"
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = requests, answers, s.stderr
	s.cmd.ExtraFiles = s.images
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	closeDir, err := s.cgroup.attachProcess(s.cmd.SysProcAttr)
	if err != nil {
		return err
	}
	err = s.launcher.launchCommand(s.cmd)
	_ = errors.Join(requests.Close(), answers.Close(), closeDir())
	if err != nil {
		close(s.gone)
		return err
	}
	go func() { _ = s.cmd.Wait(); close(s.gone) }()
	s.gate.serveMonitor(s.cmd.Process.Pid)
	s.onClose(s.killSandbox)
	return nil
}

// checkGVisor checks from inside and outside that this is gVisor, and our build of it.
func (s *instance) checkGVisor(version string) error {
	if !strings.Contains(version, "-gvisor ") {
		return newStopError("sandbox.not-gvisor",
			fmt.Sprintf("the sandbox's kernel identifies itself as %q, not as gVisor", version),
			"do not replace runsc; run fumehood doctor", nil)
	}
	conn, err := control.Dial(s.controlSocketPath())
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := s.watch.confirmActive(conn); err != nil {
		return err
	}
	if err := s.gate.waitUntilReady(); err != nil {
		return err
	}
	return s.cgroup.eachProcess(func(pid string) error {
		exe, err := os.Stat("/proc/" + pid + "/exe")
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			return nil // it has ended meanwhile
		}
		if err != nil {
			return err
		}
		for _, own := range []string{s.o.Runsc, s.sentryPath()} {
			if info, err := os.Stat(own); err == nil && os.SameFile(exe, info) {
				return nil
			}
		}
		return newStopError("sandbox.not-gvisor", "a process in the sandbox's cgroup is not the verified runsc",
			"run fumehood doctor", nil)
	})
}

func (s *instance) sentryPath() string {
	return filepath.Join(filepath.Dir(s.o.Runsc), "gvisor-bin", "gvisor_sentry")
}

func (s *instance) controlSocketPath() string {
	return filepath.Join(s.root.Path, "runsc-"+s.id+".sock")
}

func (s *instance) isDead() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// killSandbox kills whatever is left in the sandbox and waits until runsc is gone.
func (s *instance) killSandbox() error {
	if !s.isDead() {
		s.backgrounds.ending.Store(true)
	}
	// runsc's death also ends the sandbox, even if the cgroup could not be read.
	_ = s.cmd.Process.Kill()
	for !s.cgroup.killProcesses() {
		select {
		case <-s.gone:
		default:
			unix.Nanosleep(&unix.Timespec{Nsec: 2e6}, nil)
		}
	}
	<-s.gone
	return nil
}

func (s *instance) onClose(f func() error) { s.undo = append(s.undo, f) }

// close undoes everything in reverse order. It must be called at most once.
func (s *instance) close() error {
	var err error
	for i := len(s.undo) - 1; i >= 0; i-- {
		err = errors.Join(err, s.undo[i]())
	}
	return err
}

// leastMemory is what gVisor itself needs.
const leastMemory proposal.Bytes = 64 << 20

// describeStartError combines a failed start and runsc's output into one error.
func (s *instance) describeStartError(err error) error {
	var known *proposal.StopError
	if errors.As(err, &known) {
		return err
	}
	hint := "run fumehood doctor"
	if profile := appArmor(); profile != "" && errors.Is(err, unix.EACCES) {
		hint = fmt.Sprintf("the AppArmor profile %q forbids it: run fumehood without a profile; for a container see docs/CONTAINER.md", profile)
	}
	said := s.runscOutput()
	// At its limit the kernel kills a process, or has no memory for a new one.
	refused := s.o.Limits.Memory < leastMemory && strings.Contains(said, unix.ENOMEM.Error())
	if s.cgroup != nil && (refused || s.cgroup.readUsage().oomKills > 0) {
		hint = "the memory limit " + s.o.Limits.Memory.String() + " is too small for gVisor itself: grant at least " +
			leastMemory.String()
	}
	return newStopError("sandbox.start", "cannot start the sandbox"+said, hint, err)
}

// appArmor returns the AppArmor profile of this process, "" if there is none.
func appArmor() string {
	label, err := os.ReadFile("/proc/self/attr/apparmor/current")
	profile := strings.TrimSpace(string(label))
	if err != nil || profile == "unconfined" {
		return ""
	}
	return profile
}

func (s *instance) runscOutput() string {
	text := s.stderr.String()
	if log, err := os.ReadFile(filepath.Join(s.dir, "runsc.log")); err == nil && text == "" {
		text = lastLine(string(log))
	}
	if text == "" {
		return ""
	}
	return " (runsc: " + strings.TrimSpace(text) + ")"
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
