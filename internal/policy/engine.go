// SPDX-License-Identifier: Apache-2.0

// Package policy decides: Rego in, Decision out. Only it and the packages below it import
// OPA.
//
// The packages below it are facts (tools, options, paths), module (Rego from files to
// compiled modules), lint (what is wrong with rules), explain (why a decision was made),
// bounds (processor time and memory), and source (layers from elsewhere).
//
// In each layer, the engine evaluates one prepared query for each
//   - proposal (package fumehood.proposal)
//   - simple command (fumehood.command)
//   - piece of code in the text (fumehood.snippet)
//   - program that starts in the sandbox (fumehood.exec)
//   - step of a connection that leaves the sandbox (fumehood.egress)
//   - event that was seen in the sandbox (fumehood.event)
//   - output that is about to leave (fumehood.output)
//   - request to start something (fumehood.trigger)
//
// A layer is the built-in default, or one directory or bundle. Each layer is compiled
// separately, so that no layer can change another's rules. Go merges their answers: deny
// wins over ask, ask over allow, the smallest limit counts, and only the granting layer
// may allow.
//
// It fails closed. A command that no rule allows is denied. An error, a timeout, an
// undefined result, an unknown key or a wrong type is a *proposal.StopError, and
// callers must then run nothing.
//
// Package facts reads, in Go, what the options of a tool mean. The facts are input to the
// rules; every decision about them is a rule in Rego.
//
// It does not protect against an allowed program: a test suite runs the repository's
// code. The sandbox contains it.
package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/fumehood/fumehood/internal/policy/bounds"
	"github.com/fumehood/fumehood/internal/policy/facts"
	"github.com/fumehood/fumehood/internal/policy/module"
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

// Options choose the policy. The zero value is only the shipped default.
type Options struct {
	// Layers are further policies, in order. They may deny, ask and lower limits; the Role
	// of each says what else it may do.
	Layers []Layer
	// AllowTools are names of programs that the repository's configuration requests; rules see them as
	// input.command.configured. They must not come from a pull request.
	AllowTools []string
	// Workspace is the path of the workspace in the sandbox; "" is /workspace.
	Workspace string
	// Observe makes the layers that restrict have no effect. Their answers are recorded as
	// Reasons that are Observed, and change neither effect nor grant. A layer that grants
	// is observed, too: the shipped default decides in its place, and its denials are
	// recorded, including those for lack of a rule that allows or grants. A layer that
	// cannot be read or evaluated still stops everything. Without a layer that restricts or
	// grants, New fails. Rules of every layer may be observed without it, by their METADATA.
	Observe bool
	// Deadline limits the processor time that Layers may use for one decision; 0 is one
	// second. Compiling one of them may use ten times as much. The shipped policy has no
	// deadline: it loops only over its input, which is bounded.
	Deadline time.Duration
	// Now is the time that decides which exceptions have expired and which trials are over; zero
	// is the time of New, or Context.Started if that is later: a clock that is slow, or a context
	// that is old, prolongs nothing. It is read once: a rule that expires later applies until the
	// engine is made again.
	Now time.Time
	// Context is input.context of every document. The zero Context is one that is not known.
	Context proposal.Context
	// OnRule, when set, is called with each rule that held. It is for tests of policies and
	// may be called from several goroutines.
	OnRule func(module.Place)
}

// An Engine decides proposals. It is safe for concurrent use.
type Engine struct {
	sharedState

	context     proposal.Context
	contextTerm *ast.Term // of context

	jobs chan func() // to an idle worker
	dead atomic.Bool
}

// sharedState is what Engines share that differ in their context only.
type sharedState struct {
	layers    []*layer
	grammars  facts.Grammars
	tools     []string // Options.AllowTools
	digest    string
	workspace facts.Workspace
	deadline  time.Duration
	foreign   bool // there are layers besides the shipped one
	observe   bool
	onRule    func(module.Place)
	warnings  *warningList
	common    []rego.EvalOption
}

// A warningList has each warning once.
type warningList struct {
	mu       sync.Mutex
	texts    []string
	reported map[string]bool
}

// Digest is the Digest of the Engine that New makes of o. It takes much less time than New.
func (o Options) Digest() (string, error) {
	given, err := orderLayers(o.Layers, o.Observe)
	now := o.policyTime()
	for i := range given {
		given[i].now = now
	}
	return digestLayers(given, o.Observe, o.AllowTools...), err
}

// policyTime is the time that decides about dates in METADATA: see Now.
func (o Options) policyTime() time.Time {
	if !o.Now.IsZero() {
		return o.Now
	}
	now := time.Now()
	if started, err := time.Parse(time.RFC3339, o.Context.Started); err == nil && started.After(now) {
		return started
	}
	return now
}

