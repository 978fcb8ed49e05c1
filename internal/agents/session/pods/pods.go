// SPDX-License-Identifier: Apache-2.0

// Package pods has gates whose sessions are in pods of Kubernetes. A gate claims a pod from
// fumehood-claims (package claims) when it is first asked something, and then talks to the pod's node
// over mutual TLS (package remote): commands, files and answers do not pass the API server.
//
// The package promises:
//
//   - A session has a pod of its own, which is released when the session or the gate is closed,
//     whatever happened to it. Its policy is that of the pod's node, which no client chooses.
//   - A pod is used only if the certificate at its address is that of its node (ServerName).
//   - The sealed log of a session is fetched and verified before its pod is released.
package pods

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/fumehood/fumehood/internal/agents/claims"
	"github.com/fumehood/fumehood/internal/agents/session/remote"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Options configure a Backend. All fields but Tenant and Health are required.
type Options struct {
	Claims *claims.Client
	// TLS has the client's certificate and the authorities of the nodes' ones.
	TLS *tls.Config
	// Port is where pods answer.
	Port int
	// Lifetime is when Kubernetes ends a pod, whatever happens here.
	Lifetime time.Duration
	// Tenant is the namespace of clients whose token names none; "" refuses them.
	Tenant string
	// Logs is the directory for the sessions' logs, and Artifacts that for what they export.
	Logs, Artifacts string
	// Health counts sessions; nil for no calls.
	Health gate.Health
}

// A Backend makes gates. New returns one.
type Backend struct{ o Options }

// New returns a Backend. Its error is a *proposal.StopError (pods.options).
func New(o Options) (*Backend, error) {
	switch {
	case o.Claims == nil:
		return nil, newStopError("pods.options", "there is no connection to fumehood-claims", "start it")
	case o.TLS == nil || len(o.TLS.Certificates) == 0 || o.TLS.RootCAs == nil:
		return nil, newStopError("pods.options", "there is no certificate for the sessions",
			"name a directory with tls.crt, tls.key and ca.crt")
	case o.Port < 1 || o.Port > 65535:
		return nil, newStopError("pods.options", fmt.Sprintf("%d is not a port", o.Port),
			"use the port of [sessions] in the nodes' configuration")
	case o.Lifetime <= 0 || o.Logs == "" || o.Artifacts == "":
		return nil, newStopError("pods.options", "sessions need a lifetime, and directories for logs and artifacts",
			"set them")
	}
	return &Backend{o}, nil
}

// NewGate returns a gate for a client of a tenant, which is "" if its token names none. It decides by
// the policy of a pod. Its error is a *proposal.StopError (pods.tenant).
func (b *Backend) NewGate(_ context.Context, tenant string) (gate.Opener, error) {
	if tenant == "" {
		tenant = b.o.Tenant
	}
	if tenant == "" {
		return nil, newStopError("pods.tenant", "the token has no tenant, and the server no default",
			"write tenant=NAMESPACE behind the token, or use --namespace")
	}
	return &podGate{b: b, tenant: tenant}, nil
}

// A podGate is the gate of one client.
type podGate struct {
	b      *Backend
	tenant string

	mu     sync.Mutex
	pod    *pod // nil until it is needed
	closed bool
}

func (g *podGate) Check(ctx context.Context, plan proposal.Plan) ([]proposal.Record, error) {
	p, err := g.ensurePod(ctx)
	if err != nil {
		return nil, err
	}
	return p.client.Check(ctx, plan)
}

// Open fails while another session of the gate is open (session.taken).
func (g *podGate) Open(ctx context.Context, o gate.SessionOptions) (_ gate.Session, err error) {
	begin := time.Now()
	defer func() { g.b.countSession(begin, o.Requested, err) }()
	p, err := g.ensurePod(ctx)
	if err != nil {
		return nil, err
	}
	inner, err := p.client.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return &session{inner, g, p}, nil
}

// countSession counts a session.
func (b *Backend) countSession(begin, requested time.Time, err error) {
	h := b.o.Health
	if h == nil {
		return
	}
	h.Started(time.Since(begin), err)
	if err == nil && !requested.IsZero() {
		h.Ready(time.Since(requested))
	}
}

// Close releases the pod.
func (g *podGate) Close() error {
	g.mu.Lock()
	p := g.pod
	g.pod, g.closed = nil, true
	g.mu.Unlock()
	return p.releaseOnce()
}

// ensurePod returns the gate's pod, and claims one if there is none.
func (g *podGate) ensurePod(ctx context.Context) (*pod, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, newStopError("pods.closed", "the gate is closed", "connect again")
	}
	if g.pod != nil {
		return g.pod, nil
	}
	p, err := g.b.claimPod(ctx, g.tenant)
	if err == nil {
		g.pod = p
	}
	return p, err
}

// forgetPod forgets a pod that has had its session, and releases it.
func (g *podGate) forgetPod(p *pod) error {
	g.mu.Lock()
	if g.pod == p {
		g.pod = nil
	}
	g.mu.Unlock()
	return p.releaseOnce()
}

// A pod is a claimed one.
type pod struct {
	backend *Backend
	claim   claims.Claim
	client  *remote.Client
	once    sync.Once
}

func (b *Backend) claimPod(ctx context.Context, tenant string) (*pod, error) {
	c, err := b.o.Claims.Claim(ctx, claims.Request{Tenant: tenant, Lifetime: b.o.Lifetime})
	if err != nil {
		return nil, err
	}
	secure := b.o.TLS.Clone()
	secure.ServerName = remote.ServerName(c.Node)
	p := &pod{backend: b, claim: c}
	p.client, err = remote.New(remote.ClientOptions{Address: net.JoinHostPort(c.Address, strconv.Itoa(b.o.Port)),
		TLS: secure, Logs: b.o.Logs, Artifacts: b.o.Artifacts})
	if err != nil {
		return nil, errors.Join(err, p.releaseOnce())
	}
	return p, nil
}

// releaseTime is how long a release may take. fumehood-claims goes on by itself.
const releaseTime = 30 * time.Second

// releaseOnce gives the pod back, once; nil has nothing.
func (p *pod) releaseOnce() (err error) {
	if p == nil {
		return nil
	}
	p.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
		defer cancel()
		if p.client != nil {
			err = p.client.Close()
		}
		err = errors.Join(err, p.backend.o.Claims.Release(ctx, p.claim))
	})
	return err
}

// A session is one in a pod.
type session struct {
	gate.Session
	gate *podGate
	pod  *pod
}

// Close is gate.Session.Close, and releases the pod.
func (s *session) Close() (proposal.Report, error) {
	report, err := s.Session.Close()
	if h := s.gate.b.o.Health; h != nil {
		h.Ended()
	}
	return report, errors.Join(err, s.gate.forgetPod(s.pod))
}

func newStopError(code, message, hint string) error {
	return &proposal.StopError{Code: code, Message: message, Hint: hint}
}
