// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/sandbox/interpreter"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// SessionOptions configure a session's one sandbox and one gateway, which are created
// before its proposals are known. The zero value is a session without a network.
type SessionOptions struct {
	// Limits are the maximum for every command, and for what all of them together may
	// write. A zero field is what policy grants a command that requests nothing. They
	// never raise what policy grants.
	Limits proposal.Limits
	// Network are the entries (see proposal.Proposal) that policy may grant to commands.
	// A proposal that needs another is denied. What policy grants to Options.Setup is not
	// granted to other commands.
	Network []string
	// Proposer names the proposer in the report; untrusted text.
	Proposer string
	// Idle is how long a session without calls stays open; DefaultIdle if 0.
	Idle time.Duration
	// Paused is how long a paused session without calls stays open; DefaultPaused if 0.
	Paused time.Duration
	// Requested is when the caller needed the session, for Options.Health; when Open was
	// called if zero.
	Requested time.Time
	// Lifetime is how long after the first command others may start; DefaultLifetime if 0.
	Lifetime time.Duration
	// From is what the session begins with a copy of, nil for a new sandbox. Its set-up is over, and its log names
	// the checkpoint of the other session's. The Gate must have the other one's Options and policy, and the session
	// its Limits and no Network: all else is refused with sandbox.restore, and so is a snapshot that is not as it was
	// left. Callers that have the Snapshot get what the other session had.
	From *Snapshot
}

// How long a session lasts if its caller does not close it.
const (
	DefaultIdle     = 15 * time.Minute
	DefaultLifetime = 12 * time.Hour
	DefaultPaused   = 12 * time.Hour
)

// A session is the Session of a Gate in this process.
type session struct {
	gate  *Gate
	run   *run
	inner *order.Session

	ctx    context.Context // ends when the session closes
	cancel context.CancelCauseFunc
	turn   chan struct{} // holds one token during a call
	idle   *time.Timer

	paused  atomic.Bool
	waits   sync.Mutex
	waiting int // calls, and callers that wait for commands in the background; while there are none, idle runs

	contexts contexts

	o      SessionOptions
	setup  []proposal.Proposal // that SetUp has not run yet
	wanted bool                // SetUp was called: what it has not run, runs before commands in the background
	served bool                // set-up has services, which run beside one command only
	ready  atomic.Bool         // all of it has run: SetUp does not wait for its turn

	once   sync.Once
	done   chan struct{} // closed when report and err are set
	report proposal.Report
	err    error
}

// Open begins a session. If ctx ends, the session is closed: the running command is
// killed, and the log ends with run.cancelled. A Gate has one session or run at a time;
// another is refused with gate.busy.
//
// Close must be called. A session whose caller forgets it is closed after o.Idle. If the
// caller's process is killed, the log verifies as cut off, nothing keeps running, and the
// next run on the host removes the session's files.
func (g *Gate) Open(ctx context.Context, o SessionOptions) (Session, error) {
	if err := g.checkCanRun(); err != nil {
		return nil, err
	}
	if g.o.ObserveNetworkUnsafe {
		return nil, observeError("a session cannot have it", "use a plan")
	}
	if o.Requested.IsZero() {
		o.Requested = time.Now()
	}
	if !g.running.TryLock() {
		return nil, busyError("this gate is running a plan", "wait until it ends, or make another gate")
	}
	s, err := g.beginSession(ctx, o)
	if err != nil {
		g.running.Unlock()
		if g.o.Health != nil {
			g.o.Health.Started(time.Since(o.Requested), errors.Join(err, ctx.Err()))
		}
		return nil, g.redactor.Error(err)
	}
	return s, nil
}

