// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/kit/lease"
	"github.com/fumehood/fumehood/internal/sandbox/control"
	"github.com/fumehood/fumehood/internal/sandbox/guest"
	"github.com/fumehood/fumehood/internal/sandbox/interpreter"
	"github.com/fumehood/fumehood/internal/watch/monitor/wire"
)

// A Saved is a sandbox at rest on the disk: its memory, files, interpreters and shells. Runners whose Options have it
// begin with a copy of it, each with its own cgroup, gate, control socket and limits. It may be used by many at once.
//
// Its files are in a private directory, and are used only by the process that made them: they are restored only if no
// byte of them has been written since, and only with the Options of the sandbox that was saved, on the same files of
// the host. The next run removes what a killed process leaves.
//
// A copy begins with the random state, the time zone and the environment of its original. The kernel's own random
// numbers differ, and its clocks go on.
type Saved struct {
	dir          *lease.Dir
	files        []source // of savedFiles, when they were complete
	options      Options
	sources      []source
	workspace    *snapshot
	layer        *os.File // Options.Layer
	used         bool
	interpreters []savedInterpreter
	bytes        int64

	mu     sync.Mutex
	closed bool
	copies sync.WaitGroup // those that are being restored
}

// savedFiles are the names that runsc uses: the state, the list of memory's pages, and the pages.
var savedFiles = []string{"checkpoint.img", "pages_meta.img", "pages.img"}

// savedPrefix is the prefix of the leased directories' names.
const savedPrefix = "fumehood-saved-"

// restGrace is how long processes may take to stop.
const restGrace = 10 * time.Second

// A savedInterpreter is one that waits for a cell.
type savedInterpreter struct {
	key      string
	language interpreter.Language
	pid      int32
	hello    interpreter.Hello
	failed   bool // the last cell of a shell
	shell    *shellState
}

// Save saves the sandbox, which goes on. No command runs meanwhile. The error is a *proposal.StopError: sandbox.save if
// the sandbox, which is unharmed, cannot be saved as it is now; or one of Run. Close must be called.
func (r *Runner) Save(ctx context.Context) (*Saved, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil {
		return nil, r.ended
	}
	if why, hint := r.reasonNotToSave(); why != "" {
		return nil, newStopError("sandbox.save", "cannot save the sandbox: "+why, hint, nil)
	}
	r.current.discardPrepared()
	saved, err := r.current.saveSandbox(ctx)
	if err != nil && r.current.isDead() {
		r.ended = newStopError("sandbox.crashed", "the sandbox ended while it was saved"+r.current.runscOutput(),
			"run fumehood doctor", err)
		return nil, errors.Join(r.ended, r.closeCurrent())
	}
	return saved, err
}

// Begin starts the sandbox if none runs: a copy of Options.Saved is there then, and its state is known. An error is one
// of Run.
func (r *Runner) Begin(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended == nil {
		_, r.ended = r.ensureRunning(ctx, false)
	}
	return r.ended
}

// reasonNotToSave returns why the sandbox cannot be saved as it is now, and what to do. It returns "" if it can.
func (r *Runner) reasonNotToSave() (why, hint string) {
	s := r.current
	switch {
	case s == nil || s.isDead():
		return "nothing has run in it yet", "run a command first"
	case !r.o.isWatched():
		return "it is not watched", "remove Options.UnwatchedUnsafe"
	case r.o.Netns != "":
		return "it has a network, whose connections cannot be saved", "use a session whose policy grants no host"
	case r.o.Recorded:
		return "what is read in it is recorded", "use a session, or a plan without kept results"
	case s.services > 0:
		return "it has services", "use a session without services"
	case len(s.backgroundIDs()) > 0:
		return "commands run in the background", "wait for their end, or end them"
	}
	s.interpreters.mu.Lock()
	defer s.interpreters.mu.Unlock()
	for _, i := range s.interpreters.list {
		if i.cell != nil || i.Interpreter == nil {
			return "code runs in it", "wait for its end, or interrupt it"
		}
	}
	return "", ""
}

