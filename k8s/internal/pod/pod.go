// SPDX-License-Identifier: Apache-2.0

// Package pod is the gate of one Kubernetes pod: policy decides about every process that is
// started in its containers from outside, and about every program that those start; gVisor's
// kernel waits for the answers. What was proposed, decided and done is in the pod's own
// audit log.
//
// A Pod is in the process that starts the pod's sandbox. The processes that start further
// containers of it, or processes in them, ask it through a Door. What starts a sandbox is the
// caller's: the package knows neither containerd nor runsc.
//
// # What it promises
//
//   - Nothing starts that policy has not allowed. A container's command, an exec into it and a
//     probe are proposals like those of a plan: decided, on disk, and started then. The first
//     program of each is started by Init, so that the kernel asks about it like about
//     every other program.
//   - Every process belongs to the start that it descends from, in the log and for policy,
//     whatever container it is in. When the first process of a start has ended, all others
//     of it are killed.
//   - On any doubt the pod ends: Failed is closed when the kernel's connection, the log or
//     policy fails, and the kernel refuses every program from then on.
//
// # What it does not do
//
// Limits of policy on time, memory and processes are not applied: those of a pod are
// Kubernetes's. Its containers share one network, if policy grants any: which of them a
// connection is of is not known. Nothing asks a person, so what policy asks about is refused.
package pod

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fumehood/fumehood/internal/egress/redact"
	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/internal/sandbox/control"
	"github.com/fumehood/fumehood/internal/sandbox/guest"
	"github.com/fumehood/fumehood/internal/watch/lineage"
	"github.com/fumehood/fumehood/internal/watch/monitor"
	"github.com/fumehood/fumehood/internal/watch/monitor/wire"
	"github.com/fumehood/fumehood/internal/watch/observe"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Init is the path, in every container, of the program fumehood-init, which must be there and
// read-only. Through returns how it starts another.
const Init = guest.Init

// Through returns the argv with which Init starts argv.
func Through(argv []string) []string { return append([]string{Init, "exec"}, argv...) }

// MaxRunning is how many starts of a pod may run at once. The kernel tells more apart: some that
// have ended may still be known to it.
const MaxRunning = wire.MaxGenerations - 4

// patience is how long gVisor's kernel and the gate wait for each other, and starting how long
// a container's first program may take to start.
const (
	patience = time.Minute
	starting = 30 * time.Second
)

// Options describe a pod. All fields are required, except for Proven.
type Options struct {
	// Run is the log's first entry. Its Session and Policy are set.
	Run proposal.Run
	// Log gets every entry. Close seals it.
	Log *audit.Log
	// Dir is a private directory for the gate's socket, with a path of at most 90 bytes.
	Dir string
	// Proven says that a pod with the same policy, fumehood-runsc and pause container has started
	// before. Then Confirm does not wait until policy is compiled, nor the start of the pause
	// container until its program is decided: should that fail, the pod does. Every program
	// waits, as always, and so does every other start.
	Proven bool
}

// A Pod decides for one pod. Its methods are safe for concurrent use.
type Pod struct {
	o        Options
	policy   *Policy // set by Use, as are the next three
	redactor *redact.Redactor
	observer *observe.Observer
	monitor  *monitor.Monitor
	network  *connected             // nil if the pod has none; set before the sandbox starts
	control  atomic.Pointer[string] // the sandbox's control socket, once the gate is in force

	stopping atomic.Bool
	failing  sync.Once
	failed   chan struct{}
	err      error // set before failed is closed

	starting sync.Mutex // one start at a time
	mu       sync.Mutex // for the fields below
	running  map[string]*running
	programs map[string]*sandbox.Programs // of the containers that run, by root
	totals   proposal.Totals
	reserved int // processes that run or were admitted
	closed   bool
	last     int // number of the last start
}