// New reads, checks and compiles the layers. Its error is a *proposal.StopError
// whose code begins with "policy.".
func New(ctx context.Context, o Options) (*Engine, error) {
	e := &Engine{sharedState: sharedState{workspace: facts.Workspace{Path: o.Workspace},
		deadline: o.Deadline, observe: o.Observe,
		onRule:   o.OnRule,
		warnings: &warningList{reported: map[string]bool{}}}, jobs: make(chan func())}
	e.common = e.evalOptions()
	if err := e.setContext(o.Context); err != nil {
		return nil, err
	}
	if e.workspace.Path == "" {
		e.workspace.Path = "/workspace"
	}
	if e.deadline <= 0 {
		e.deadline = deadline
	}
	given, err := orderLayers(o.Layers, o.Observe)
	if err != nil {
		return nil, err
	}
	canBeObserved := func(l Layer) bool { return l.Role == Restricts || l.Role == Grants }
	if o.Observe && !slices.ContainsFunc(o.Layers, canBeObserved) {
		return nil, module.Stop(module.CodeMode,
			"no policy is on trial: only those of --policy and --granting can be observed as a whole",
			"observe rules of other policies with custom: {mode: observe, until: DATE} in their METADATA, or remove --observe", nil)
	}
	if e.grammars, err = facts.ShippedGrammars(); err != nil {
		return nil, module.Stop(module.CodeCompile, "cannot parse the option tables", "fix policies/options.txt", err)
	}
	now := o.policyTime()
	for i := range given {
		given[i].now = now
	}
	e.grammars, e.tools = e.grammars.AddInspectors(o.AllowTools), slices.Clone(o.AllowTools)
	e.digest, e.foreign = digestLayers(given, o.Observe, o.AllowTools...), len(o.Layers) > 0
	if e.layers, err = compileLayers(ctx, given, compiling*e.deadline); err != nil {
		return nil, err
	}
	if err = e.addKnowledge(given); err != nil {
		return nil, err
	}
	markCandidate(e.layers, o.Observe)
	e.warnStyle(given)
	for _, l := range e.layers {
		if l.hasRole(Grants) && l.points[module.PointExec] == nil {
			e.addWarning(fmt.Sprintf("policy.no-exec: layer %q allows no program to start: write allow contains {…} in package %s", l.name, module.PointExec))
		}
		if l.hasRole(Grants) && l.points[module.PointEgress] == nil && l.rulesOf(module.PointProposal, "network") > 0 {
			e.addWarning(fmt.Sprintf("policy.no-egress: layer %q grants hosts but allows no connection to them: write allow contains {…} in package %s", l.name, module.PointEgress))
		}
	}
	return e, nil
}

// Ready compiles the decision points of the shipped policy that New has left for their
// first use, since not every command needs them. Callers that will need them soon call it
// in parallel with other work.
func (e *Engine) Ready() {
	for _, l := range e.layers {
		_ = l.compilePoints(module.Points()...) // the first decision returns the error
	}
}

// Digest is "sha256:" and the hex SHA-256 of every layer's name, of the names and contents
// of its files, and of whether layers are only observed.
func (e *Engine) Digest() string { return e.digest }

// Warnings lists, without repetition, answers of layers that have no effect: the allows of
// layers that must not allow, and what a granting layer has omitted.
func (e *Engine) Warnings() []string {
	e.warnings.mu.Lock()
	defer e.warnings.mu.Unlock()
	return append([]string(nil), e.warnings.texts...)
}

func (e *Engine) addWarning(text string) {
	w := e.warnings
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.reported[text] && len(w.texts) < maxWarnings { // a rule's name may contain untrusted text
		w.reported[text] = true
		w.texts = append(w.texts, text)
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

// Decide decides p, whose analysis is a. A denial is a value. An error is a
// *proposal.StopError: there is no decision, and nothing may run.
//
// If an evaluation does not end even after its deadline, the engine is dead: every later
// Decide fails, too.
func (e *Engine) Decide(ctx context.Context, p proposal.Proposal, a proposal.Analysis) (proposal.Decision, error) {
	if d, refused := p.Refusal(); refused {
		return d, nil
	}
	return inTime(ctx, e, func(ctx context.Context) (proposal.Decision, error) { return e.decideProposal(ctx, p, a) })
}

// inTime runs judge within the deadline.
func inTime[T any](ctx context.Context, e *Engine, judge judge[T]) (T, error) {
	return judgeWithinLimit(ctx, e, e.deadline, judge)
}

func isDeadlineError(err error) bool {
	var s *proposal.StopError
	return errors.As(err, &s) && s.Code == module.CodeDeadline
}

// judgeWithinLimit runs judge, which may use at most limit of processor time for layers other than
// the shipped one. Without such a layer it waits for nothing.
func judgeWithinLimit[T any](ctx context.Context, e *Engine, limit time.Duration, judge judge[T]) (T, error) {
	ctx = module.WithBudget(ctx)
	if !e.foreign {
		v := runJudge(ctx, judge)
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
	e.runJob(func() { v = runJudge(inside, judge); close(done) })
	why, abandoned := bounds.Bounds{Used: m.Used, Time: limit, Grace: grace, Memory: decisionMemory}.Wait(ctx, cancel,
		done)
	switch {
	case abandoned:
		e.dead.Store(true)
		return none, module.Stop(module.CodeDeadline, "an evaluation does not end", hintDeadline, nil)
	case why == bounds.TooLong:
		return none, module.Stop(module.CodeDeadline,
			fmt.Sprintf("the decision took more than %v of processor time", limit), hintDeadline, nil)
	case why == bounds.TooLarge:
		return none, module.Stop(module.CodeTooLarge,
			fmt.Sprintf("the decision took more than %d MiB", decisionMemory>>20), hintDeadline, nil)
	}
	return v.decision, v.err
}

// A judge makes one decision.
type judge[T any] func(context.Context) (T, error)

type verdict[T any] struct {
	decision T
	err      error
}

// runJudge turns a panic in the evaluator into an error: if the process ended, the log
// would have no end of the run.
func runJudge[T any](ctx context.Context, judge judge[T]) (v verdict[T]) {
	defer func() {
		if r := recover(); r != nil {
			v = verdict[T]{err: module.Stop(module.CodeEval, fmt.Sprintf("the evaluator panicked: %v", r),
				"report this as a defect", nil)}
		}
	}()
	v.decision, v.err = judge(ctx)
	return v
}

// IsDead reports whether an evaluation never ended. A dead engine makes no more decisions.
func (e *Engine) IsDead() bool { return e.dead.Load() }
