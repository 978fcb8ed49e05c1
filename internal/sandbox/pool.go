// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Pool keeps sandboxes that have started, so that a Runner that has it in its Options
// gets one in milliseconds. It is safe for concurrent use.
//
// In a waiting sandbox only guest init runs, and no program can start. A Runner gets it
// only if it was started with the same options on the same directories and files of the
// host, is at most MaxWait old, has seen nothing happen inside, and still answers. One that
// does not is ended. A sandbox belongs to one Runner, and never returns to the Pool.
//
// What a waiting sandbox has is what a running one has: a cgroup, of which the memory limit is
// lower, directories, and a note that lets the next run remove them after a SIGKILL.
type Pool struct {
	size   int
	once   bool            // what was claimed is not replaced
	ctx    context.Context // ends starts
	cancel context.CancelFunc

	mu     sync.Mutex
	keep   *Options // what to start, nil until that is known
	list   []*waitingSandbox
	refill *time.Timer
	closed bool
	work   sync.WaitGroup // one for each sandbox that starts, ends or is being claimed
	errs   []error        // of sandboxes that could not be removed
}

// MaxPool is the maximum size of a Pool.
const MaxPool = 16

// MaxWait is how long a sandbox waits before another replaces it.
const MaxWait = 10 * time.Minute

const (
	// refillAfter lets the commands of the Runner that claimed a sandbox go first.
	refillAfter = 200 * time.Millisecond
	// claimGrace is how long a waiting sandbox may take to answer, which it normally does in
	// a millisecond.
	claimGrace = time.Second
	// waitingMemory is the memory limit of a waiting sandbox, which needs 40 MiB.
	waitingMemory = 256 * proposal.MiB
)

// NewPool returns a Pool that keeps size sandboxes, at most MaxPool; none if size is not
// positive. It starts them when it knows for which Options: see Keep. Close must be called.
func NewPool(size int) *Pool {
	p := &Pool{size: min(size, MaxPool)}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// StartEarly starts one sandbox for a Runner with o: it returns a Pool that is never filled again.
func StartEarly(o Options) *Pool {
	p := NewPool(1)
	p.once = true
	p.Keep(o)
	return p
}

// A waitingSandbox is one sandbox of a Pool.
type waitingSandbox struct {
	o       Options
	sources []source // what it shows, when it began to start
	expiry  *time.Timer
	done    chan struct{} // closed when the next two are set
	s       *instance
	err     error
}

// Keep starts sandboxes for Runners with o, and from then on replaces each that is claimed.
// A Runner with other options that can wait changes what the Pool keeps. Options with a Netns,
// an image, Recorded or UnwatchedUnsafe cannot, and are ignored. Callbacks, Artifacts, Env and Guard do not matter.
func (p *Pool) Keep(o Options) {
	if p == nil || !o.canWait() {
		return
	}
	o = o.waitingOptions()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keepLocked(o)
	p.fillLocked()
}

// canWait reports whether a sandbox with o can start before its Runner is known.
// What is in images is opened, or made, for a Runner.
func (o Options) canWait() bool {
	return o.Netns == "" && o.isWatched() && o.RootImage.Source == "" && o.Layer == nil && !o.Recorded &&
		len(o.Images) == 0 &&
		!hasFiles(o.Workspace, cmp.Or(o.ImageFrom, DefaultImageFrom))
}

// waitingOptions returns o without what a sandbox does not need to start.
func (o Options) waitingOptions() Options {
	o.Exec, o.Event, o.Started, o.Ended, o.Pool = nil, nil, nil, nil, nil
	o.Env, o.Guard, o.Artifacts = nil, nil, ""
	o.ImageFrom, o.workspace, o.files, o.closeRoot = 0, nil, hostFiles{}, nil
	o.Limits.Wall, o.Limits.Output = 0, 0
	o.answerWithin, o.patience = o.answerTimeouts()
	return o
}

// equalsWaiting reports whether a sandbox that was started with o is one for other, both from waits.
// Any difference that is not known to be without effect counts.
func (o Options) equalsWaiting(other Options) bool {
	o.Verify, other.Verify = nil, nil // both are called
	return reflect.DeepEqual(o, other)
}

// keepLocked makes p keep sandboxes with o, and ends the others.
func (p *Pool) keepLocked(o Options) {
	if p.keep != nil && p.keep.equalsWaiting(o) {
		return
	}
	p.keep = &o
	for _, w := range p.list {
		p.endLocked(w)
	}
	p.list = nil
}

// fillLocked starts what is missing.
func (p *Pool) fillLocked() {
	for !p.closed && p.keep != nil && len(p.list) < p.size {
		w := &waitingSandbox{o: *p.keep, done: make(chan struct{})}
		p.list = append(p.list, w)
		p.work.Go(func() { w.startWaiting(p.ctx) })
		w.expiry = time.AfterFunc(MaxWait, func() { p.replaceExpired(w) })
	}
}

// fillLaterLocked calls fillLocked in a moment.
func (p *Pool) fillLaterLocked() {
	if p.refill == nil && !p.closed && !p.once {
		p.refill = time.AfterFunc(refillAfter, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.refill = nil
			p.fillLocked()
		})
	}
}