// Open listens for the sandbox's kernel. Close must be called. The error is a *proposal.StopError.
func Open(o Options) (*Pod, error) {
	if o.Log == nil || o.Dir == "" {
		return nil, stop("pod.options", "the pod has no log or directory", "set Log and Dir", nil)
	}
	p := &Pod{o: o, failed: make(chan struct{}), running: map[string]*running{},
		programs: map[string]*sandbox.Programs{}}
	p.o.Run.Session = true
	var err error
	p.monitor, err = monitor.Listen(p.socket(), monitor.Options{Exec: p.exec, AnswerWithin: sandbox.AnswerWithin,
		Patience: patience, Event: p.event, Events: math.MaxInt, Same: p.same, Linked: p.linked, Init: Init})
	if err != nil {
		return nil, stop("pod.gate", "cannot listen for the sandbox's kernel",
			"use a directory with a shorter path, which only root can write to", err)
	}
	return p, nil
}

// Use makes a policy decide, which no other pod has, and writes the log's first entry. Nothing can
// be admitted before. A policy that cannot be compiled fails the pod. It must be called once, before
// any other method but Close.
func (p *Pod) Use(x *Policy) (err error) {
	if p.redactor, err = redact.New(redact.Options{Decide: decided(x, (*policy.Engine).Output)}); err != nil {
		return err
	}
	if p.observer, err = observe.New(p.o.Log, decided(x, (*policy.Engine).Event)); err != nil {
		return err
	}
	p.o.Run.Policy = x.digest
	if _, err = p.o.Log.Append("run", p.redactor.Run(p.o.Run)); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.policy = x
	go func() {
		if _, err := x.made(); err != nil {
			p.Fail(err)
		}
	}()
	return nil
}

// checker decides starts. Before Use it denies each.
func (p *Pod) checker() order.Checker {
	if p.policy == nil {
		return order.Checker{}
	}
	return order.Checker{Policy: p.policy}
}

// exec decides a program. The kernel asks only after Confirm, which needs Use.
func (p *Pod) exec(x proposal.Exec) proposal.ExecDecision { return p.observer.AnswerExec(p.judge(x)) }

func (p *Pod) event(e proposal.Event) { p.observer.AddEvent(e) }

// same and linked answer for all containers of the pod: a container may have the other's files.
func (p *Pod) same(size uint64, digest string) []string {
	return p.ofImages(func(x *sandbox.Programs) []string { return x.SameContent(size, digest) })
}

func (p *Pod) linked(path string) []string {
	return p.ofImages(func(x *sandbox.Programs) []string { return x.HardLinks(path) })
}

