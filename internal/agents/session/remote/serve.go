// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/fumehood/fumehood/internal/kit/peer"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// DefaultAbsent is the default of Options.Absent.
const DefaultAbsent = time.Minute

// Options configure Serve. Gate, TLS and Ended are required.
type Options struct {
	// Gate has the session. The caller closes it.
	Gate gate.Opener
	// TLS must have a certificate, ClientCAs, ClientAuth tls.RequireAndVerifyClientCert, and
	// MinVersion tls.VersionTLS13. VerifyConnection is called for every connection, since
	// none is resumed. GetConfigForClient must be nil: it could return a weaker one.
	TLS *tls.Config
	// Ended is called once, when the log of the session is sealed, with the report and why the
	// session stopped early, if it did. Without a session it is not called.
	Ended func(proposal.Report, error)
	// Absent is how long the client may be away before the session ends, and how long it may
	// take, after the session has ended, until it fetches the log; DefaultAbsent if 0.
	Absent time.Duration
}

// Bounds of what clients use.
const (
	maxHeader      = 64 << 10
	maxConnections = 128
	headerTime     = 10 * time.Second // also for the handshake
	idleTime       = 2 * time.Minute
	lastAnswers    = 5 * time.Second
	shortLinger    = 10 * time.Second // after ctx has ended
	localLinger    = 2 * time.Second
)

// Serve answers at l until the one session of o.Gate has ended or ctx ends; then it has killed
// what runs and sealed the log. Before it returns it waits for the client to fetch the log: for
// o.Absent, or for ten seconds if ctx has ended. It closes l.
//
// The error is a *proposal.StopError: remote.options, or remote.serve if l fails.
func Serve(ctx context.Context, l net.Listener, o Options) error {
	defer l.Close()
	config, err := o.tlsConfig()
	if err != nil {
		return err
	}
	s := newServer(ctx)
	s.gate, s.reported, s.absence = o.Gate, o.Ended, cmp.Or(o.Absent, DefaultAbsent)
	return s.serveUntilDone(ctx, tls.NewListener(limitConnections(l, maxConnections), config))
}

// LocalOptions configure ServeLocal. All fields are required.
type LocalOptions struct {
	// Session is what clients use. It is closed when ServeLocal returns.
	Session gate.Session
	// Describe returns what AttachOptions.Description gets, as JSON.
	Describe func() any
	// Ended is called once, when the log of the session is sealed, with the report and why the
	// session stopped early, if it did.
	Ended func(proposal.Report, error)
}

// ServeLocal answers processes of this user at l until the session has ended, or ctx ends; then it
// has killed what runs and sealed the log. A client may be away. It closes l. The error is as for
// Serve.
func ServeLocal(ctx context.Context, l peer.Listener, o LocalOptions) error {
	defer l.Close()
	s := newServer(ctx)
	s.local, s.files.local = true, true
	s.describe, s.reported, s.absence = o.Describe, o.Ended, localLinger
	s.setSession(o.Session, func() { _, _ = o.Session.Close() })
	return s.serveUntilDone(ctx, limitConnections(l, maxConnections))
}

func (s *server) serveUntilDone(ctx context.Context, l net.Listener) (err error) {
	h := &http.Server{Handler: s.newHandler(), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader, ErrorLog: log.New(io.Discard, "", 0)}
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(l) }()
	select {
	case <-ctx.Done():
	case <-s.ended:
	case err = <-failed:
		err = &proposal.StopError{Code: "remote.serve", Message: "cannot accept connections",
			Hint: "check the listener's address", Err: err}
	}
	s.endSession()
	if err == nil {
		s.waitForLogFetch(ctx)
	}
	last, cancel := context.WithTimeout(s.ctx, lastAnswers)
	defer cancel()
	_ = h.Shutdown(last) // answers are on their way
	_ = h.Close()
	return err
}

// tlsConfig returns a copy of the TLS configuration that clients of this package speak.
func (o Options) tlsConfig() (*tls.Config, error) {
	why := ""
	switch c := o.TLS; {
	case o.Gate == nil || o.Ended == nil || c == nil:
		why = "Gate, TLS and Ended are required"
	case c.ClientAuth != tls.RequireAndVerifyClientCert:
		why = "TLS.ClientAuth is not RequireAndVerifyClientCert"
	case c.ClientCAs == nil:
		why = "TLS.ClientCAs is nil, which means every authority that this host trusts"
	case c.MinVersion < tls.VersionTLS13:
		why = "TLS.MinVersion is below TLS 1.3"
	case c.GetConfigForClient != nil:
		why = "TLS.GetConfigForClient is set"
	case o.Absent < 0:
		why = "Absent is negative"
	}
	if why != "" {
		return nil, invalidOptions(why)
	}
	c := o.TLS.Clone()
	c.NextProtos, c.SessionTicketsDisabled = []string{"http/1.1"}, true
	return c, nil
}

func invalidOptions(why string) error {
	return &proposal.StopError{Code: "remote.options", Message: "invalid options: " + why,
		Hint: "correct the program that uses package remote"}
}