// saveSandbox saves s, which is at rest.
func (s *instance) saveSandbox(ctx context.Context) (_ *Saved, err error) {
	saved := &Saved{options: s.o.restoringOptions(), workspace: &snapshot{tried: true}, used: s.used}
	if saved.dir, err = lease.Make(s.o.stateParent(), savedPrefix); err != nil {
		return nil, noState(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, saved.Close())
		}
	}()
	if saved.sources, err = s.o.identifySources(); err != nil {
		return nil, err
	}
	if file := s.o.workspace.file; file != nil {
		if saved.workspace.file, err = duplicateFile(file); err != nil {
			return nil, err
		}
	}
	if file := s.o.Layer; file != nil {
		if saved.layer, err = duplicateFile(file); err != nil {
			return nil, err
		}
	}
	if err := s.stopAll(ctx); err != nil {
		return nil, err
	}
	saved.interpreters = s.listInterpreters()
	if err := s.writeState(saved); err != nil {
		return nil, err
	}
	return saved, nil
}

// stopAll kills what commands have left, and returns when the kernel says that no process runs.
func (s *instance) stopAll(ctx context.Context) error {
	if _, err := s.sweepProcesses(); err != nil {
		return errors.Join(err, s.killSandbox())
	}
	for end := time.Now().Add(restGrace); ; time.Sleep(time.Millisecond) {
		running, err := s.gate.monitor.PrepareSave(s.gate.nudgeKernel)
		switch {
		case err != nil:
			return errors.Join(s.gate.failureReason(err), s.killSandbox())
		case running == 0:
			return ctx.Err()
		case time.Now().After(end) || ctx.Err() != nil:
			return newStopError("sandbox.save", fmt.Sprintf("cannot save the sandbox: %d processes do not stop", running),
				"try again, or end what runs", ctx.Err())
		}
	}
}

func (s *instance) listInterpreters() (list []savedInterpreter) {
	s.interpreters.mu.Lock()
	defer s.interpreters.mu.Unlock()
	for key, r := range s.interpreters.list {
		one := savedInterpreter{key: key, language: r.Hello.Language, pid: r.pid, hello: r.Hello}
		if r.shell != nil {
			copied := *r.shell
			one.shell, one.failed = &copied, r.LastCellFailed()
		}
		list = append(list, one)
	}
	return list
}

// writeState makes the kernel write saved's files.
func (s *instance) writeState(saved *Saved) error {
	var files []*os.File
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	for _, name := range savedFiles {
		path := filepath.Join(saved.dir.Path, name)
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return noState(err)
		}
		files = append(files, f)
	}
	conn, err := control.Dial(s.controlSocketPath())
	if err == nil {
		err = conn.Save(files[0], files[1], files[2])
		_ = conn.Close()
	}
	if err != nil {
		return newStopError("sandbox.save", "gVisor cannot save the sandbox", "free some space in "+saved.dir.Path+
			", or close what its processes have open", err)
	}
	for _, f := range files {
		info, err := f.Stat()
		if err != nil {
			return noState(err)
		}
		saved.bytes += info.Size()
		saved.files = append(saved.files, identifyFile(info))
	}
	return nil
}

// Bytes returns the size of the saved sandbox on the disk.
func (v *Saved) Bytes() int64 { return v.bytes }

// Close removes the files, after copies that are being restored. Runners that have been restored go on.
func (v *Saved) Close() error {
	v.mu.Lock()
	closed := v.closed
	v.closed = true
	v.mu.Unlock()
	if closed {
		return nil
	}
	v.copies.Wait()
	if v.layer != nil {
		_ = v.layer.Close()
	}
	return errors.Join(v.workspace.close(), v.dir.Remove())
}

// beginRestore lets v be used until the function that it returns is called. It returns an error if v cannot be restored
// with o.
func (v *Saved) beginRestore(o Options) (done func(), err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return nil, notRestored("it was removed", "save the sandbox again", nil)
	}
	if !v.options.equalsWaiting(o.restoringOptions()) {
		return nil, notRestored("it was saved with other options", "start a new sandbox", nil)
	}
	now, err := o.identifySources()
	if err != nil || !slices.Equal(now, v.sources) {
		return nil, notRestored("files of the host that it shows have changed", "start a new sandbox", err)
	}
	for i, name := range savedFiles {
		info, err := os.Lstat(filepath.Join(v.dir.Path, name))
		if err != nil || i >= len(v.files) || identifyFile(info) != v.files[i] {
			return nil, notRestored("its file "+name+" has changed", "save the sandbox again", err)
		}
	}
	v.copies.Add(1)
	return v.copies.Done, nil
}

func notRestored(why, hint string, err error) error {
	return newStopError("sandbox.restore", "cannot restore the saved sandbox: "+why, hint, err)
}

// restoringOptions returns o without what a restored sandbox does not need to have of its original.
func (o Options) restoringOptions() Options {
	o = o.waitingOptions()
	o.Saved, o.Layer, o.rootFile, o.NetnsReady = nil, nil, nil, nil
	return o
}

