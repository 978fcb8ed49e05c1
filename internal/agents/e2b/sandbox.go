// SPDX-License-Identifier: Apache-2.0

package e2b

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fumehood/fumehood/internal/agents/stdin"
	"github.com/fumehood/fumehood/internal/kit/localhttp"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An account is what one key uses. Server.mu guards it.
type account struct {
	sandboxes int           // that are there, are being created or are ending
	time      time.Duration // that sandboxes have used, or may still use
}

// A sandbox is one gate, its session and what the SDK knows about it.
type sandbox struct {
	server          *Server
	id              string
	access, traffic string // tokens
	user, tenant    string
	about           newSandbox
	limits          proposal.Limits

	gate    gate.Opener
	session gate.Session
	ctx     context.Context // ends when the sandbox must
	cancel  context.CancelFunc
	ready   chan struct{} // closed when the set-up has ended
	setup   error         // after that
	gone    chan struct{} // closed when the log is sealed
	once    sync.Once

	requests chan struct{} // holds a token for each request that is served
	files    chan struct{} // holds a token while a request has a file in memory
	watching chan struct{} // holds a token for each watcher
	changes  atomic.Int64  // how often something may have changed files
	metadata fileMetadata

	started time.Time
	last    time.Time // when it must end, whatever its client says

	pausing sync.Mutex // held while b is paused or resumed

	mu        sync.Mutex
	end       time.Time
	timer     *time.Timer
	paused    bool
	pausedAt  time.Time
	pauseLeft time.Duration // how long it may still be paused
	proposed  int
	contexts  contexts
	processes processes
	watchers  map[string]*watcher
	bridges   map[uint16]*bridge // by port
	measured  usage              // the last one that a client asked for
}

// noteChange makes watchers look.
func (b *sandbox) noteChange() { b.changes.Add(1) }

// isBusy reports whether commands or code run that may change files.
func (b *sandbox) isBusy() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.processes.list) > 0 || b.contexts.running > 0
}

// checkRoomForSandbox returns why user can have no other sandbox now.
func (s *Server) checkRoomForSandbox(user string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _, err := s.roomForSandboxLocked(user)
	return err
}

// reserveSandbox counts a new sandbox of user, and returns how long it may last.
func (s *Server) reserveSandbox(user string) (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, left, err := s.roomForSandboxLocked(user)
	if err != nil {
		return 0, err
	}
	a.sandboxes++
	a.time += left
	s.running.Add(1)
	return left, nil
}

// roomForSandboxLocked returns the account of user, and how long another sandbox may last.
func (s *Server) roomForSandboxLocked(user string) (*account, time.Duration, error) {
	a := s.accounts[user]
	if a == nil {
		a = &account{}
		s.accounts[user] = a
	}
	total := 0
	for _, other := range s.accounts {
		total += other.sandboxes
	}
	q, left := s.o.Quota, s.o.Quota.Time-a.time
	switch {
	case s.ended, s.work.HasBegun():
		return nil, 0, refuseRequest(busy, "the server is ending")
	case a.sandboxes >= q.Sandboxes:
		return nil, 0, refuseRequest(resourceExhausted, "the key has its maximum of %d sandboxes: kill one", q.Sandboxes)
	case proposal.Bytes(a.sandboxes+1)*s.o.Memory > q.Memory:
		return nil, 0, refuseRequest(resourceExhausted,
			"the key's sandboxes may have %v of memory together, and each has %v: kill one", q.Memory, s.o.Memory)
	case left <= 0:
		return nil, 0, refuseRequest(resourceExhausted,
			"the key has used, or its sandboxes may still use, all of its %v of sandbox time: kill those that are not needed", q.Time)
	case total >= s.o.Sandboxes:
		return nil, 0, refuseRequest(busy, "the server has its maximum of %d sandboxes", s.o.Sandboxes)
	}
	return a, min(left, s.o.MaxTimeout), nil
}

// releaseReservation is the opposite of reserve. The time that was not used is given back.
func (s *Server) releaseReservation(user string, unused time.Duration) {
	s.mu.Lock()
	a := s.accounts[user]
	a.sandboxes--
	a.time -= max(unused, 0)
	s.mu.Unlock()
	s.running.Done()
}

