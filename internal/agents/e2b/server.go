// SPDX-License-Identifier: Apache-2.0

package e2b

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/fumehood/fumehood/internal/agents/health"
	"github.com/fumehood/fumehood/internal/kit/localhttp"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Quota is what one key may use at a time. A zero field means its default.
type Quota struct {
	Sandboxes int            // 4
	Memory    proposal.Bytes // of all its sandboxes together: 8 GiB
	Time      time.Duration  // of all its sandboxes since the server's start: 24 h
}

// Options configure a Server. Gate is required; a zero field means its default.
type Options struct {
	// Gate makes the gate of one sandbox. It is not called concurrently. The server closes the
	// gate. tenant is that of the key, or "".
	Gate  func(ctx context.Context, tenant string) (gate.Opener, error)
	Quota Quota
	// Memory is the maximum of one sandbox, if policy grants that much: 2 GiB.
	Memory proposal.Bytes
	// Timeout is when a sandbox ends whose client does not say when: 5 minutes.
	Timeout time.Duration
	// MaxTimeout is how long after its start a sandbox must end: 1 hour.
	MaxTimeout time.Duration
	// Paused is how long a sandbox may be paused, in all: 12 hours.
	Paused time.Duration
	// Sandboxes is the maximum for all keys together: 16.
	Sandboxes int
	// Ports of sandboxes may be reached by the clients that have them: see docs/E2B.md. None if empty.
	Ports []PortRange
	// Metrics are served at health.MetricsPath without a key, and say at health.HealthPath
	// whether the server is ready; nil for neither.
	Metrics *health.Metrics
	// Drain is how long running requests may take after the context of the server has ended
	// or until a second signal; then their commands are killed. 0 kills them at once.
	Drain time.Duration
	// Ended is called with the report of each sandbox when its log is sealed; nil for no
	// calls. It may be called concurrently.
	Ended func(proposal.Report, error)
	// Notice is called with one line about what no client sees: set-up commands that
	// failed. Nil for no calls.
	Notice func(string)
}

// SessionLimits are the limits of each sandbox's session, for gate.Gate.Prepare.
func (o Options) SessionLimits() proposal.Limits {
	return proposal.Limits{Memory: o.withDefaults().Memory}
}

// SessionLifetime is how long a sandbox's session can be open.
func (o Options) SessionLifetime() time.Duration {
	o = o.withDefaults()
	return o.MaxTimeout + o.Paused + time.Minute
}

func (o Options) withDefaults() Options {
	o.Quota = Quota{cmp.Or(o.Quota.Sandboxes, 4), cmp.Or(o.Quota.Memory, 8*proposal.GiB),
		cmp.Or(o.Quota.Time, 24*time.Hour)}
	o.Memory, o.Timeout, o.MaxTimeout = cmp.Or(o.Memory, 2*proposal.GiB), cmp.Or(o.Timeout, 5*time.Minute),
		cmp.Or(o.MaxTimeout, time.Hour)
	o.Paused = cmp.Or(o.Paused, 12*time.Hour)
	o.Sandboxes = cmp.Or(o.Sandboxes, 16)
	if o.Ended == nil {
		o.Ended = func(proposal.Report, error) {}
	}
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	return o
}

// A Server serves any number of clients. New returns one; HTTP may be called once.
type Server struct {
	o    Options
	keys localhttp.Tokens
	ctx  context.Context // ends all sandboxes

	making    sync.Mutex // held while a gate is made
	mu        sync.Mutex
	sandboxes map[string]*sandbox
	snapshots map[string]*snapshot
	accounts  map[string]*account
	running   sync.WaitGroup // one for each sandbox until its log is sealed
	ended     bool
	work      health.Drain
	suffix    string // of the host names of ports: a colon and the server's own port
}

// New returns a Server.
func New(o Options) *Server {
	o = o.withDefaults()
	if o.Metrics != nil {
		o.Metrics.SetLimit(o.Sandboxes)
	}
	return &Server{o: o, ctx: context.Background(), sandboxes: map[string]*sandbox{}, accounts: map[string]*account{},
		snapshots: map[string]*snapshot{}}
}

// ServeClients serves clients with one of keys at l until ctx ends. Then nothing begins, what runs
// ends within Options.Drain or is killed, and all logs are sealed before it returns.
func (s *Server) ServeClients(ctx context.Context, l net.Listener, keys localhttp.Tokens) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	killed, kill := health.WithGrace(ctx, s.o.Drain)
	defer kill()
	s.ctx, s.keys = killed, keys
	routes := s.newHandler()
	if s.o.Metrics != nil {
		routes = s.o.Metrics.Mount(routes, s.serverStatus)
	}
	defer s.o.Metrics.Serve(s.serverStatus)()
	server := &http.Server{Handler: s.servePorts(l.Addr().String(), routes),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute, MaxHeaderBytes: localhttp.MaxHeader}
	drained := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(drained)
		s.work.Wait(killed)
		kill()
		s.endAllSandboxes()
		answers, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastAnswers)
		defer cancel()
		_ = server.Shutdown(answers)
		_ = server.Close()
	})
	err := server.Serve(l)
	cancel()
	<-drained
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// serverStatus says whether the server takes new sandboxes.
func (s *Server) serverStatus() health.Status {
	s.mu.Lock()
	total := 0
	for _, a := range s.accounts {
		total += a.sandboxes
	}
	s.mu.Unlock()
	switch {
	case s.work.HasBegun():
		return health.DrainingStatus()
	case total >= s.o.Sandboxes:
		return health.Status{Status: health.StatusNotReady,
			Reason: fmt.Sprintf("the server has its maximum of %d sandboxes", total)}
	}
	return health.Status{Status: health.StatusReady}
}

