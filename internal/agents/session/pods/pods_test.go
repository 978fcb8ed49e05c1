// SPDX-License-Identifier: Apache-2.0

package pods_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/agents/claims"
	"github.com/fumehood/fumehood/internal/agents/session/conformance"
	"github.com/fumehood/fumehood/internal/agents/session/pods"
	"github.com/fumehood/fumehood/internal/agents/session/remote"
	"github.com/fumehood/fumehood/internal/agents/session/remote/certtest"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/sandbox/install/installtest"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A cluster is fumehood-claims and its nodes in this process: its pods are gates, each at a
// loopback address of its own.
type cluster struct {
	t              *testing.T
	nodes, clients certtest.Authority
	port           int
	wrongNode      bool // pods have the certificate of another node

	mu   sync.Mutex
	made int
	pods map[string]func() // that are claimed: what ends them
}

const node = "node-1"

func TestMain(m *testing.M) { conformance.Main(m) }

func newCluster(t *testing.T) *cluster {
	t.Helper()
	installtest.Runsc(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() }) // while it is open, no other cluster has the port
	return &cluster{t: t, nodes: certtest.NewAuthority(t), clients: certtest.NewAuthority(t), port: l.Addr().(*net.TCPAddr).Port, pods: map[string]func(){}}
}

// backend returns a Backend whose claims the cluster answers.
func (c *cluster) backend() *pods.Backend {
	c.t.Helper()
	socket := filepath.Join(c.t.TempDir(), "claims.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		c.t.Fatal(err)
	}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /holders/{holder}", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	routes.HandleFunc("PUT /holders/{holder}/claims/{request}", c.claim)
	routes.HandleFunc("DELETE /claims/{namespace}/{name}", func(_ http.ResponseWriter, r *http.Request) { c.release(r.PathValue("name")) })
	server := &http.Server{Handler: routes}
	go func() { _ = server.Serve(l) }()
	c.t.Cleanup(func() { server.Close() })
	b, err := pods.New(pods.Options{Claims: claims.New(c.t.Context(), socket), Port: c.port, Lifetime: time.Hour, Tenant: "team-a", Logs: c.t.TempDir(), Artifacts: c.t.TempDir(),
		TLS: &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: c.nodes.Pool, Certificates: []tls.Certificate{c.clients.NewLeaf(c.t, remote.ClientName("team-a"))}}})
	if err != nil {
		c.t.Fatal(err)
	}
	return b
}

func (c *cluster) claim(w http.ResponseWriter, r *http.Request) {
	var in claims.Request
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Tenant != "team-a" || in.Lifetime != time.Hour {
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(proposal.Failure{Code: "claims.tenant", Message: "there is no tenant " + in.Tenant})
		return
	}
	c.mu.Lock()
	c.made++
	name, address := fmt.Sprintf("claim-%d", c.made), fmt.Sprintf("127.0.0.%d", c.made+1)
	c.mu.Unlock()
	end, err := c.pod(address)
	if err != nil {
		c.t.Error(err)
	}
	c.mu.Lock()
	c.pods[name] = end
	c.mu.Unlock()
	_ = json.NewEncoder(w).Encode(map[string]string{"name": name, "namespace": in.Tenant, "address": address, "node": node})
}

func (c *cluster) release(name string) {
	c.mu.Lock()
	end := c.pods[name]
	delete(c.pods, name)
	c.mu.Unlock()
	if end == nil {
		c.t.Errorf("%s is released twice, or was never claimed", name)
		return
	}
	end()
}

// claimed returns how many pods are, and how many were made.
func (c *cluster) claimed() (now, ever int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pods), c.made
}

// pod serves a session as a node would, until it is ended.
func (c *cluster) pod(address string) (end func(), err error) {
	g, err := gate.New(context.Background(), gate.Options{Workspace: c.t.TempDir(), Policies: []gate.Policy{conformance.RequiredPolicy()}})
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", address, c.port))
	if err != nil {
		return nil, err
	}
	name := node
	if c.wrongNode {
		name = "node-2"
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = remote.Serve(ctx, l, remote.Options{Gate: g, Ended: func(proposal.Report, error) {}, TLS: &tls.Config{
			MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: c.clients.Pool,
			Certificates: []tls.Certificate{c.nodes.NewLeaf(c.t, remote.ServerName(name))},
			VerifyConnection: func(s tls.ConnectionState) error {
				return s.PeerCertificates[0].VerifyHostname(remote.ClientName("team-a"))
			},
		}})
	}()
	return func() { cancel(); <-done; _ = l.Close(); _ = g.Close() }, nil
}