// createSandbox starts a sandbox of user that ends after timeout, as a copy of from if that is not nil.
func (s *Server) createSandbox(
	ctx context.Context, user localhttp.User, about newSandbox, timeout time.Duration, from *snapshot,
) (*sandbox, error) {
	defer s.work.Enter()()
	allowed, err := s.reserveSandbox(user.Name)
	if err != nil {
		return nil, err
	}
	b := &sandbox{server: s, id: "sb" + strings.ToLower(rand.Text()), access: rand.Text(), traffic: rand.Text(),
		user: user.Name, tenant: user.Tenant, about: about,
		ready: make(chan struct{}), gone: make(chan struct{}), requests: make(chan struct{}, maxRequests),
		files: make(chan struct{}, 1), watching: make(chan struct{}, maxWatchers),
		contexts: newContexts(), processes: newProcesses(), bridges: map[uint16]*bridge{},
		pauseLeft: s.o.Paused}
	b.beginFrom(from)
	b.ctx, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err = b.openSession(ctx, from); err == nil && timeout > allowed {
		err = refuseRequest(resourceExhausted, "the key has %v of sandbox time left: use a shorter timeout", allowed)
	}
	b.started = time.Now()
	b.last, b.end = b.started.Add(allowed), b.started.Add(timeout)
	if err == nil {
		err = s.addSandbox(b)
	}
	if err != nil {
		b.close()
		s.releaseReservation(user.Name, allowed)
		return nil, err
	}
	return b, nil
}

// openSession makes the gate, has policy decide the variables, and starts the sandbox.
func (b *sandbox) openSession(ctx context.Context, from *snapshot) (err error) {
	requested := time.Now()
	b.server.making.Lock()
	b.gate, err = b.server.o.Gate(ctx, b.tenant)
	b.server.making.Unlock()
	if err != nil {
		if m := b.server.o.Metrics; m != nil {
			m.Started(time.Since(requested), errors.Join(err, ctx.Err()))
		}
		return err
	}
	records, err := b.gate.Check(ctx,
		proposal.Plan{Proposals: []proposal.Proposal{{ID: "sandbox", Argv: []string{"true"}, Env: b.about.EnvVars}}})
	if err != nil {
		return err
	}
	r := records[len(records)-1] // after the set-up's
	if !r.Runnable() {
		return refuseRequest(permissionDenied, "policy refuses a sandbox with these variables: %s",
			reasonsOf(r).joinLines())
	}
	b.limits = r.Decision.Grant.Limits.Under(proposal.Limits{Memory: b.server.o.Memory})
	o := gate.SessionOptions{Limits: b.server.o.SessionLimits(), Proposer: b.about.describeClient(),
		Requested: requested, Idle: b.server.o.SessionLifetime(), Paused: b.server.o.SessionLifetime(),
		Lifetime: b.server.o.SessionLifetime(), From: from.sessionFrom()}
	if b.session, err = b.gate.Open(b.ctx, o); err != nil {
		return err
	}
	if _, err = b.session.List(ctx, "."); err != nil { // starts the sandbox
		return err
	}
	return ctx.Err()
}

// addSandbox makes b known, unless the server has ended meanwhile.
func (s *Server) addSandbox(b *sandbox) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return refuseRequest(busy, "the server is ending")
	}
	s.sandboxes[b.id] = b
	b.mu.Lock()
	b.timer = time.AfterFunc(time.Until(b.end), b.endIfExpired)
	b.mu.Unlock()
	go b.setUp()
	go func() {
		<-b.session.Done()
		s.removeSandbox(b)
	}()
	return nil
}

// extendTimeout makes b end after timeout from now, or not before that if longer is set.
func (b *sandbox) extendTimeout(timeout time.Duration, longer bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	end := time.Now().Add(timeout)
	switch {
	case timeout < 0:
		return refuseRequest(invalidArgument, "timeout: must not be negative")
	case end.After(b.last):
		return refuseRequest(invalidArgument,
			"timeout: the sandbox must end %v after its start: at most %d more seconds", b.last.Sub(b.started).Round(time.Second), int(time.Until(b.last).Seconds()))
	case longer && end.Before(b.end):
		return nil
	}
	b.end = end
	b.timer.Reset(timeout)
	return nil
}