// lastAnswers is how long clients have to read the answers to what the server's end has ended.
const lastAnswers = 2 * time.Second

// endAllSandboxes ends all sandboxes, and waits for those that are being created.
func (s *Server) endAllSandboxes() {
	s.mu.Lock()
	s.ended = true
	var all []*sandbox
	for _, b := range s.sandboxes {
		all = append(all, b)
	}
	s.mu.Unlock()
	for _, b := range all {
		go s.removeSandbox(b)
	}
	s.running.Wait()
	s.closeSnapshots()
}

func (s *Server) newHandler() http.Handler {
	mux := http.NewServeMux()
	s.apiRoutes(mux)
	s.codeRoutes(mux)
	s.fileRoutes(mux)
	s.processRoutes(mux)
	mux.HandleFunc("GET /health", s.serveInSandbox("", failJSON,
		func(w http.ResponseWriter, _ *http.Request, _ *sandbox) error {
			w.WriteHeader(http.StatusNoContent)
			return nil
		}))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		failJSON(w, refuseRequest(notFound, "there is no %s %s here; docs/E2B.md lists what is supported", r.Method,
			r.URL.Path))
	})
	return mux
}

// The ports at which the SDK expects a sandbox's servers.
const (
	envdPort = "49983"
	codePort = "49999"
)

// maxRequests is how many requests of one sandbox are served at a time.
const maxRequests = 64

// serveInSandbox serves a request to a sandbox at one of its ports; any if port is "".
func (s *Server) serveInSandbox(
	port string, fail failure, f func(http.ResponseWriter, *http.Request, *sandbox) error,
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b, err := s.findReached(r, port)
		if err != nil {
			fail(w, err)
			return
		}
		s.serveRequest(w, r, b, fail, f)
	}
}

// serveRequest serves a request that may reach b.
func (s *Server) serveRequest(
	w http.ResponseWriter, r *http.Request, b *sandbox, fail failure,
	f func(http.ResponseWriter, *http.Request, *sandbox) error,
) {
	leave, err := b.enterRequest()
	if err == nil {
		defer leave()
		err = b.requireRunning(r.Context())
	}
	if err == nil {
		err = f(w, r, b)
	}
	if err != nil {
		fail(w, err)
	}
}

// enterRequest counts a request that is served until leave is called, and refuses one too many.
func (b *sandbox) enterRequest() (leave func(), err error) {
	select {
	case b.requests <- struct{}{}:
		end := b.server.work.Enter()
		return func() { end(); <-b.requests }, nil
	default:
		return nil, refuseRequest(resourceExhausted, "the sandbox has %d requests at a time", maxRequests)
	}
}

// findByToken returns the sandbox with an access token, which older SDKs send without the sandbox's id.
func (s *Server) findByToken(token string) (*sandbox, error) {
	if token == "" {
		return nil, refuseRequest(unauthenticated,
			"the request names no sandbox: set E2B_SANDBOX_URL to this server")
	}
	var found *sandbox
	s.mu.Lock()
	for _, b := range s.sandboxes {
		if subtle.ConstantTimeCompare([]byte(token), []byte(b.access)) == 1 {
			found = b
		}
	}
	s.mu.Unlock()
	if found == nil {
		return nil, refuseRequest(unavailable, "the sandbox was not found: it has ended, or never was")
	}
	return found, nil
}

// findReached returns the sandbox that a request names and has the token of. For the code
// interpreter the token is the one for traffic, because the SDK does not send the other one
// with every request.
func (s *Server) findReached(r *http.Request, port string) (*sandbox, error) {
	id, at := r.Header.Get("E2b-Sandbox-Id"), r.Header.Get("E2b-Sandbox-Port")
	switch {
	case id == "":
		return s.findByToken(r.Header.Get("X-Access-Token"))
	case at != envdPort && at != codePort, port != "" && at != port:
		return nil, refuseRequest(notFound, "nothing is served at port %q of a sandbox", at)
	}
	s.mu.Lock()
	b := s.sandboxes[id]
	s.mu.Unlock()
	if b == nil {
		return nil, refuseRequest(unavailable, "the sandbox was not found: it has ended, or never was")
	}
	given, want := r.Header.Get("X-Access-Token"), b.access
	if at == codePort {
		given, want = r.Header.Get("E2B-Traffic-Access-Token"), b.traffic
	}
	if subtle.ConstantTimeCompare([]byte(given), []byte(want)) != 1 {
		return nil, refuseRequest(unauthenticated, "the access token of the sandbox is missing or wrong")
	}
	return b, nil
}