func (w *waitingSandbox) startWaiting(ctx context.Context) {
	defer close(w.done)
	if w.sources, w.err = w.o.identifySources(); w.err != nil {
		return
	}
	if w.err = w.o.Verify(); w.err != nil {
		return
	}
	o := w.o
	o.workspace = &snapshot{tried: true} // it is shown as it is
	if w.s, w.err = startWaiting(ctx, o); w.err != nil {
		return
	}
	if w.err = w.s.lowerLimits(); w.err != nil {
		w.err, w.s = errors.Join(w.err, w.s.close()), nil
	}
}

// claimSandbox returns a waiting sandbox for o, or nil if there is none. If one is starting, it
// waits for that.
func (p *Pool) claimSandbox(ctx context.Context, o Options) *instance {
	if p == nil || !o.canWait() {
		return nil
	}
	for {
		w := p.takeWaiting(o.waitingOptions())
		if w == nil {
			return nil
		}
		s := w.claimFor(ctx, o)
		if s == nil {
			p.mu.Lock()
			p.endLocked(w)
			p.mu.Unlock()
		}
		p.work.Done()
		if s != nil || ctx.Err() != nil {
			return s
		}
	}
}

// takeWaiting removes a sandbox with o from the list, one that is ready if possible, or returns nil.
// The caller must call work.Done.
func (p *Pool) takeWaiting(o Options) *waitingSandbox {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.size <= 0 {
		return nil
	}
	p.keepLocked(o)
	p.fillLaterLocked()
	if len(p.list) == 0 {
		return nil
	}
	i := max(0, slices.IndexFunc(p.list, (*waitingSandbox).isStarted))
	w := p.list[i]
	p.list = slices.Delete(p.list, i, i+1)
	w.expiry.Stop()
	p.work.Add(1)
	return w
}

func (w *waitingSandbox) isStarted() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// claimFor returns the sandbox for o, or nil if it cannot be used.
func (w *waitingSandbox) claimFor(ctx context.Context, o Options) *instance {
	select {
	case <-w.done:
	case <-ctx.Done():
		return nil
	}
	if w.err != nil || w.o.Verify() != nil {
		return nil
	}
	if now, err := o.identifySources(); err != nil || !slices.Equal(now, w.sources) {
		return nil
	}
	if err := w.s.assignTo(o); err != nil {
		return nil
	}
	return w.s
}

// replaceExpired replaces a sandbox that has waited for too long.
func (p *Pool) replaceExpired(w *waitingSandbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.list, w); i >= 0 {
		p.list = slices.Delete(p.list, i, i+1)
		p.endLocked(w)
		p.fillLaterLocked()
	}
}

