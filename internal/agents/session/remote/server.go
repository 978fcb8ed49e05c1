// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// How many requests of a kind are served at a time.
const (
	maxRequests = 64
	maxUrgent   = 16             // that end something
	maxAttached = maxConnections // that wait for the end
	maxFiles    = 4              // with a file in memory
	maxChecks   = 4
)

// A server serves one session.
type server struct {
	gate     gate.Opener // that opens the session for a client
	local    bool        // the session is there, and all clients are processes of this user on this machine
	describe func() any  // of a local one
	reported func(proposal.Report, error)
	absence  time.Duration   // of the client, until the session ends
	ctx      context.Context // of sessions; does not end by itself
	running  runningRequests
	files    announcedFiles

	slots, urgent, attached, transfers, checks chan struct{}

	opening sync.Mutex // held while a session is opened
	over    bool       // with opening held: no session may be opened any more

	mu      sync.Mutex
	session gate.Session
	token   string
	cancel  context.CancelFunc // ends the session
	present int                // streams of events that are open
	absent  *time.Timer        // ends the session

	ended   chan struct{} // closed when the log is sealed and reported was called
	fetched chan struct{} // closed when the client has the log, or none will fetch it
	fetch   func()        // closes fetched
}

func newServer(ctx context.Context) *server {
	s := &server{ctx: context.WithoutCancel(ctx), ended: make(chan struct{}), fetched: make(chan struct{})}
	s.slots, s.urgent, s.attached = make(chan struct{}, maxRequests), make(chan struct{}, maxUrgent),
		make(chan struct{}, maxAttached)
	s.transfers, s.checks = make(chan struct{}, maxFiles), make(chan struct{}, maxChecks)
	s.fetch = sync.OnceFunc(func() { close(s.fetched) })
	return s
}

func (s *server) newHandler() http.Handler {
	mux := http.NewServeMux()
	if s.local {
		mux.HandleFunc("GET /session", s.limitRequests(s.urgent, s.requireSession(s.handleAttach)))
	} else {
		mux.HandleFunc("POST /check", s.limitRequests(s.checks, s.handleCheck))
		mux.HandleFunc("POST /session", s.limitRequests(s.slots, s.handleOpen))
		mux.HandleFunc("POST /session/cancel", s.limitRequests(s.urgent, s.requireSession(s.handleStop)))
		mux.HandleFunc("GET /artifact", s.limitRequests(s.transfers, s.requireSession(s.handleArtifact)))
	}
	mux.HandleFunc("GET /session/events", s.limitRequests(s.attached, s.requireSession(s.handleEvents)))
	mux.HandleFunc("POST /session/setup", s.limitRequests(s.slots, s.requireSession(s.setUp)))
	mux.HandleFunc("POST /session/close", s.limitRequests(s.urgent, s.requireSession(s.handleClose)))
	mux.HandleFunc("POST /proposals", s.limitRequests(s.slots, s.requireSession(s.handlePropose)))
	mux.HandleFunc("POST /processes", s.limitRequests(s.slots, s.requireSession(s.handleStart)))
	mux.HandleFunc("POST /running/{id}/end", s.limitRequests(s.urgent, s.requireSession(s.handleEnd)))
	mux.HandleFunc("POST /running/{id}/interrupt", s.limitRequests(s.urgent, s.requireSession(s.handleInterrupt)))
	mux.HandleFunc("GET /file", s.limitRequests(s.transfers, s.requireSession(s.handleTake)))
	mux.HandleFunc("PUT /file", s.limitRequests(s.transfers, s.requireSession(s.handlePut)))
	for _, m := range methods {
		mux.HandleFunc(m.handler(s))
	}
	return mux
}

// A handler answers a request, or returns why there is no answer.
type handler func(w http.ResponseWriter, r *http.Request) error

// limitRequests returns h within a number of requests at a time.
func (s *server) limitRequests(slots chan struct{}, h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.local {
			w = deadlineWriter{w}
		}
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		default:
			sendAnswer(w, nil, errRequests)
			return
		}
		if err := h(w, r); err != nil {
			sendAnswer(w, nil, err)
		}
	}
}

var errRequests = &proposal.StopError{Code: "session.requests", Message: "the session has its maximum of requests",
	Hint: "wait until one ends"}

// requireSession returns h for the client that opened the session. All clients of a local session may use
// it: the listener has checked whose they are.
func (s *server) requireSession(h func(http.ResponseWriter, *http.Request, gate.Session) error) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		s.mu.Lock()
		session, token := s.session, s.token
		s.mu.Unlock()
		given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if session == nil || !s.local && subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			return &proposal.StopError{Code: "session.unknown",
				Message: "the request is not of the client that opened the session", Hint: "open a session first"}
		}
		return h(w, r, session)
	}
}

