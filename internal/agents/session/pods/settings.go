// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/fumehood/fumehood/internal/agents/claims"
	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Settings are a Backend's as the command line has them.
type Settings struct {
	// Socket is that of fumehood-claims.
	Socket string
	// Certificates is a directory with tls.crt, tls.key and ca.crt, as Kubernetes mounts a secret of
	// the type kubernetes.io/tls. Other users must not be able to change it, or to read the key.
	Certificates string
	Port         int
	Tenant       string
}

// Open returns a Backend whose pods end after lifetime or ctx, and whose sessions h counts, if it is
// not nil. Logs are in the user's state directory. Its error is a *proposal.StopError.
func (s Settings) Open(ctx context.Context, lifetime time.Duration, h gate.Health) (*Backend, error) {
	secure, err := s.readTLSConfig()
	if err != nil {
		return nil, &proposal.StopError{Code: "pods.certificates",
			Message: "cannot use the certificates for sessions in " + s.Certificates,
			Hint:    "put tls.crt, tls.key and ca.crt there, readable by this user alone", Err: err}
	}
	home, err := process.StateHome()
	if err != nil {
		return nil, err
	}
	o := Options{Claims: claims.New(ctx, s.Socket), TLS: secure, Port: s.Port, Lifetime: lifetime, Tenant: s.Tenant,
		Logs: filepath.Join(home, "fumehood", "pods"), Artifacts: filepath.Join(home, "fumehood", "pods", "artifacts"),
		Health: h}
	if err := os.MkdirAll(o.Artifacts, 0o700); err != nil {
		return nil, &proposal.StopError{Code: "pods.logs", Message: "cannot make the directory for logs",
			Hint: "make room in the user's state directory", Err: err}
	}
	return New(o)
}

// readTLSConfig reads the certificates.
func (s Settings) readTLSConfig() (*tls.Config, error) {
	key := filepath.Join(s.Certificates, "tls.key")
	if err := process.CheckPrivate(key, os.Geteuid()); err != nil {
		return nil, err
	}
	own, err := tls.LoadX509KeyPair(filepath.Join(s.Certificates, "tls.crt"), key)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(s.Certificates, "ca.crt"))
	if err != nil {
		return nil, err
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(text) {
		return nil, errors.New("ca.crt has no certificate")
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own}, RootCAs: authorities}, nil
}