func (p *Pod) ofImages(ask func(*sandbox.Programs) []string) (names []string) {
	p.mu.Lock()
	all := slices.Collect(maps.Values(p.programs))
	p.mu.Unlock()
	for _, x := range all {
		names = append(names, ask(x)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (p *Pod) socket() string { return filepath.Join(p.o.Dir, "gate") }

// TraceConfig returns what the sandbox must be started with: the content of the file that
// runsc's flag --pod-init-config names.
func (p *Pod) TraceConfig() ([]byte, error) {
	points := append(monitor.PointsOf(monitor.TracePoints()...),
		monitor.Point{Name: "container/start", Context: []string{"group_id"}})
	return json.Marshal(monitor.TraceConfig(points, monitor.Sink{Name: monitor.SinkName,
		Config: map[string]any{"socket": p.socket(), "patience": patience.Milliseconds(), "pod": true}}))
}

// Serve answers the sandbox's kernel until it ends. The kernel is what connects first: Options.Dir
// must be reachable for this user alone.
func (p *Pod) Serve() {
	p.monitor.ServeUser(starting)
	p.Fail(p.monitor.Err())
}

func (p *Pod) decider() *Policy {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.policy
}

// Confirm makes sure that the kernel asks, over the sandbox's control socket: runsc only warns
// when it cannot set up the session. Without it nothing can be started.
func (p *Pod) Confirm(control string) error {
	if p.decider() == nil {
		return stop("pod.options", "the pod has no policy", "call Use first", nil)
	}
	err := p.monitor.Ready(starting)
	if err == nil {
		err = nudge(control)
	}
	if err != nil {
		err = stop("pod.ungated", "the gate is not in force in the pod's kernel",
			"use the fumehood-runsc of this version", err)
	} else if !p.o.Proven {
		_, err = p.policy.made()
	}
	if err != nil {
		return p.fail(err)
	}
	p.control.Store(&control)
	return nil
}

func (p *Pod) nudge() error { return nudge(*p.control.Load()) }

// nudge makes the kernel read what the monitor sent. It connects each time: a sandbox that ends
// waits fifteen seconds for connections that are open.
func nudge(socket string) error {
	c, err := control.Dial(socket)
	if err != nil {
		return err
	}
	defer c.Close()
	sessions, err := c.TraceSessions()
	if err == nil && !slices.Equal(sessions, []string{monitor.TraceSession}) {
		err = fmt.Errorf("the kernel has the sessions %q", sessions)
	}
	return err
}

// judge decides a program of a start that runs.
func (p *Pod) judge(x proposal.Exec) (proposal.ExecDecision, error) {
	p.mu.Lock()
	r := p.running[x.Command]
	p.mu.Unlock()
	if r == nil {
		return proposal.ExecDecision{Effect: proposal.Deny, Rules: []string{lineage.RuleNoText}}, nil
	}
	d, err := r.gate.DecideExec(context.Background(), x)
	if x.First && (x.ELF != nil || d.Effect != proposal.Allow || err != nil) { // a script's interpreter is decided, too
		r.begins(d, err)
		if err == nil && r.pause {
			p.failIf(r.refusal(d)) // before the sandbox ends with its first container
		}
	}
	return d, err
}

// Failed is closed when nothing more can be started. The caller must end the sandbox then.
func (p *Pod) Failed() <-chan struct{} { return p.failed }

// Err returns why Failed was closed, a *proposal.StopError, or nil.
func (p *Pod) Err() error {
	select {
	case <-p.failed:
		return p.err
	default:
		return nil
	}
}

// Fail ends the pod because of err, as when its policy was revoked.
func (p *Pod) Fail(err error) { _ = p.fail(err) }

// Stopping says that the sandbox will be ended on purpose: its end is then no failure of the pod.
func (p *Pod) Stopping() { p.stopping.Store(true) }

var errClosed = stop("pod.closed", "the pod has ended", "", nil)

// fail ends the pod, and returns the first reason: what a failed pod closes fails, too. It has failed
// even if there is no reason.
func (p *Pod) fail(err error) error {
	p.failing.Do(func() {
		switch {
		case err == nil, p.stopping.Load():
			p.err = errClosed
		case p.decider() == nil:
			p.err = err
		default:
			p.err = p.redactor.Error(err)
		}
		_ = p.monitor.Close() // the kernel refuses everything from then on
		close(p.failed)
	})
	return p.err
}

// Close ends what runs, as far as the kernel still answers, and seals the log. The sandbox must
// end soon, or have ended. why, if not nil, is in the log as the reason.
func (p *Pod) Close(why error) error {
	p.mu.Lock()
	again := p.closed
	p.closed = true
	left := slices.Collect(maps.Values(p.running))
	p.mu.Unlock()
	if again {
		return nil
	}
	for _, r := range left {
		r.End(Unknown)
	}
	p.Fail(nil)
	if why == nil && p.err != errClosed {
		why = p.err
	}
	p.mu.Lock()
	totals := p.totals
	p.mu.Unlock()
	if err := p.disconnect(); why == nil {
		why = err
	}
	failure := proposal.FailureOf(why)
	if p.decider() != nil {
		failure = p.redactor.Failure(failure)
	}
	_, err := p.o.Log.Append("end", journal.End{Totals: totals, Error: failure})
	_, sealErr := p.o.Log.Seal()
	return errors.Join(err, sealErr, p.o.Log.Close())
}

func stop(code, message, hint string, err error) error {
	return &proposal.StopError{Code: code, Message: message, Hint: hint, Err: err}
}
