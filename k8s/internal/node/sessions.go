// SPDX-License-Identifier: Apache-2.0

package node

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fumehood/fumehood/internal/agents/session/remote"
)

// Sessions configure the pods of this node that are sessions of fumehood serve.
type Sessions struct {
	// Port is where they answer, at the pod's address.
	Port int `toml:"port"`
	// Certificate and Key identify this node to clients, in PEM: see remote.ServerName.
	Certificate string `toml:"certificate"`
	Key         string `toml:"key"`
	// Clients has the certificates, in PEM, one of which has signed that of every client. It must be
	// used for nothing else: see remote.ClientName.
	Clients string `toml:"clients"`
	// Work is the directory for workspaces, outputs and what commands write.
	Work string `toml:"work"`
	// Disk is how many bytes one pod's part of Work may have: a pod with more ends.
	Disk int64 `toml:"disk"`
}

// TLS returns the configuration of a session's server in a namespace. Only clients whose
// certificate is for that namespace get through.
func (s Sessions) TLS(namespace string) (*tls.Config, error) {
	own, err := tls.LoadX509KeyPair(s.Certificate, s.Key)
	if err != nil {
		return nil, fmt.Errorf("sessions: certificate and key: %w", err)
	}
	text, err := os.ReadFile(s.Clients)
	if err != nil {
		return nil, fmt.Errorf("sessions: clients: %w", err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("sessions: clients: %s has no certificate", s.Clients)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAndVerifyClientCert,
		ClientCAs:              authorities,
		SessionTicketsDisabled: true,
		VerifyConnection: func(c tls.ConnectionState) error {
			if len(c.PeerCertificates) == 0 {
				return errors.New("the client has no certificate")
			}
			return c.PeerCertificates[0].VerifyHostname(remote.ClientName(namespace))
		},
	}, nil
}

// check returns what is wrong with s.
func (s *Sessions) check() error {
	if s == nil {
		return nil
	}
	for name, path := range map[string]string{"certificate": s.Certificate, "key": s.Key, "clients": s.Clients,
		"work": s.Work} {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("sessions: %s: %q is not an absolute path", name, path)
		}
	}
	if s.Port < 1 || s.Port > 65535 {
		return fmt.Errorf("sessions: port: %d is none", s.Port)
	}
	if s.Disk < 1 {
		return errors.New("sessions: disk: it must be positive")
	}
	return nil
}

// files returns the files that s names.
func (s *Sessions) files() []string {
	if s == nil {
		return nil
	}
	return []string{s.Certificate, s.Key, s.Clients}
}

// defaults sets what the file leaves out.
func (s *Sessions) defaults() {
	if s == nil {
		return
	}
	if s.Port == 0 {
		s.Port = 8443
	}
	if s.Work == "" {
		s.Work = "/var/lib/fumehood/sessions"
	}
	if s.Disk == 0 {
		s.Disk = 16 << 30
	}
}