// Prepare has Options.Pool start the sandboxes of sessions with o, so that the first session
// does not wait for its own. It returns at once. Sessions with a network, also of the set-up,
// and those with hidden paths get no sandbox from a Pool. The error is Open's.
func (g *Gate) Prepare(ctx context.Context, o SessionOptions) error {
	if err := g.checkCanRun(); err != nil || len(g.o.Hide) > 0 {
		return err
	}
	b, err := g.sessionBounds(ctx, o)
	if err != nil || len(b.Network)+len(b.SetupNetwork) > 0 {
		return g.redactor.Error(err)
	}
	own := g.sessionSandbox()
	own.Limits = b.Limits
	g.o.Pool.sandboxes().Keep(own)
	return nil
}

func busyError(message, hint string) error {
	return &proposal.StopError{Code: "gate.busy", Message: message, Hint: hint}
}

func (g *Gate) beginSession(ctx context.Context, o SessionOptions) (*session, error) {
	bounds, err := g.sessionBounds(ctx, o)
	if err != nil {
		return nil, err
	}
	bounds.Requested = o.Requested
	o.Idle, o.Paused = cmp.Or(o.Idle, DefaultIdle), cmp.Or(o.Paused, DefaultPaused)
	planned, whole := g.o.wholePlanner().Plan(proposal.Plan{}) // what its commands touch is not known
	s := &session{gate: g, o: o, turn: make(chan struct{}, 1), done: make(chan struct{}), setup: planned.Proposals}
	s.served = slices.ContainsFunc(s.setup, func(p proposal.Proposal) bool {
		return p.Origin == proposal.OriginService
	})
	if o.From != nil {
		s.setup, bounds.From = nil, o.From.inner
		s.ready.Store(true)
	}
	s.run = &run{gate: g, budget: cmp.Or(o.Lifetime, DefaultLifetime), setup: whole}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	if err = s.run.openRun(s.ctx, o.describePlan(), g.sessionSandbox()); err == nil {
		s.inner, err = s.run.stages.Open(s.run.info, bounds)
	}
	if err != nil {
		s.cancel(err)
		s.run.closeRun()
		return nil, err
	}
	g.mu.Lock()
	g.session = s // before anything can close it
	g.mu.Unlock()
	s.idle = time.NewTimer(o.Idle)
	go s.closeWhenIdle(ctx)
	return s, nil
}

// closeWhenIdle closes the session when ctx ends or no call came for too long.
func (s *session) closeWhenIdle(ctx context.Context) {
	select {
	case <-s.ctx.Done():
		s.closeSession(order.InterruptionError(ctx))
	case <-s.idle.C:
		s.closeSession(errIdle)
	}
}

var errIdle = &proposal.StopError{Code: "session.idle", Message: "the session was idle for too long",
	Hint: "close sessions, or open them with a longer Idle"}

// describePlan returns a substitute for the plan that a session does not have.
func (o SessionOptions) describePlan() proposal.Plan {
	p := proposal.Plan{Proposer: o.Proposer}
	if len(o.Network) > 0 {
		p.Proposals = []proposal.Proposal{{Network: o.Network}}
	}
	return p
}

// sessionBounds returns what the sandbox and the gateway of a session are created for. The
// zero fields of o.Limits become the maximum of what policy grants to the set-up and to a
// command that requests nothing.
func (g *Gate) sessionBounds(ctx context.Context, o SessionOptions) (order.Bounds, error) {
	b := order.Bounds{Limits: o.Limits.Under(g.o.Ceiling), Network: o.Network}
	usual := proposal.Plan{Proposals: []proposal.Proposal{{ID: "session", Argv: []string{"true"}}}}
	planned, _ := g.o.wholePlanner().Plan(usual)
	records, err := g.checkPlanned(ctx, planned)
	if err != nil {
		return b, err
	}
	of := map[bool][]proposal.Record{} // set-up's, and the other
	for _, r := range records {
		of[r.Proposal.Origin != ""] = append(of[r.Proposal.Origin != ""], r)
	}
	b.SetupNetwork = order.GrantedNetwork(of[true])
	if _, found := order.LargestLimits(of[false]); found {
		most, _ := order.LargestLimits(records)
		b.Limits = b.Limits.Or(most)
		return b, nil
	}
	if !b.Limits.Open() {
		return b, nil
	}
	return b, &proposal.StopError{Code: "session.limits",
		Message: "policy grants no limits to a command that requests none",
		Hint:    "set every field of SessionOptions.Limits"}
}

