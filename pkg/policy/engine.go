// SPDX-License-Identifier: Apache-2.0

// Package policy decides: Rego in, Decision out. Only it and the packages below it import
// OPA.
//
// Beside the engine stand facts (tools, options, paths), module (Rego from files to
// compiled modules), lint (what is wrong with rules), explain (why a decision was made),
// bounds (processor time and memory), and source, trial, manual and starter for authors.
//
// It asks one prepared query a proposal (package fumehood.proposal) and one a
// simple command (package fumehood.command), in each layer; one a piece of code in the
// text (package fumehood.snippet); one a program that
// begins in the sandbox (package fumehood.exec); one a step of a connection that leaves
// it (package fumehood.egress); one a thing of note that was seen there (package
// fumehood.event); one a thing that is about to leave (package fumehood.output); and
// one a wish that something be started (package fumehood.trigger). A layer is the
// built-in default or one folder; each is compiled by itself, so that no layer can
// change another's rules, and Go merges what they say: deny wins over ask, ask over allow, the
// smallest limit counts, and only the granting layer may allow.
//
// It fails closed. A command without an allow is denied. An error, a time-out, an
// undefined result, an unknown key or a wrong type is a *proposal.StopError, and
// callers must then run nothing.
//
// What the options of a tool mean is read in Go, by package facts, and given to Rego as
// input; every judgement about them is a rule in Rego.
//
// It does not protect against what an allowed program does: a test suite runs the
// repository's code. That is the sandbox's work.
package policy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/fumehood/fumehood/pkg/policy/bounds"
	"github.com/fumehood/fumehood/pkg/policy/facts"
	"github.com/fumehood/fumehood/pkg/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// DefaultLayer is the name of the policy that fumehood ships.
const DefaultLayer = "default"

// deadline bounds the processor time of one decision; grace is how much more an
// evaluation may use before it notices that it was cancelled.
const (
	deadline = time.Second
	grace    = 750 * time.Millisecond
)

const maxWarnings = 100

// Options say which policy decides. The zero value is the shipped default alone.
type Options struct {
	// Layers are further policies, in order. They may deny, ask and lower; what more
	// they may, each says itself.
	Layers []Layer
	// Workspace is where the sandbox has the workspace; "" is /workspace.
	Workspace string
	// Observe lets the layers that restrict decide nothing. What they say is recorded as
	// a Reason that is Observed and changes neither effect nor grant. A layer that grants
	// is observed too: the shipped default decides in its place, and what it would refuse,
	// for want of a rule that allows or grants too, is recorded. A layer that cannot be
	// read or evaluated still stops everything.
	Observe bool
	// Deadline bounds the processor time that Layers may use for one decision; 0 is one
	// second. Compiling one of them may use ten times as much. The shipped policy has no
	// deadline: what it is asked about is bounded, and it loops over nothing else.
	Deadline time.Duration
	// Spoke, when set, is told each rule that held, for whoever tries a policy. It may be
	// called by several goroutines.
	Spoke func(module.Place)
}

// An Engine decides proposals. It may be used by several goroutines.
type Engine struct {
	layers    []*layer
	grammars  facts.Grammars
	digest    string
	workspace string
	deadline  time.Duration
	foreign   bool // there are layers beside the shipped one
	observe   bool
	spoke     func(module.Place)
	warnings  []string

	common   []rego.EvalOption
	jobs     chan func() // to a lane that waits
	dead     atomic.Bool
	mu       sync.Mutex
	reported map[string]bool
}

// New reads, checks and compiles the layers. Its error is a *proposal.StopError
// whose code begins with "policy.".
func New(ctx context.Context, o Options) (*Engine, error) {
	e := &Engine{workspace: o.Workspace, deadline: o.Deadline, observe: o.Observe, spoke: o.Spoke, reported: map[string]bool{}, jobs: make(chan func())}
	e.common = e.evaluation()
	if e.workspace == "" {
		e.workspace = "/workspace"
	}
	if e.deadline <= 0 {
		e.deadline = deadline
	}
	given, err := ordered(o.Layers, o.Observe)
	if err != nil {
		return nil, err
	}
	if e.grammars, err = facts.ShippedGrammars(); err != nil {
		return nil, module.Stop(module.CodeCompile, "the option tables do not parse", "mend policies/options.txt", err)
	}
	e.digest, e.foreign = digest(given, o.Observe), len(o.Layers) > 0
	if e.layers, err = compileLayers(ctx, given, compiling*e.deadline); err != nil {
		return nil, err
	}
	candidates(e.layers, o.Observe)
	e.style(given)
	for _, l := range e.layers {
		if l.may(Grants) && l.points[module.PointExec] == nil {
			e.warn(fmt.Sprintf("policy.no-exec: layer %q allows programs nowhere: write allow contains {…} in package %s, or none begins", l.name, module.PointExec))
		}
		if l.may(Grants) && l.points[module.PointEgress] == nil && l.rulesOf(module.PointProposal, "network") > 0 {
			e.warn(fmt.Sprintf("policy.no-egress: layer %q grants hosts and lets nothing reach them: write allow contains {…} in package %s", l.name, module.PointEgress))
		}
	}
	return e, nil
}