// removeSandbox ends b and returns when its log is sealed. No request finds it any more.
func (s *Server) removeSandbox(b *sandbox) {
	b.once.Do(func() {
		s.mu.Lock()
		delete(s.sandboxes, b.id)
		s.mu.Unlock()
		b.mu.Lock()
		b.timer.Stop()
		b.mu.Unlock()
		b.close()
		close(b.gone)
		s.releaseReservation(b.user, b.timeLeft())
	})
	<-b.gone
}

// close kills what runs, seals the log and closes the gate, as far as there is one.
func (b *sandbox) close() {
	b.cancel()
	if b.session != nil {
		b.server.o.Ended(b.session.Close())
	}
	if b.gate != nil {
		_ = b.gate.Close()
	}
}

func (b *sandbox) setUp() {
	defer close(b.ready)
	b.setup = b.session.SetUp(b.ctx, proposal.Proposal{}, func(r proposal.Record) {
		if !r.Runnable() || r.Result != nil && !r.Result.Succeeded() {
			b.server.o.Notice("sandbox " + b.id + ": set-up command failed: " + text.Inline(r.Analysis.Canonical, 80))
		}
	})
}

// proposeAfterSetUp proposes p to the session, after the set-up, with the sandbox's variables under p's own.
func (b *sandbox) proposeAfterSetUp(
	ctx context.Context, how proposeFunc, p proposal.Proposal,
) (proposal.Record, error) {
	if err := b.waitForSetUp(ctx); err != nil {
		return proposal.Record{}, err
	}
	b.mu.Lock()
	if b.paused {
		b.mu.Unlock()
		return proposal.Record{}, refuseRequest(unavailable, "the sandbox is paused: connect to it")
	}
	b.proposed++
	p.ID = fmt.Sprintf("c%d", b.proposed)
	b.mu.Unlock()
	env := maps.Clone(b.about.EnvVars)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, p.Env)
	p.Env = env
	r, err := how(ctx, p)
	return r, b.endOnError(err)
}

// runInBackground runs p while other commands run, as far as the session does that, and kills it
// when ctx ends.
func (b *sandbox) runInBackground(ctx context.Context, p proposal.Proposal) (proposal.Record, error) {
	x, err := b.session.Start(ctx, p)
	var stop *proposal.StopError
	if errors.As(err, &stop) && stop.Code == "session.background" && p.Stdin != stdin.Later {
		return b.session.Do(ctx, p)
	}
	if err != nil {
		return proposal.Record{}, err
	}
	defer context.AfterFunc(ctx, x.Kill)()
	return x.Wait(context.WithoutCancel(ctx))
}

// A proposeFunc runs a proposal: Session.Do, or background.
type proposeFunc func(ctx context.Context, p proposal.Proposal) (proposal.Record, error)

// waitForSetUp returns when the set-up has ended, for what begins then.
func (b *sandbox) waitForSetUp(ctx context.Context) error {
	if b.server.work.HasBegun() {
		return refuseRequest(busy, "the server is ending")
	}
	select {
	case <-b.ready:
		return b.endOnError(b.setup)
	case <-ctx.Done():
		return ctx.Err()
	case <-b.ctx.Done():
		return refuseRequest(unavailable, "the sandbox has ended")
	}
}

// going are the codes of errors after which a session goes on: it does not take one request. The last two are of a
// session of another process.
var going = map[string]bool{"session.proposal": true, "session.full": true, "session.background": true,
	"session.request": true, "session.requests": true, "sandbox.save": true}

// endOnError returns err, and ends the sandbox if its session is over. What a sandbox that ends
// interrupts is an error for that reason.
func (b *sandbox) endOnError(err error) error {
	var stop *proposal.StopError
	switch {
	case err == nil:
		return nil
	case b.ctx.Err() != nil:
		return refuseRequest(unavailable, "the sandbox has ended")
	case errors.As(err, &stop) && !going[stop.Code]:
		go b.server.removeSandbox(b)
	}
	return err
}