// endLocked ends w, which is in no list, in the background.
func (p *Pool) endLocked(w *waitingSandbox) {
	w.expiry.Stop()
	p.work.Go(func() {
		<-w.done
		if w.s == nil {
			return
		}
		if err := w.s.close(); err != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.errs = append(p.errs[:min(len(p.errs), maxPoolErrors)], err)
		}
	})
}

// maxPoolErrors is how many errors Close returns, less one.
const maxPoolErrors = 9

// Waiting returns how many sandboxes are started and not claimed.
func (p *Pool) Waiting() (n int) {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.list {
		if w.isStarted() && w.err == nil {
			n++
		}
	}
	return n
}

// Close ends the waiting sandboxes, and returns when nothing of them is left on the host.
// Claimed ones are their Runners'. Later claims get none.
func (p *Pool) Close() error {
	if p == nil {
		return nil
	}
	p.cancel()
	p.mu.Lock()
	p.closed = true
	for _, w := range p.list {
		p.endLocked(w)
	}
	p.list = nil
	if p.refill != nil {
		p.refill.Stop()
	}
	p.mu.Unlock()
	p.work.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.errs...)
}

// A source identifies a file or directory of the host that a sandbox shows. The entries of a
// directory are not part of it: a waiting sandbox has not looked at them.
type source struct {
	dev, ino     uint64
	mode         uint32
	uid, gid     uint32
	size         int64
	mtime, ctime syscall.Timespec
}

// identifySources identifies what o shows.
func (o Options) identifySources() ([]source, error) {
	var list []source
	for _, b := range slices.Concat([]Bind{{Source: o.Workspace}}, o.Trees, o.Binds) {
		info, err := os.Stat(b.Source)
		if err != nil {
			return nil, fmt.Errorf("cannot show %q: %v", b.Source, err)
		}
		st := info.Sys().(*syscall.Stat_t)
		one := source{dev: st.Dev, ino: st.Ino, mode: st.Mode, uid: st.Uid, gid: st.Gid}
		if !info.IsDir() {
			one.size, one.mtime, one.ctime = st.Size, st.Mtim, st.Ctim
		}
		list = append(list, one)
	}
	return list, nil
}

// lowerLimits lowers the limits of a sandbox that waits.
func (s *instance) lowerLimits() error {
	l := s.o.Limits
	l.CPUs, l.Memory = min(l.CPUs, 1), min(l.Memory, waitingMemory)
	return s.setCgroupLimits(l)
}

// assignTo makes a waiting sandbox that of a Runner with o. With an error it must be ended.
func (s *instance) assignTo(o Options) error {
	if err := s.checkUnused(); err != nil {
		return err
	}
	s.o = o
	if err := s.setCgroupLimits(s.startLimits()); err != nil {
		return err
	}
	s.owner.callbacks.Store(&callbacks{o.Exec, o.Event})
	if s.owner.early.Load() {
		return errEarly
	}
	return nil
}

var errEarly = errors.New("something happened in a sandbox that waited")

// checkUnused returns an error unless the sandbox's kernel and init answer in time, and nothing else
// is there or has happened.
func (s *instance) checkUnused() error {
	if s.isDead() || s.owner.early.Load() {
		return errEarly
	}
	answered := make(chan error, 1)
	go func() { answered <- s.checkAnswers() }()
	select {
	case err := <-answered:
		return err
	case <-time.After(claimGrace):
		return errors.New("a sandbox that waited does not answer")
	}
}

func (s *instance) checkAnswers() error {
	if err := errors.Join(s.gate.monitor.Err(), s.gate.nudgeKernel()); err != nil {
		return err
	}
	left, err := s.init.killLeftProcesses(claimGrace)
	if err == nil && left > 0 {
		err = errEarly
	}
	return err
}