func (c *cluster) gate() gate.Opener {
	c.t.Helper()
	g, err := c.backend().NewGate(c.t.Context(), "")
	if err != nil {
		c.t.Fatal(err)
	}
	return g
}

// Sessions in claimed pods do what those on this host do, and all claims are released.
// What does not depend on the transport is tested in the end-to-end lane.
func TestConformance(t *testing.T) { conformance.RunTransport(t, openPod) }

func openPod(t *testing.T) gate.Opener {
	t.Parallel()
	c := newCluster(t)
	t.Cleanup(func() {
		if now, ever := c.claimed(); now != 0 || ever == 0 {
			t.Errorf("%d of %d claims are left", now, ever)
		}
	})
	return c.gate()
}

// A client that begins again after a session gets another pod.
func TestEachSessionItsPod(t *testing.T) {
	lanetest.SkipShort(t)
	c := newCluster(t)
	g := c.gate()
	for range 2 {
		s, err := g.Open(t.Context(), gate.SessionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Open(t.Context(), gate.SessionOptions{}); err == nil {
			t.Error("two sessions in one pod")
		}
		if _, err := s.Close(); err != nil {
			t.Error(err)
		}
		if now, _ := c.claimed(); now != 0 {
			t.Errorf("%d claims after the session", now)
		}
	}
	if _, ever := c.claimed(); ever != 2 {
		t.Errorf("%d pods, want 2", ever)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if _, err := g.Open(t.Context(), gate.SessionOptions{}); err == nil {
		t.Error("opened with a gate that is closed")
	}
}

// What is at the pod's address must be the node that Kubernetes names.
func TestWrongNode(t *testing.T) {
	c := newCluster(t)
	c.wrongNode = true
	g := c.gate()
	if _, err := g.Open(t.Context(), gate.SessionOptions{}); err == nil || !strings.Contains(err.Error(), "node-2") {
		t.Errorf("error %v", err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if now, ever := c.claimed(); now != 0 || ever != 1 {
		t.Errorf("%d of %d claims are left", now, ever)
	}
}

// A tenant without a template, and a client without a tenant, get nothing.
func TestTenants(t *testing.T) {
	c := newCluster(t)
	g, err := c.backend().NewGate(t.Context(), "team-b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Check(t.Context(), proposal.Plan{}); proposal.FailureOf(err) == nil || proposal.FailureOf(err).Code != "claims.tenant" {
		t.Errorf("error %v", err)
	}
	b, err := pods.New(pods.Options{Claims: claims.New(t.Context(), "none"), Port: 1, Lifetime: 1, Logs: "x", Artifacts: "x", TLS: &tls.Config{RootCAs: x509.NewCertPool(), Certificates: make([]tls.Certificate, 1)}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.NewGate(t.Context(), ""); proposal.FailureOf(err) == nil || proposal.FailureOf(err).Code != "pods.tenant" {
		t.Errorf("error %v", err)
	}
}

// No option that is left out means that anything goes.
func TestOptions(t *testing.T) {
	whole := pods.Options{Claims: claims.New(t.Context(), "none"), Port: 1, Lifetime: 1, Logs: "x", Artifacts: "x", TLS: &tls.Config{RootCAs: x509.NewCertPool(), Certificates: make([]tls.Certificate, 1)}}
	for what, change := range map[string]func(*pods.Options){
		"no TLS": func(o *pods.Options) { o.TLS = nil }, "no authorities": func(o *pods.Options) { o.TLS = &tls.Config{Certificates: o.TLS.Certificates} },
		"no certificate": func(o *pods.Options) { o.TLS = &tls.Config{RootCAs: o.TLS.RootCAs} }, "no port": func(o *pods.Options) { o.Port = 0 },
		"no lifetime": func(o *pods.Options) { o.Lifetime = 0 }, "no logs": func(o *pods.Options) { o.Logs = "" },
	} {
		o := whole
		change(&o)
		if _, err := pods.New(o); proposal.FailureOf(err) == nil || proposal.FailureOf(err).Code != "pods.options" {
			t.Errorf("%s: %v", what, err)
		}
	}
}
