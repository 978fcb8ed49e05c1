// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/internal/watch/lineage"
	"github.com/fumehood/fumehood/internal/watch/monitor"
	"github.com/fumehood/fumehood/internal/watch/monitor/wire"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// defaultPath is where programs are looked for if a process has no PATH.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// maxID is how long the beginning of a start's id may be.
const maxID = 40

// A Process is what is to be started in a container: its command, an exec into it, a probe.
type Process struct {
	// Container names the container, and Exec says that it runs already. Both are in the log.
	Container string
	Exec      bool
	Argv      []string
	// Env are the process's variables, NAME=value each. The log has those that can make a
	// loader or an interpreter run something else, and no others: they may be secrets.
	Env []string
	// Root is the container's root file system on the host, for input.same of policy. A
	// container that runs must not change it there. "" is none.
	Root string
	// Pause says that it is the pod's first container, which the node's operator chose, and
	// whose command is not asked about. Policy decides about its program.
	Pause bool
}

// Unknown is the status of a process of which it is not known how it ended.
const Unknown = -1

// An Ender gets the exit status of a process that was started, or Unknown, when it has ended.
type Ender interface{ End(status int) }

// An Admitter decides about processes of a pod's containers: a Pod, or a Door to one.
type Admitter interface {
	// Admit decides x; the decision is in the log. The error is a *proposal.StopError:
	// pod.denied if policy refuses x, in words that say why.
	Admit(ctx context.Context, x Process) (Admission, error)
}

// An Admission is a process that policy allows. It must be started or dropped, once.
type Admission interface {
	// Start calls launch, which must start Through(x.Argv) in the container, return once that
	// runs, and see to it that End is called when it has ended, also if that is before
	// Start returns. That it starts is on disk before.
	//
	// Start returns when policy has allowed x's own program, and the process has begun to
	// run it; for a Pause see Options.Proven. The error is a *proposal.StopError: pod.denied if policy refuses
	// the program, or launch's error. With one, nothing of x runs. If launch was not called, the pod has failed,
	// and its kernel lets no program start.
	Start(launch func(Ender) error) error
	// Drop says that it will not be started. It does nothing after Start.
	Drop()
}

// A running is a Process that was started.
type running struct {
	p      *Pod
	root   string          // of its container
	pause  bool            // it is the pod's first container
	record proposal.Record // as decided
	gate   *lineage.ProgramDecider
	facts  *monitor.Command
	began  time.Time

	started  chan struct{} // closed when Start has returned
	first    chan struct{} // closed when its first program was decided, or it has ended
	decided  sync.Once
	decision proposal.ExecDecision // set before first is closed
	ending   sync.Once
}

// Admit implements Admitter.
func (p *Pod) Admit(ctx context.Context, x Process) (Admission, error) {
	if err := p.reserve(); err != nil {
		return nil, err
	}
	record, err := p.decide(ctx, x)
	if err != nil {
		p.release()
		return nil, p.redactor.Error(err)
	}
	return &admitted{p: p, record: record, path: pathOf(x.Env), root: x.Root, pause: x.Pause}, nil
}

// An admitted is an Admission.
type admitted struct {
	p      *Pod
	record proposal.Record
	path   string // PATH of the process
	root   string // of its container
	pause  bool
	used   sync.Once
}

var errUsed = stop("pod.start", "the process was started before, or dropped", "create it again", nil)

// Drop implements Admission.
func (a *admitted) Drop() { a.used.Do(a.p.release) }

// Start implements Admission.
func (a *admitted) Start(launch func(Ender) error) error {
	err := errUsed
	a.used.Do(func() { err = a.p.start(a, launch) })
	return a.p.redactor.Error(err)
}

func (p *Pod) start(a *admitted, launch func(Ender) error) error {
	p.starting.Lock()
	r, err := p.begin(a)
	if err != nil {
		p.starting.Unlock()
		p.release()
		return p.fail(err)
	}
	settle := func() error {
		defer p.starting.Unlock()
		defer close(r.started)
		return r.settle(err)
	}
	if err = launch(r); err == nil && a.pause && p.o.Proven {
		go func() {
			if err := settle(); err != nil {
				p.Fail(err)
			}
		}()
		return nil
	}
	return settle()
}

