// SPDX-License-Identifier: Apache-2.0

//go:build linux

package remote

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/session/internal/wire"
)

// How many requests of a kind are served at a time.
const (
	maxRequests = 64
	maxUrgent   = 16 // that end something or wait for the end
	maxFiles    = 4  // with a file in memory
	maxChecks   = 4
)

// A server serves one session.
type server struct {
	o       Options
	ctx     context.Context // of sessions; does not end by itself
	running wire.Running
	files   artifacts

	slots, urgent, transfers, checks chan struct{}

	opening sync.Mutex // held while a session is opened
	over    bool       // with opening held: no session may be opened any more

	mu      sync.Mutex
	session gate.Session
	token   string
	cancel  context.CancelFunc // ends the session
	present int                // streams of events that are open
	absent  *time.Timer        // ends the session

	ended   chan struct{} // closed when the log is sealed and Options.Ended was called
	fetched chan struct{} // closed when the client has the log
	fetch   func()        // closes fetched
}

func newServer(ctx context.Context, o Options) *server {
	s := &server{o: o, ctx: context.WithoutCancel(ctx), ended: make(chan struct{}), fetched: make(chan struct{})}
	s.slots, s.urgent, s.transfers, s.checks = make(chan struct{}, maxRequests), make(chan struct{}, maxUrgent), make(chan struct{}, maxFiles), make(chan struct{}, maxChecks)
	s.fetch = sync.OnceFunc(func() { close(s.fetched) })
	return s
}

func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /check", served(s.checks, s.check))
	mux.HandleFunc("POST /session", served(s.slots, s.open))
	mux.HandleFunc("GET /session/events", served(s.urgent, s.inside(s.events)))
	mux.HandleFunc("POST /session/setup", served(s.slots, s.inside(s.setUp)))
	mux.HandleFunc("POST /session/cancel", served(s.urgent, s.inside(s.stop)))
	mux.HandleFunc("POST /session/close", served(s.urgent, s.inside(s.close)))
	mux.HandleFunc("POST /proposals", served(s.slots, s.inside(s.propose)))
	mux.HandleFunc("POST /processes", served(s.slots, s.inside(s.start)))
	mux.HandleFunc("POST /running/{id}/end", served(s.urgent, s.inside(s.finish)))
	mux.HandleFunc("POST /running/{id}/interrupt", served(s.urgent, s.inside(s.interrupt)))
	mux.HandleFunc("POST /asked", served(s.slots, s.inside(s.asked)))
	mux.HandleFunc("GET /files", served(s.slots, s.inside(s.list)))
	mux.HandleFunc("GET /changes", served(s.slots, s.inside(s.changes)))
	mux.HandleFunc("POST /diff", served(s.slots, s.inside(s.diff)))
	mux.HandleFunc("GET /file", served(s.transfers, s.inside(s.take)))
	mux.HandleFunc("PUT /file", served(s.transfers, s.inside(s.put)))
	mux.HandleFunc("GET /artifact", served(s.transfers, s.inside(s.artifact)))
	return mux
}

// A handler answers a request, or returns why there is no answer.
type handler func(w http.ResponseWriter, r *http.Request) error

// served returns h within a number of requests at a time.
func served(slots chan struct{}, h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w = patient{w}
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		default:
			wire.Answer(w, nil, &proposal.StopError{Code: "session.requests", Message: "the session has its maximum of requests", Hint: "wait until one ends"})
			return
		}
		if err := h(w, r); err != nil {
			wire.Answer(w, nil, err)
		}
	}
}

// inside returns h for the client that opened the session.
func (s *server) inside(h func(http.ResponseWriter, *http.Request, gate.Session) error) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		s.mu.Lock()
		session, token := s.session, s.token
		s.mu.Unlock()
		given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if session == nil || subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			return &proposal.StopError{Code: "session.unknown", Message: "the request is not of the client that opened the session", Hint: "open a session first"}
		}
		return h(w, r, session)
	}
}

// An opening has the gate.SessionOptions.
type opening struct {
	Limits   proposal.Limits   `json:"limits"`
	Network  []string          `json:"network,omitempty"`
	Proposer string            `json:"proposer,omitempty"`
	Idle     proposal.Duration `json:"idle,omitempty"`
	Lifetime proposal.Duration `json:"lifetime,omitempty"`
	// Waited is the time since SessionOptions.Requested, since clocks differ.
	Waited proposal.Duration `json:"waited,omitempty"`
}

func openingOf(o gate.SessionOptions) opening {
	out := opening{Limits: o.Limits, Network: o.Network, Proposer: o.Proposer, Idle: proposal.Duration(o.Idle), Lifetime: proposal.Duration(o.Lifetime)}
	if !o.Requested.IsZero() {
		out.Waited = proposal.Duration(max(time.Since(o.Requested), 0))
	}
	return out
}

func (o opening) options() gate.SessionOptions {
	return gate.SessionOptions{Limits: o.Limits, Network: o.Network, Proposer: o.Proposer, Idle: o.Idle.Std(), Lifetime: o.Lifetime.Std(), Requested: time.Now().Add(-o.Waited.Std())}
}

// An opened says how the session is used.
type opened struct {
	ID    string `json:"id"`
	Token string `json:"token"`
}

func (s *server) open(w http.ResponseWriter, r *http.Request) error {
	o, err := document[opening](w, r)
	if err != nil {
		return err
	}
	if !s.opening.TryLock() {
		return errTaken
	}
	defer s.opening.Unlock()
	if s.over {
		return errTaken
	}
	ctx, cancel := context.WithTimeout(s.ctx, cmp.Or(o.Lifetime.Std(), gate.DefaultLifetime))
	session, err := s.o.Gate.Open(ctx, o.options())
	if err != nil {
		cancel()
		return err
	}
	s.over = true
	s.begin(session, cancel)
	wire.Answer(w, opened{session.ID(), s.token}, nil)
	return nil
}

var errTaken = &proposal.StopError{Code: "session.taken", Message: "this server has had its one session", Hint: "start another server"}

// begin makes session the one session.
func (s *server) begin(session gate.Session, cancel context.CancelFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session, s.cancel, s.token = session, cancel, rand.Text()
	s.absent = time.AfterFunc(s.o.Absent, s.leave)
	go func() {
		<-session.Done()
		s.o.Ended(session.Close())
		cancel()
		close(s.ended)
	}()
}

// enter and exit count the streams of events. While there is none, the client is away.
func (s *server) enter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.present++
	s.absent.Stop()
}

func (s *server) exit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.present--; s.present == 0 {
		s.absent.Reset(s.o.Absent)
	}
}

// leave ends the session of a client that is away.
func (s *server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.present == 0 {
		s.cancel()
	}
}

// end ends the session, if there is one, and waits until its log is sealed.
func (s *server) end() {
	s.opening.Lock()
	s.over = true
	s.opening.Unlock()
	s.mu.Lock()
	cancel := s.cancel
	s.mu.Unlock()
	if cancel != nil {
		cancel()
		<-s.ended
	}
}

// linger waits for the client to fetch the log.
func (s *server) linger(ctx context.Context) {
	if s.session == nil {
		return
	}
	late := time.NewTimer(s.o.Absent)
	defer late.Stop()
	defer context.AfterFunc(ctx, func() { late.Reset(min(shortLinger, s.o.Absent)) })()
	select {
	case <-s.fetched:
	case <-late.C:
	}
}

// document reads the JSON document of a request.
func document[T any](w http.ResponseWriter, r *http.Request) (T, error) {
	return receive(w, func() (v T, err error) { return v, wire.Decode(w, r, &v) })
}
