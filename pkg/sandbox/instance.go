// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sandbox

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/sandbox/control"
	"github.com/fumehood/fumehood/pkg/sandbox/guest"
)

// An instance is one running sandbox.
type instance struct {
	o   Options
	id  string
	dir string
	// runscRoot holds runsc's state and the control socket, whose path must have
	// fewer than 108 bytes wherever dir is.
	runscRoot string
	layout    layout
	cgroup    *cgroup
	launcher  *launcher
	cmd       *exec.Cmd
	gone      chan struct{} // closed when runsc has ended
	init      *initClient
	watch     *watch
	limited   proposal.Limits // what the cgroup has
	stderr    *tailBuffer
	undo      []func() error // in the order made; run backwards
}

// start makes a sandbox and waits until its init is ready.
func start(ctx context.Context, o Options) (*instance, error) {
	s := &instance{o: o, gone: make(chan struct{}), stderr: &tailBuffer{}}
	if err := s.begin(ctx); err != nil {
		err = s.describe(err)
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *instance) begin(ctx context.Context) error {
	if err := s.prepare(); err != nil {
		return err
	}
	if err := s.launch(); err != nil {
		return err
	}
	version, err := s.init.ready(ctx, startGrace)
	if err != nil {
		return err
	}
	return s.attest(version)
}

// prepare makes all that runsc needs and starts nothing but the launcher's thread.
func (s *instance) prepare() error {
	var err error
	if s.dir, err = stateDir(s.o); err != nil {
		return err
	}
	s.onClose(func() error { return os.RemoveAll(s.dir) })
	if s.id, err = newID(); err != nil {
		return err
	}
	for _, name := range []string{"bundle", "root", "upper", "trees"} {
		if err := os.Mkdir(filepath.Join(s.dir, name), 0o755); err != nil {
			return err
		}
	}
	if s.runscRoot, err = shortDir(); err != nil {
		return err
	}
	s.onClose(func() error { return os.RemoveAll(s.runscRoot) })
	if err := s.leaveNote(); err != nil {
		return err
	}
	go reap()
	if s.cgroup, err = newCgroup(cgroupMount, "fumehood-"+s.id); err != nil {
		return stop("sandbox.cgroup", "cannot make the cgroup that enforces limits", "run as root on a host with cgroups; see fumehood doctor", err)
	}
	s.onClose(s.cgroup.remove)
	if err := s.limit(s.o.Limits); err != nil {
		return stop("sandbox.cgroup", "this host cannot enforce a limit", "see fumehood doctor", err)
	}
	if s.watch, err = newWatch(s.dir); err != nil {
		return err
	}
	s.onClose(s.watch.close)
	// Entering a v1 cgroup takes 10 ms and more; the view and the bundle are made
	// meanwhile. The launcher gets the view, or none, on every way out of here.
	views := make(chan view, 1)
	s.launcher = newLauncher(func() error { return errors.Join(s.cgroup.enter(), (<-views).enter()) })
	s.onClose(func() error { s.launcher.close(); return nil })
	v, err := s.view()
	views <- v
	if err != nil {
		return err
	}
	return s.bundle()
}

// shortDir makes a private folder with a short path.
func shortDir() (string, error) {
	dir, err := os.MkdirTemp("/run", "fumehood-")
	if err != nil {
		dir, err = os.MkdirTemp("/tmp", "fumehood-")
	}
	return dir, err
}

// view decides as whom commands run: as the owner of the workspace, or, when that
// is root, as guestID with the owner mapped.
func (s *instance) view() (view, error) {
	info, err := os.Stat(s.o.Workspace)
	if err != nil || !info.IsDir() {
		return view{}, stop("sandbox.workspace", fmt.Sprintf("workspace %q is not a folder", s.o.Workspace), "name the folder that holds the pull request's code", err)
	}
	trees := append([]Bind{{s.o.Workspace, guest.Workspace}}, s.o.Trees...)
	v := view{trees: trees, dir: filepath.Join(s.dir, "trees")}
	for i := range trees {
		if err := os.Mkdir(v.path(i), 0o755); err != nil {
			return v, err
		}
	}
	owner := info.Sys().(*syscall.Stat_t)
	s.layout = layout{UID: int(owner.Uid), GID: int(owner.Gid)}
	if owner.Uid != 0 {
		return v, nil
	}
	s.layout.UID, s.layout.GID = guestID, guestID
	v.idmap, err = identityMap()
	if err == nil {
		s.onClose(v.idmap.Close)
	}
	return v, err
}

func (s *instance) bundle() error {
	l := &s.layout
	l.ID, l.Init, l.Binds, l.Limits = s.id, s.o.Init, s.o.Binds, s.o.Limits
	l.Root, l.Upper = filepath.Join(s.dir, "root"), filepath.Join(s.dir, "upper")
	l.Cgroup = "/fumehood-" + s.id
	l.Trees = []Bind{{filepath.Join(s.dir, "trees", "0"), guest.Workspace}}
	for i, t := range s.o.Trees {
		l.Trees = append(l.Trees, Bind{filepath.Join(s.dir, "trees", fmt.Sprint(i+1)), t.Target})
	}
	if err := l.skeleton(); err != nil {
		return err
	}
	if err := s.generate(); err != nil {
		return err
	}
	return l.write(filepath.Join(s.dir, "bundle"))
}

// limit sets the cgroup's limits where they differ from what it has.
func (s *instance) limit(l proposal.Limits) error {
	l.Wall, l.Output = 0, 0 // ours to enforce
	if l == s.limited {
		return nil
	}
	s.limited = proposal.Limits{} // unknown if this fails half-way
	if err := s.cgroup.limit(l); err != nil {
		return err
	}
	s.limited = l
	return nil
}

// generate writes the root's own files and links.
func (s *instance) generate() error {
	for path, data := range s.o.Files {
		host := filepath.Join(s.layout.Root, path)
		if err := os.MkdirAll(filepath.Dir(host), 0o755); err != nil {
			return err
		}
		text := strings.NewReplacer("{uid}", fmt.Sprint(s.layout.UID), "{gid}", fmt.Sprint(s.layout.GID)).Replace(string(data))
		if err := os.WriteFile(host, []byte(text), 0o644); err != nil {
			return err
		}
	}
	for path, target := range s.o.Links {
		if err := os.Symlink(target, filepath.Join(s.layout.Root, path)); err != nil {
			return err
		}
	}
	return nil
}

// runscFlags hold for every sandbox; facts about each are in the package comment.
func (s *instance) runscFlags() []string {
	return []string{
		"--root=" + s.runscRoot,
		"--platform=systrap",
		"--network=none",
		"--ignore-cgroups", // we made and entered them ourselves
		"--overlay2=none",  // guest init mounts the overlays, so that it can tell what changed
		"--file-access-mounts=exclusive",
		"--host-uds=none",
		"--host-fifo=none",
		"--pod-init-config=" + s.watch.config(s.dir),
		"--log=" + filepath.Join(s.dir, "runsc.log"),
		"--log-format=json",
	}
}

func (s *instance) launch() error {
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
	args := append(s.runscFlags(), "run", "--bundle="+filepath.Join(s.dir, "bundle"), s.id)
	s.cmd = exec.Command(s.o.Runsc, args...)
	s.cmd.Env = []string{}
	s.cmd.Dir = "/"
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = requests, answers, s.stderr
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	closeDir, err := s.cgroup.attach(s.cmd.SysProcAttr)
	if err != nil {
		return err
	}
	err = s.launcher.launch(s.cmd)
	_ = errors.Join(requests.Close(), answers.Close(), closeDir())
	if err != nil {
		close(s.gone)
		return err
	}
	go func() { _ = s.cmd.Wait(); close(s.gone) }()
	s.onClose(s.end)
	return nil
}

// attest checks from inside and outside that this is gVisor, and ours.
func (s *instance) attest(version string) error {
	if !strings.Contains(version, "-gvisor ") {
		return stop("sandbox.not-gvisor", fmt.Sprintf("the sandbox's kernel calls itself %q, not gVisor", version), "do not replace runsc; run fumehood doctor", nil)
	}
	conn, err := control.Dial(s.socket())
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := s.watch.confirm(conn); err != nil {
		return err
	}
	return s.cgroup.eachProcess(func(pid string) error {
		exe, err := os.Stat("/proc/" + pid + "/exe")
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			return nil // gone meanwhile
		}
		if err != nil {
			return err
		}
		for _, own := range []string{s.o.Runsc, s.sentry()} {
			if info, err := os.Stat(own); err == nil && os.SameFile(exe, info) {
				return nil
			}
		}
		return stop("sandbox.not-gvisor", "a process in the sandbox's cgroup is not the verified runsc", "run fumehood doctor", nil)
	})
}