func (s *session) SetUp(ctx context.Context, before proposal.Proposal, each func(proposal.Record)) error {
	if s.ready.Load() {
		return nil
	}
	replaced := false
	err := s.callInTurn(ctx, func(ctx context.Context) (err error) {
		s.wanted = true
		replaced, err = s.inner.Prepare(ctx, s.setup)
		return err
	})
	if err != nil || !replaced && !s.waitsForSetUp(before) {
		return err
	}
	leave, err := s.contexts.enter(ctx, "") // it may have a network
	if err != nil {
		return err
	}
	defer leave()
	for {
		var record proposal.Record
		done := false
		err := s.callInTurn(ctx, func(ctx context.Context) (err error) {
			if done = len(s.setup) == 0; done {
				s.ready.Store(true)
				return nil
			}
			p := s.setup[0]
			s.setup = s.setup[1:]
			record, err = s.inner.Do(ctx, p)
			return err
		})
		if err != nil || done {
			return err
		}
		if each != nil {
			each(record)
		}
	}
}

// waitsForSetUp reports whether set-up must run before p. One with a step that was not detected
// always must: what such a step makes is not known.
func (s *session) waitsForSetUp(p proposal.Proposal) bool {
	if s.run.setup.RunsFirst() {
		return true
	}
	p, err := checkProposed(p)
	if err != nil { // the zero Proposal; of others Do says what is wrong with them
		return true
	}
	p = s.gate.o.planner().Propose(p)[0]
	return order.FindSetupNeed(p, order.AnalyzeProposal(p)).Waits
}

func (s *session) Do(ctx context.Context, p proposal.Proposal) (proposal.Record, error) {
	return s.runProposal(ctx, p, nil)
}

// WithOutput returns a context for a Session's Do, DoApproved and SetUp: f receives what the
// command prints and a cell shows, as it comes, one Chunk at a time.
//
// Every Chunk was searched for secrets; what looks like one is replaced even where policy
// allows it in the Result. A line is passed on when it is complete, an incomplete one when it
// ends in a blank or when the command has ended. Of a masked value one letter, and of text
// that looks like a secret and contains blanks a part, may be passed on before the rest is
// written. If policy withholds the stream, it ends there: see Chunk.Withheld.
//
// A slow f does not slow down the command: up to 1 MiB waits, the rest is dropped and counted
// in Chunk.Dropped. The Record has all of it. f is not called after Do has returned; Do waits
// for it for at most ten seconds. f must not call the Session.
func WithOutput(ctx context.Context, f func(proposal.Chunk)) context.Context {
	return order.WithOutput(ctx, f)
}

// WithInput returns a context for a Gate's Session.Start: the command reads input, such as a pipe's
// end, instead of its Stdin. Start closes input, unless it returns an error or the command may not run.
//
// Policy decides the command as if Stdin were all of its input, and the log has only that: what comes by
// input is not decided. So Stdin must be text with which no shell or interpreter would be allowed that should
// not read what the caller cannot know.
func WithInput(ctx context.Context, input *os.File) context.Context {
	return order.WithInput(ctx, input)
}

func (s *session) DoApproved(
	ctx context.Context, p proposal.Proposal, a proposal.ClientApproval,
) (proposal.Record, error) {
	return s.runProposal(ctx, p, &a)
}

func (s *session) Asked(ctx context.Context, p proposal.Proposal) (asked proposal.ClientApproval, err error) {
	_, err = s.callProposed(ctx, p, func(_ context.Context, p proposal.Proposal) (proposal.Record, error) {
		asked = s.inner.Asked(p)
		return proposal.Record{}, nil
	})
	return asked, err
}