// An attachAnswer says what clients of a local session know of it.
type attachAnswer struct {
	ID          string          `json:"id"`
	Log         string          `json:"log"`
	Artifacts   string          `json:"artifacts"`
	Description json.RawMessage `json:"description"`
}

func (s *server) handleAttach(w http.ResponseWriter, _ *http.Request, session gate.Session) error {
	description, err := json.Marshal(s.describe())
	sendAnswer(w, attachAnswer{session.ID(), absolutePath(session.Log()), absolutePath(session.Artifacts()),
		description}, err)
	return nil
}

func (s *server) handleCheck(w http.ResponseWriter, r *http.Request) error {
	plan, err := readDocument[proposal.Plan](w, r)
	if err != nil {
		return err
	}
	records, err := s.gate.Check(r.Context(), plan)
	sendAnswer(w, records, err)
	return nil
}

// Check is gate.Gate.Check. The plan may have 1 MiB as JSON.
func (c *Client) Check(ctx context.Context, plan proposal.Plan) (records []proposal.Record, err error) {
	err = c.callServer(ctx, request{method: http.MethodPost, path: "/check", document: plan}, &records)
	return records, err
}

// An openRequest has the gate.SessionOptions.
type openRequest struct {
	Limits   proposal.Limits   `json:"limits"`
	Network  []string          `json:"network,omitempty"`
	Proposer string            `json:"proposer,omitempty"`
	Idle     proposal.Duration `json:"idle,omitempty"`
	Lifetime proposal.Duration `json:"lifetime,omitempty"`
	Paused   proposal.Duration `json:"paused,omitempty"`
	// Waited is the time since SessionOptions.Requested, since clocks differ.
	Waited proposal.Duration `json:"waited,omitempty"`
}

func openingOf(o gate.SessionOptions) openRequest {
	out := openRequest{Limits: o.Limits, Network: o.Network, Proposer: o.Proposer, Idle: proposal.Duration(o.Idle),
		Lifetime: proposal.Duration(o.Lifetime), Paused: proposal.Duration(o.Paused)}
	if !o.Requested.IsZero() {
		out.Waited = proposal.Duration(max(time.Since(o.Requested), 0))
	}
	return out
}

func (o openRequest) sessionOptions() gate.SessionOptions {
	return gate.SessionOptions{Limits: o.Limits, Network: o.Network, Proposer: o.Proposer, Idle: o.Idle.Std(),
		Lifetime: o.Lifetime.Std(), Paused: o.Paused.Std(), Requested: time.Now().Add(-o.Waited.Std())}
}

// An openAnswer says how the session is used.
type openAnswer struct {
	ID    string `json:"id"`
	Token string `json:"token"`
}

func (s *server) handleOpen(w http.ResponseWriter, r *http.Request) error {
	o, err := readDocument[openRequest](w, r)
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
	session, err := s.gate.Open(ctx, o.sessionOptions())
	if err != nil {
		cancel()
		return err
	}
	s.over = true
	s.setSession(session, cancel)
	sendAnswer(w, openAnswer{session.ID(), s.token}, nil)
	return nil
}

var errTaken = &proposal.StopError{Code: "session.taken", Message: "this server has had its one session",
	Hint: "start another server"}

// setSession makes session the one session.
func (s *server) setSession(session gate.Session, cancel context.CancelFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session, s.cancel = session, cancel
	if !s.local {
		s.token = rand.Text()
		s.absent = time.AfterFunc(s.absence, s.endAbandoned)
	}
	go s.awaitSessionEnd()
}

// awaitSessionEnd waits for the end of the session.
func (s *server) awaitSessionEnd() {
	<-s.session.Done()
	s.reported(s.session.Close())
	s.mu.Lock()
	if s.local && s.present == 0 {
		s.fetch()
	}
	s.mu.Unlock()
	s.cancel()
	close(s.ended)
}

// countStream and exit count the streams of events. While there is none, the client is away.
func (s *server) countStream() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.present++
	if !s.local {
		s.absent.Stop()
	}
}

func (s *server) uncountStream() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.present--; s.present == 0 && !s.local {
		s.absent.Reset(s.absence)
	}
}

// endAbandoned ends the session of a client that is away.
func (s *server) endAbandoned() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.present == 0 {
		s.cancel()
	}
}

// endSession ends the session, if there is one, and waits until its log is sealed.
func (s *server) endSession() {
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

// waitForLogFetch waits for the client to fetch the log.
func (s *server) waitForLogFetch(ctx context.Context) {
	if s.session == nil {
		return
	}
	late := time.NewTimer(s.absence)
	defer late.Stop()
	defer context.AfterFunc(ctx, func() { late.Reset(min(shortLinger, s.absence)) })()
	select {
	case <-s.fetched:
	case <-late.C:
	}
}

// handleStop ends the session as the end of the context of a local Open does.
func (s *server) handleStop(w http.ResponseWriter, _ *http.Request, _ gate.Session) error {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	sendAnswer(w, struct{}{}, nil)
	return nil
}