func (s *instance) sentry() string {
	return filepath.Join(filepath.Dir(s.o.Runsc), "gvisor-bin", "gvisor_sentry")
}

func (s *instance) socket() string {
	return filepath.Join(s.runscRoot, "runsc-"+s.id+".sock")
}

func (s *instance) dead() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// end kills whatever is left in the sandbox and waits until runsc is gone.
func (s *instance) end() error {
	for !s.cgroup.kill() {
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

// close undoes everything in reverse order. It may be called once.
func (s *instance) close() error {
	var err error
	for i := len(s.undo) - 1; i >= 0; i-- {
		err = errors.Join(err, s.undo[i]())
	}
	return err
}

// describe turns a failed start into one message with what runsc said.
func (s *instance) describe(err error) error {
	var known *proposal.StopError
	if errors.As(err, &known) {
		return err
	}
	hint := "run fumehood doctor"
	if s.cgroup != nil && s.cgroup.usage().oomKills > 0 {
		hint = "the memory limit " + s.o.Limits.Memory.String() + " is too small for gVisor itself: grant at least 64 MiB"
	}
	return stop("sandbox.start", "cannot start the sandbox"+s.said(), hint, err)
}

func (s *instance) said() string {
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

// newID returns a name of fixed length: runsc takes unique prefixes of ids.
func newID() (string, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return hex.EncodeToString(b[:]), nil
}