// callProposed calls f, when it is its turn, with p as it is decided.
func (s *session) callProposed(
	ctx context.Context, p proposal.Proposal, f func(context.Context, proposal.Proposal) (proposal.Record, error),
) (record proposal.Record, err error) {
	p, err = checkProposed(p)
	if err != nil {
		return record, s.gate.redactor.Error(err)
	}
	p = s.gate.o.planner().Propose(p)[0]
	err = s.callInTurn(ctx, func(ctx context.Context) (err error) {
		record, err = f(ctx, p)
		return err
	})
	return record, err
}

func (s *session) ID() string { return s.run.info.ID }

func (s *session) Log() string { return s.run.files.audit }

func (s *session) Artifacts() string { return s.run.files.artifacts }

// checkProposed returns p as it would be read from a plan.
func checkProposed(p proposal.Proposal) (proposal.Proposal, error) {
	if err := checkContext(p); err != nil {
		return p, err
	}
	needs, name := p.Needs, p.Context
	p.Needs, p.Context, p.Earlier = nil, "", nil // the session checks and sets them
	p, err := plan.Checked(p)
	if err != nil {
		return p, &proposal.StopError{Code: "session.proposal", Message: "invalid proposal: " + err.Error(),
			Hint: "check the proposal against the plan's schema, fumehood.plan.v1.json"}
	}
	p.Needs, p.Context = needs, name
	return p, nil
}

// checkContext checks a proposal with a Context: its code runs in a process that is already there,
// so it cannot have what only a new process has.
func checkContext(p proposal.Proposal) error {
	_, keeps := interpreter.LanguageOf(p.Language)
	why := ""
	switch {
	case p.Context == "":
		return nil
	case p.Code == "" || !keeps:
		why = "a context needs code in a language"
	case !interpreter.ValidContext(p.Context):
		why = "a context has up to 64 letters, digits, '.', '_' and '-'"
	case p.Stdin != "" || p.Cwd != "" || p.Fresh || len(p.Network) > 0:
		why = "code in a context cannot have stdin, cwd, network or a new sandbox"
	}
	if why == "" {
		return nil
	}
	return contextError(why)
}

func contextError(why string) error {
	return &proposal.StopError{Code: "session.proposal", Message: "invalid proposal: " + why,
		Hint: "correct the proposal, or leave out its context"}
}

func (s *session) Put(ctx context.Context, name string, data []byte) (out proposal.Output, err error) {
	err = s.callInTurn(ctx, func(ctx context.Context) (err error) {
		out, err = s.inner.Put(ctx, name, data)
		return err
	})
	return out, err
}

func (s *session) PutPart(ctx context.Context, name string, data []byte) (out proposal.Output, err error) {
	err = s.callInTurn(ctx, func(ctx context.Context) (err error) {
		out, err = s.inner.PutPart(ctx, name, data)
		return err
	})
	return out, err
}

func (s *session) Take(ctx context.Context, name string) ([]byte, proposal.Output, error) {
	return s.takeData(ctx, func(ctx context.Context) (proposal.Output, error) { return s.inner.Take(ctx, name) })
}

func (s *session) TakePart(ctx context.Context, name string, offset, size int64) ([]byte, proposal.Output, error) {
	data, out, err := s.takeData(ctx, func(ctx context.Context) (proposal.Output, error) {
		return s.inner.TakePart(ctx, name, offset, size)
	})
	if out.File != "" {
		outputs, _, _ := strings.Cut(out.File, "/") // a directory of this transfer alone
		err = errors.Join(err, os.RemoveAll(filepath.Join(s.run.files.artifacts, outputs)))
		out.File = ""
	}
	return data, out, err
}