// Ready compiles what New has left to the first question: those decision points of the
// shipped policy that not every command asks. A caller that soon asks them calls it
// beside other work.
func (e *Engine) Ready() {
	for _, l := range e.layers {
		_ = l.compile(module.Points()...) // the first decision returns the error
	}
}

// Digest is "sha256:" and the hex SHA-256 of every layer's name, and its files'
// names and contents, and of whether layers are only observed.
func (e *Engine) Digest() string { return e.digest }

// Warnings lists, without repetition, what layers say that is not heeded: the allows
// of layers that may not allow, and what a granting layer has left out.
func (e *Engine) Warnings() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.warnings...)
}

func (e *Engine) warn(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.reported[text] && len(e.warnings) < maxWarnings { // a rule's name may hold a stranger's text
		e.reported[text] = true
		e.warnings = append(e.warnings, text)
	}
}

// A RuleCount says how many rules of one kind a layer has at a decision point.
type RuleCount struct {
	Layer string `json:"layer"`
	Point string `json:"point"` // "fumehood.command", "fumehood.egress", "fumehood.event", "fumehood.exec", "fumehood.output", "fumehood.proposal", "fumehood.snippet" or "fumehood.trigger"
	Set   string `json:"set"`   // "deny", "ask", "allow" …
	Rules int    `json:"rules"`
}

// Rules counts the rules of each layer and decision point.
func (e *Engine) Rules() []RuleCount {
	var counts []RuleCount
	for _, l := range e.layers {
		counts = append(counts, l.counts...)
	}
	return counts
}

// Decide judges p, of which a is the analysis. A deny is a value. An error is a
// *proposal.StopError: there is no decision, and nothing may run.
//
// An evaluation that does not end even after its deadline leaves the engine dead:
// every later Decide fails too.
func (e *Engine) Decide(ctx context.Context, p proposal.Proposal, a proposal.Analysis) (proposal.Decision, error) {
	return inTime(ctx, e, func(ctx context.Context) (proposal.Decision, error) { return e.decide(ctx, p, a) })
}

// inTime bounds judge by the deadline.
func inTime[T any](ctx context.Context, e *Engine, judge judge[T]) (T, error) {
	return attempt(ctx, e, e.deadline, judge)
}

func late(err error) bool {
	var s *proposal.StopError
	return errors.As(err, &s) && s.Code == module.CodeDeadline
}

// attempt has judge use at most limit of processor time for the layers that we did not
// write. Without such a layer it waits for nothing.
func attempt[T any](ctx context.Context, e *Engine, limit time.Duration, judge judge[T]) (T, error) {
	ctx = module.WithBudget(ctx)
	if !e.foreign {
		v := evaluate(ctx, judge)
		return v.decision, v.err
	}
	var none T
	if e.dead.Load() {
		return none, module.Stop(module.CodeDeadline, "an earlier evaluation never ended", hintDeadline, nil)
	}
	inside, cancel := context.WithCancel(ctx)
	defer cancel()
	inside, m := bounds.WithMeter(inside)
	var v verdict[T]
	done := make(chan struct{})
	e.goOn(func() { v = evaluate(inside, judge); close(done) })
	why, abandoned := bounds.Bounds{Used: m.Used, Time: limit, Grace: grace, Memory: decisionMemory}.Wait(ctx, cancel, done)
	switch {
	case abandoned:
		e.dead.Store(true)
		return none, module.Stop(module.CodeDeadline, "an evaluation does not end", hintDeadline, nil)
	case why == bounds.TooLong:
		return none, module.Stop(module.CodeDeadline, fmt.Sprintf("the decision took more than %v of processor time", limit), hintDeadline, nil)
	case why == bounds.TooLarge:
		return none, module.Stop(module.CodeTooLarge, fmt.Sprintf("the decision took more than %d MiB", decisionMemory>>20), hintDeadline, nil)
	}
	return v.decision, v.err
}

// A judge makes one decision.
type judge[T any] func(context.Context) (T, error)

type verdict[T any] struct {
	decision T
	err      error
}

// evaluate must not let a panic in the evaluator take the process down: it would
// leave a run without an end in the log.
func evaluate[T any](ctx context.Context, judge judge[T]) (v verdict[T]) {
	defer func() {
		if r := recover(); r != nil {
			v = verdict[T]{err: module.Stop(module.CodeEval, fmt.Sprintf("the evaluator panicked: %v", r), "report this as a defect", nil)}
		}
	}()
	v.decision, v.err = judge(ctx)
	return v
}

// Dead reports whether an evaluation never ended, so that e decides nothing any more.
func (e *Engine) Dead() bool { return e.dead.Load() }