// useSaved gives o the files that its Saved shows. closeRoot closes them.
func (o *Options) useSaved() (err error) {
	if o.Saved == nil {
		return nil
	}
	o.workspace.tried = true
	if file := o.Saved.workspace.file; file != nil {
		if o.workspace.file, err = duplicateFile(file); err != nil {
			return err
		}
	}
	if o.Saved.layer == nil {
		return nil
	}
	if o.Layer, err = duplicateFile(o.Saved.layer); err != nil {
		return err
	}
	layer, closeRoot := o.Layer, o.closeRoot
	o.closeRoot = func() { _ = layer.Close(); closeRoot() }
	return nil
}

func identifyFile(info fs.FileInfo) source {
	st := info.Sys().(*syscall.Stat_t)
	return source{dev: st.Dev, ino: st.Ino, mode: st.Mode, uid: st.Uid, gid: st.Gid, size: st.Size, mtime: st.Mtim,
		ctime: st.Ctim}
}

func duplicateFile(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// restoreSandbox is startSandbox for a copy of v.
func restoreSandbox(ctx context.Context, o Options, v *Saved) (*instance, error) {
	done, err := v.beginRestore(o)
	if err != nil {
		return nil, err
	}
	defer done()
	s := &instance{o: o, owner: &callbackHolder{}, backgrounds: &backgrounds{}, gone: make(chan struct{}),
		stderr: &tailBuffer{}, saved: v, used: v.used}
	if err := s.bootSandbox(ctx); err != nil {
		err = s.describeStartError(err)
		return nil, errors.Join(err, s.close())
	}
	s.saved = nil
	if s.owner.early.Load() {
		return nil, errors.Join(notRestored("something happened in it before its first command", "save the sandbox again",
			nil), s.close())
	}
	s.owner.callbacks.Store(&callbacks{o.Exec, o.Event})
	return s, nil
}

// restoreArgs returns runsc's arguments that restore s.saved, after it has made the pipes of the interpreters, whose
// other ends runsc inherits. They must be closed after the start.
func (s *instance) restoreArgs() (args []string, theirs []*os.File, err error) {
	args = []string{"restore", "--image-path=" + s.saved.dir.Path}
	for _, i := range s.saved.interpreters {
		files, err := s.restoreInterpreter(i)
		for number, f := range files {
			theirs = append(theirs, f)
			args = append(args, "--pass-fd="+strconv.Itoa(s.inheritNumber(f))+":"+
				strconv.Itoa(wire.RestoredFD(i.pid, number)))
		}
		if err != nil {
			return nil, theirs, err
		}
	}
	return args, theirs, nil
}

// restoreInterpreter adds an interpreter to s, and returns the files that its process has, by the numbers that they had
// at its start.
func (s *instance) restoreInterpreter(i savedInterpreter) (map[int]*os.File, error) {
	r := &liveInterpreter{s: s, key: i.key, pid: i.pid, ended: make(chan processEnd, 1), gone: make(chan struct{})}
	o := interpreter.Options{Language: i.language, Grace: cellGrace, Interrupt: r.interrupt}
	theirs := map[int]*os.File{}
	if i.shell == nil {
		files, err := openPipes()
		if err != nil {
			return theirs, err
		}
		theirs[0], theirs[1], theirs[2] = files[0], files[1], files[2]
		r.Interpreter = interpreter.StartRestored(files[3], files[4], i.hello, o)
	} else {
		ours, files, err := openShellPipes()
		if err != nil {
			return theirs, err
		}
		copied := *i.shell
		ours.Ended, r.shell = r.gone, &copied
		theirs = files
		r.Interpreter = interpreter.StartRestoredShell(ours, i.hello, i.failed, shellOptions(o))
	}
	if s.interpreters.list == nil {
		s.interpreters.list = map[string]*liveInterpreter{}
	}
	s.interpreters.list[i.key] = r
	s.onClose(r.closeStreams)
	return theirs, nil
}

// waitForInterpreters waits for the ends of restored interpreters.
func (s *instance) waitForInterpreters() error {
	for _, r := range s.interpreters.list {
		var err error
		if r.conn, err = control.Dial(s.controlSocketPath()); err != nil {
			return err
		}
		go r.waitForExit()
	}
	return nil
}

// askIfReady makes restored init say that it is ready.
func (s *instance) askIfReady() error {
	if s.saved == nil {
		return nil
	}
	_, err := s.init.requests.WriteString(guest.RequestReady + "\n")
	return err
}