// takeData returns the data of the file that take has copied.
func (s *session) takeData(
	ctx context.Context, take func(context.Context) (proposal.Output, error),
) (data []byte, out proposal.Output, err error) {
	err = s.callInTurn(ctx, func(ctx context.Context) (err error) {
		out, err = take(ctx)
		return err
	})
	if err == nil && out.Refused == "" {
		data, err = os.ReadFile(filepath.Join(s.run.files.artifacts, out.File))
	}
	return data, out, err
}

func (s *session) List(ctx context.Context, pattern string) (found proposal.Changes, err error) {
	err = s.callInTurn(ctx, func(ctx context.Context) (err error) {
		found, err = s.inner.List(ctx, pattern)
		return err
	})
	return found, err
}

func (s *session) Changes(ctx context.Context) (list proposal.Changes, err error) {
	err = s.callInTurn(ctx, func(ctx context.Context) (err error) {
		list, err = s.inner.ListChanges(ctx)
		return err
	})
	return list, err
}

func (s *session) Diff(ctx context.Context, paths ...string) (d proposal.Diff, err error) {
	if len(paths) > maxDiffPaths {
		return d, &proposal.StopError{Code: "session.paths", Message: fmt.Sprintf("more than %d paths", maxDiffPaths),
			Hint: "name directories, or leave the paths out"}
	}
	err = s.callInTurn(ctx, func(ctx context.Context) (err error) {
		d, err = s.inner.Diff(ctx, paths)
		return err
	})
	if d.Patch.File != "" {
		d.Patch.File = filepath.Join(s.run.files.artifacts, d.Patch.File)
	}
	return d, err
}

const maxDiffPaths = 100

// callInTurn calls f when it is its turn, with a context that also ends with the session.
func (s *session) callInTurn(ctx context.Context, f func(context.Context) error) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.ctx.Done():
		return errClosed
	}
	defer func() { <-s.turn }()
	if s.ctx.Err() != nil {
		return errClosed
	}
	if err := ctx.Err(); err != nil { // select takes any case that is ready
		return err
	}
	defer s.stayOpen()()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })()
	err := f(ctx)
	s.paused.Store(s.inner.IsPaused())
	return s.gate.redactor.Error(err)
}

// stayOpen keeps the session from being idle until the returned function is called.
func (s *session) stayOpen() func() {
	s.waits.Lock()
	defer s.waits.Unlock()
	s.waiting++
	s.idle.Stop()
	return func() {
		s.waits.Lock()
		defer s.waits.Unlock()
		if s.waiting--; s.waiting == 0 {
			s.idle.Reset(s.idleTime())
		}
	}
}

// idleTime is how long the session stays open without calls.
func (s *session) idleTime() time.Duration {
	if s.paused.Load() {
		return s.o.Paused
	}
	return s.o.Idle
}

func (s *session) Pause(ctx context.Context) error {
	return s.callInTurn(ctx, func(context.Context) error { return s.inner.Pause() })
}

func (s *session) Resume(ctx context.Context) error {
	return s.callInTurn(ctx, func(context.Context) error { return s.inner.Resume() })
}

var errClosed = &proposal.StopError{Code: "session.closed", Message: "the session is closed",
	Hint: "open another session with Gate.Open"}

func (s *session) Close() (proposal.Report, error) {
	s.closeSession(nil)
	return s.report, s.err
}

func (s *session) Done() <-chan struct{} { return s.done }

func (s *session) closeSession(why error) {
	s.once.Do(func() {
		s.idle.Stop()
		s.cancel(cmp.Or(why, error(errClosed)))
		s.turn <- struct{}{} // never released
		report, err := s.inner.Close(why)
		err = s.gate.redactor.Error(errors.Join(err, s.run.network.closeGateway()))
		s.gate.addWarnings(s.gate.engine.Warnings()...)
		s.report, s.err = s.run.sealLog(report, err)
		s.run.closeRun()
		s.gate.mu.Lock()
		s.gate.session = nil
		s.gate.mu.Unlock()
		s.gate.running.Unlock()
		close(s.done)
	})
	<-s.done
}
