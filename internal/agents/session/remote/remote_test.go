// SPDX-License-Identifier: Apache-2.0

package remote_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/agents/session/conformance"
	"github.com/fumehood/fumehood/internal/agents/session/remote"
	"github.com/fumehood/fumehood/internal/agents/session/remote/certtest"
	"github.com/fumehood/fumehood/internal/kit/peer"
	"github.com/fumehood/fumehood/internal/sandbox/install/installtest"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func TestMain(m *testing.M) { conformance.Main(m) }

// server is the configuration of a node that accepts the clients of a.
func server(t testing.TB, a certtest.Authority) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{a.NewLeaf(t, "node")}, ClientCAs: a.Pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
		VerifyConnection: func(c tls.ConnectionState) error { return c.PeerCertificates[0].VerifyHostname("serve") }}
}

// client is the configuration of a client with a name, which trusts the nodes of a.
func client(t testing.TB, a certtest.Authority, name string) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{a.NewLeaf(t, name)}, RootCAs: a.Pool, ServerName: "node"}
}

// A node is a server with a real gate.
type node struct {
	certtest.Authority
	address string
	stop    context.CancelFunc
	served  chan error
	reports chan proposal.Report
}

func newGate(t testing.TB) *gate.Gate {
	t.Helper()
	installtest.Runsc(t)
	g, err := gate.New(t.Context(), gate.Options{Workspace: t.TempDir(), Policies: []gate.Policy{conformance.RequiredPolicy()}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func newNode(t testing.TB) *node {
	t.Helper()
	g := newGate(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &node{Authority: certtest.NewAuthority(t), address: l.Addr().String(), served: make(chan error, 1), reports: make(chan proposal.Report, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	n.stop = cancel
	config := server(t, n.Authority)
	go func() {
		n.served <- remote.Serve(ctx, l, remote.Options{Gate: g, TLS: config, Absent: 5 * time.Second, Ended: func(r proposal.Report, _ error) { n.reports <- r }})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-n.served; err != nil {
			t.Error(err)
		}
		_ = g.Close()
	})
	return n
}

func (n *node) connect(t testing.TB, config *tls.Config) *remote.Client {
	t.Helper()
	c, err := remote.New(remote.ClientOptions{Address: n.address, TLS: config, Logs: t.TempDir(), Artifacts: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What does not depend on the transport is tested in the end-to-end lane.
func TestConformance(t *testing.T) { conformance.RunTransport(t, openRemote) }

func openRemote(t *testing.T) gate.Opener {
	t.Parallel()
	n := newNode(t)
	return n.connect(t, client(t, n.Authority, "serve"))
}

func TestLocalConformance(t *testing.T) { conformance.RunTransport(t, openLocal) }

func openLocal(t *testing.T) gate.Opener {
	t.Parallel()
	return localOpener{newGate(t), t}
}

// A localOpener serves the session of its gate on a unix socket, and opens it there.
type localOpener struct {
	*gate.Gate
	t testing.TB
}

func (o localOpener) Open(ctx context.Context, so gate.SessionOptions) (gate.Session, error) {
	inner, err := o.Gate.Open(ctx, so)
	if err != nil {
		return nil, err
	}
	address := &net.UnixAddr{Name: filepath.Join(o.t.TempDir(), "socket"), Net: "unix"}
	l, err := net.ListenUnix("unix", address)
	if err != nil {
		return nil, err
	}
	served := make(chan error, 1)
	go func() {
		served <- remote.ServeLocal(context.WithoutCancel(ctx), peer.Listener{UnixListener: l}, remote.LocalOptions{Session: inner,
			Describe: func() any { return inner.ID() }, Ended: func(proposal.Report, error) {}})
	}()
	o.t.Cleanup(func() {
		if err := <-served; err != nil {
			o.t.Error(err)
		}
	})
	var id string
	s, err := remote.Attach(ctx, remote.AttachOptions{Description: &id, Lost: func(err error) error { return err },
		Dial: func(context.Context) (net.Conn, error) { return net.DialUnix("unix", nil, address) }})
	if err == nil && id != inner.ID() {
		o.t.Errorf("it is described as %q", id)
	}
	return s, err
}

// BenchmarkDo compares a command of a session in this process with those over the wire.
func BenchmarkDo(b *testing.B) {
	for name, open := range map[string]func(*testing.B) gate.Opener{
		"in process": func(b *testing.B) gate.Opener { return newGate(b) }, "unix": func(b *testing.B) gate.Opener { return localOpener{newGate(b), b} },
		"mutual TLS": func(b *testing.B) gate.Opener { n := newNode(b); return n.connect(b, client(b, n.Authority, "serve")) },
	} {
		b.Run(name, func(b *testing.B) {
			g := open(b)
			s, err := g.Open(b.Context(), gate.SessionOptions{})
			if err != nil {
				b.Fatal(err)
			}
			for i := 0; b.Loop(); i++ {
				if _, err := s.Do(b.Context(), proposal.Proposal{ID: fmt.Sprint("p", i), Argv: []string{"true"}}); err != nil {
					b.Fatal(err)
				}
			}
			if _, err := s.Close(); err != nil {
				b.Error(err)
			}
			_ = g.Close()
		})
	}
}
