// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/fumehood/fumehood/internal/kit/localhttp"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The paths of the Handler.
const (
	MetricsPath = "/metrics"
	HealthPath  = "/healthz"
)

// A Status is the answer at HealthPath.
type Status struct {
	// Status is "ready", "not ready", which may pass, or "draining", which does not.
	Status string `json:"status"`
	// Reason is why the server is not ready.
	Reason string `json:"reason,omitempty"`
}

// The values of Status.Status.
const (
	StatusReady    = "ready"
	StatusNotReady = "not ready"
	StatusDraining = "draining"
)

// Handler answers GET at MetricsPath, in the format of Prometheus, and at HealthPath: 200 if
// the server takes new sessions, otherwise 503. status is what the server knows; if it is
// ready, the Handler adds what m knows: see StartFailure. Neither needs a token, and neither has
// more than the package comment says; the caller limits who can connect.
func (m *Metrics) Handler(status func() Status) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+MetricsPath,
		promhttp.HandlerFor(m.all, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, Timeout: scrapeTime}))
	mux.HandleFunc("GET "+HealthPath, func(w http.ResponseWriter, _ *http.Request) {
		s := status()
		if why := m.StartFailure(); s.Status == StatusReady && why != "" {
			s = Status{StatusNotReady, why}
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		if s.Status != StatusReady {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(s)
	})
	return mux
}

// DrainingStatus is the Status of a server that is shutting down.
func DrainingStatus() Status { return Status{StatusDraining, "the server is shutting down"} }

// Mount returns a handler that answers at MetricsPath and HealthPath as Handler does, and
// passes all other requests to next.
func (m *Metrics) Mount(next http.Handler, status func() Status) http.Handler {
	own := m.Handler(status)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == MetricsPath || r.URL.Path == HealthPath {
			own.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Listen listens at addr, HOST:PORT of any interface, for Serve, and returns its URL. Its error is a
// *proposal.StopError (health.address).
func (m *Metrics) Listen(ctx context.Context, addr string) (url string, err error) {
	if m.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", addr); err != nil {
		return "", &proposal.StopError{Code: "health.address", Message: fmt.Sprintf("cannot listen on %q", addr),
			Hint: "use a free port of an address of this host, for example :9464", Err: err}
	}
	return "http://" + m.listener.Addr().String(), nil
}

// Serve answers as Handler does, and nothing else, at the address of Listen until end. It does nothing
// without one, or if m is nil. Anyone who can connect can read what Handler has.
func (m *Metrics) Serve(status func() Status) (end func()) {
	if m == nil || m.listener == nil {
		return func() {}
	}
	server := &http.Server{Handler: m.Handler(status), ReadHeaderTimeout: scrapeTime, IdleTimeout: time.Minute,
		MaxHeaderBytes: localhttp.MaxHeader}
	go func() { _ = server.Serve(m.listener) }()
	return func() { Close(server) }
}

const (
	maxScrapes = 4
	scrapeTime = 5 * time.Second
)

// troubleTime is how long a failed start makes a server not ready. After it, the next
// session shows whether sandboxes start again.
const troubleTime = 30 * time.Second

// StartFailure returns why no sandbox is likely to start: the last one did not, a moment ago. It
// returns "" otherwise.
func (m *Metrics) StartFailure() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failed.IsZero() || time.Since(m.failed) > troubleTime {
		return ""
	}
	return "the last sandbox did not start: " + m.code
}