// decide decides x and writes the decision to the log. The error says why x does not start.
func (p *Pod) decide(ctx context.Context, x Process) (proposal.Record, error) {
	proposed, err := plan.Checked(p.proposal(x))
	if err != nil {
		return proposal.Record{}, stop("pod.process", "this process cannot be decided: "+err.Error(),
			"start it by a command that a plan could have", nil)
	}
	record := proposal.Record{Proposal: proposed, Analysis: order.AnalyzeProposal(proposed), Entry: -1,
		Background: true}
	if x.Pause {
		record.Decision = proposal.Decision{Effect: proposal.Allow, Rules: []string{"pod.pause"},
			Grant: &proposal.Grant{Exec: []string{points.ExecBuilt}}}
	} else {
		records, err := p.checker().Check(ctx, proposal.Plan{Proposals: []proposal.Proposal{proposed}})
		if err != nil {
			return record, err
		}
		record = records[0]
		record.Background = true
	}
	return p.log(record)
}

// log writes the decision about r. The error says why it is not allowed.
func (p *Pod) log(r proposal.Record) (proposal.Record, error) {
	var err error
	if r.Entry, err = p.o.Log.Append("decision", journal.NewDecision(p.redactor.Record(r))); err != nil {
		return r, p.fail(err)
	}
	allowed := r.Runnable() && order.CanStart(r) && slices.Equal(r.Analysis.Commands[0].Argv(), r.Proposal.Argv)
	p.count(r, allowed)
	if !allowed {
		return r, denied(r)
	}
	return r, nil
}

func (p *Pod) count(r proposal.Record, allowed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.totals.Proposed++
	switch {
	case allowed:
		p.totals.Allowed++
	case r.Decision.Effect == proposal.Ask:
		p.totals.Asked++
	default:
		p.totals.Denied++
	}
}

// denied returns why r is not started.
func denied(r proposal.Record) error {
	message, hint := "policy does not allow it", "change the command, or the policy that the pod names"
	for _, reason := range r.Decision.Reasons {
		if reason.Effect != proposal.Allow {
			message, hint = reason.Message+" ("+reason.Rule+")", cmp.Or(reason.Suggestion, hint)
			break
		}
	}
	if r.Decision.Effect == proposal.Ask {
		message = "it needs an approval, which a pod cannot get: " + message
	}
	return stop("pod.denied", "policy refuses "+command(r.Proposal.Argv)+": "+message, hint, nil)
}

// command returns argv for a message.
func command(argv []string) string {
	text := fmt.Sprintf("%+q", strings.Join(argv, " "))
	if len(text) > 200 {
		text = text[:200] + "…"
	}
	return text
}

// reserve makes room for one more process, or returns why nothing can be started.
func (p *Pod) reserve() error {
	if err := p.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.policy == nil:
		return stop("pod.options", "the pod has no policy", "call Use first", nil)
	case p.closed:
		return errClosed
	case p.reserved >= MaxRunning:
		return stop("pod.full", fmt.Sprintf("%d processes that were started from outside run in the pod", MaxRunning),
			"end one of them", nil)
	}
	p.reserved++
	return nil
}

func (p *Pod) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reserved--
}

// proposal returns x as a proposal, with an id that no other start of the pod has.
func (p *Pod) proposal(x Process) proposal.Proposal {
	p.mu.Lock()
	p.last++
	n := p.last
	p.mu.Unlock()
	kind := "start"
	if x.Exec {
		kind = "exec"
	}
	id := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(x.Container))
	env := map[string]string{}
	for _, v := range x.Env {
		if name, value, ok := strings.Cut(v, "="); ok && wire.IsSteeringVariable(name) {
			env[name] = value
		}
	}
	return proposal.Proposal{ID: fmt.Sprintf("%s-%d-%s", kind, n, strings.Trim(id[:min(len(id), maxID)], "-")),
		Argv: x.Argv, Env: env}
}

// begin makes the start that the next process belongs to.
func (p *Pod) begin(a *admitted) (*running, error) {
	if err := p.Err(); err != nil {
		return nil, err
	}
	if p.control.Load() == nil {
		return nil, stop("pod.ungated", "the gate is not in force in the pod's kernel",
			"start the pod's first container first", nil)
	}
	if _, err := p.o.Log.Append("start", journal.NewStart(a.record, false)); err != nil {
		return nil, err
	}
	e := p.policy
	r := &running{p: p, record: a.record, root: a.root, pause: a.pause, began: time.Now(), started: make(chan struct{}),
		first: make(chan struct{}),
		gate: &lineage.ProgramDecider{Exec: decided(e, (*policy.Engine).Exec), Analyze: order.AnalyzeProposal,
			Start: e.Start, DecideProgram: e.DecideProgram, Confine: confineInImage, Path: strings.Split(a.path, ":"),
			Workspace: e.workspace()},
		facts: &monitor.Command{ID: a.record.Proposal.ID, Grants: a.record.Decision.Grant.Exec}}
	r.facts.Stray = func(proposal.Event) { go r.End(Unknown) } // a shell that connects by itself
	r.gate.Begin(a.record)
	if err := p.add(r); err != nil {
		return nil, err
	}
	if err := p.observer.Begin(a.record, p.redactor.Event, p.failIf); err != nil {
		return nil, err
	}
	return r, p.monitor.Begin(r.facts, p.nudge)
}

