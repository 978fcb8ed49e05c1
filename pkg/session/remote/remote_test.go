// SPDX-License-Identifier: Apache-2.0

//go:build linux

package remote_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"os"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/mcpserver"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/sandbox/install/installtest"
	"github.com/fumehood/fumehood/pkg/session/conformance"
	"github.com/fumehood/fumehood/pkg/session/remote"
)

var _ mcpserver.Session = (*remote.Session)(nil)

func TestMain(m *testing.M) {
	if code, is := gate.Helper(); is {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// An authority issues certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool()}
	a.key = newKey(t)
	form := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, form, form, &a.key.PublicKey, a.key)
	if err == nil {
		a.cert, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.cert)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *authority) issue(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key := newKey(t)
	form := &x509.Certificate{SerialNumber: big.NewInt(2), DNSNames: []string{name}, Subject: pkix.Name{CommonName: name}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, form, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (a *authority) server(t *testing.T) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{a.issue(t, "node")}, ClientCAs: a.pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
		VerifyConnection: func(c tls.ConnectionState) error {
			if c.PeerCertificates[0].Subject.CommonName != "serve" {
				return errors.New("another name")
			}
			return nil
		}}
}

func (a *authority) client(t *testing.T, name string) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{a.issue(t, name)}, RootCAs: a.pool, ServerName: "node"}
}

// A node is a server with a real gate.
type node struct {
	*authority
	address string
	stop    context.CancelFunc
	served  chan error
	reports chan proposal.Report
}

func newNode(t *testing.T) *node {
	t.Helper()
	installtest.Runsc(t)
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	g, err := gate.New(t.Context(), gate.Options{Workspace: t.TempDir(), Policies: []gate.Policy{{Layer: conformance.Policy()}}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &node{authority: newAuthority(t), address: l.Addr().String(), served: make(chan error, 1), reports: make(chan proposal.Report, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	n.stop = cancel
	config := n.server(t)
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

func (n *node) connect(t *testing.T, config *tls.Config) *remote.Client {
	t.Helper()
	c, err := remote.New(remote.ClientOptions{Address: n.address, TLS: config, Logs: t.TempDir(), Artifacts: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type remoteGate struct{ *remote.Client }

func (g remoteGate) Open(ctx context.Context, o gate.SessionOptions) (conformance.Session, error) {
	s, err := g.Client.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return remoteSession{s}, nil
}

type remoteSession struct{ *remote.Session }

func (s remoteSession) Start(ctx context.Context, p proposal.Proposal) (conformance.Process, error) {
	x, err := s.Session.Start(ctx, p)
	if err != nil {
		return nil, err
	}
	return x, nil
}

func TestConformance(t *testing.T) {
	conformance.Run(t, func(t *testing.T) conformance.Gate {
		n := newNode(t)
		return remoteGate{n.connect(t, n.client(t, "serve"))}
	})
}