// confineInImage is policy.Confine for the programs of an image. Those that its table does not have are
// the image's own, such as its entry point, and start what they need.
func confineInImage(x proposal.Exec, names []string) (name, under string) {
	x.Grants = append(slices.Clone(x.Grants), "built")
	return policy.Confine(x, names)
}

// add makes r known to judge. From then on Close waits for it.
func (p *Pod) add(r *running) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errClosed
	}
	p.running[r.facts.ID] = r
	if r.root != "" && p.programs[r.root] == nil {
		p.programs[r.root] = sandbox.ProgramsOf(r.root)
	}
	return nil
}

// pathOf returns where programs are looked for. Of two variables the first counts.
func pathOf(env []string) string {
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, "PATH="); ok {
			return value
		}
	}
	return defaultPath
}

// settle waits for the decision about the program of a process that was launched, with the error
// err, and lets others start beside it.
func (r *running) settle(err error) error {
	if err == nil {
		select {
		case <-r.first:
		case <-r.p.failed:
			return r.p.err
		case <-time.After(starting):
			err = stop("pod.start", "the container's program did not start in time",
				"check what else runs on this node", nil)
		}
	}
	if err == nil {
		err = r.refusal(r.decision)
	}
	if detached := r.p.monitor.Detach(r.facts, 0, r.p.nudge); detached != nil {
		detached = r.p.fail(detached) // its processes cannot be distinguished from others
		return cmp.Or(err, detached)
	}
	if err != nil {
		r.finish(refusedStatus)
	}
	return err
}

// refusal returns the error of a start whose program has the decision d, or nil.
func (r *running) refusal(d proposal.ExecDecision) error {
	if d.Effect == proposal.Allow {
		return nil
	}
	return stop("pod.denied", "policy refuses the program of "+command(r.record.Proposal.Argv)+": "+reason(d),
		"change the command, or the policy that the pod names", nil)
}

// refusedStatus is the exit status of Init if it cannot start the program.
const refusedStatus = 126

func reason(d proposal.ExecDecision) string {
	if d.Reason == nil {
		return strings.Join(d.Rules, ", ")
	}
	return d.Reason.Message + " (" + d.Reason.Rule + ")"
}

// begins records the decision about the first program, or that there will be none.
func (r *running) begins(d proposal.ExecDecision, err error) {
	r.decided.Do(func() {
		if r.decision = d; err != nil {
			r.decision = proposal.ExecDecision{Effect: proposal.Deny, Rules: []string{proposal.FailureOf(err).Code}}
		}
		close(r.first)
	})
}

// End kills what else belongs to the start, and writes the result to the log. It waits for Start,
// which may be called at the same time.
func (r *running) End(status int) {
	r.begins(proposal.ExecDecision{Effect: proposal.Allow}, nil) // it ended before it had a program
	<-r.started
	r.finish(status)
}

func (r *running) finish(status int) { r.ending.Do(func() { r.end(status) }) }

func (r *running) end(status int) {
	p := r.p
	left, mark, err := p.monitor.Kill(r.facts, p.nudge, patience)
	mark, err = p.monitor.EndWithMark(r.facts, mark, err)
	result := proposal.Result{Status: proposal.Exited, ExitCode: status, WallMS: time.Since(r.began).Milliseconds(),
		Leftover: left,
		Outputs:  []proposal.Output{}, Changes: proposal.Changes{Files: []proposal.Change{}}}
	if status == Unknown {
		result.Status, result.Detail = proposal.SandboxFailed, "it is not known how it ended"
	}
	recorded := &proposal.Observations{Complete: err == nil && mark.Dropped == 0}
	recorded.Counts.Dropped = int(mark.Dropped)
	seen, seeErr := p.observer.End(context.Background(), r.facts.ID, recorded)
	r.gate.End(r.facts.ID)
	result.Observations = seen
	record := p.redactor.Record(r.record)
	record.Result = &result
	_, logErr := p.o.Log.Append("result", journal.NewResult(record))
	for _, e := range []error{err, seeErr, logErr} {
		if e != nil {
			p.Fail(e)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, r.facts.ID)
	if !p.shows(r.root) {
		delete(p.programs, r.root)
	}
	p.reserved--
	if status == 0 {
		p.totals.Succeeded++
	} else {
		p.totals.Failed++
	}
}

// shows reports whether a process runs whose container has this root. p.mu is held.
func (p *Pod) shows(root string) bool {
	for _, r := range p.running {
		if r.root == root {
			return true
		}
	}
	return false
}
