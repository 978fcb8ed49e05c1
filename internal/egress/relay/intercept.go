// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"crypto/tls"
	"time"
)

// intercept terminates the program's TLS and serves the requests in it.
func (s *session) intercept(ctx context.Context) {
	_, raw, ok := s.readHello()
	if !ok {
		return
	}
	if s.relay.options.CA == nil {
		s.refuse(refusal{code: "intercept", message: "no CA is set that could sign for the host"})
		s.alert(alertInternal)
		return
	}
	s.client.unread(raw)
	conn := tls.Server(s.client, s.serverConfig())
	shaking, cancel := context.WithTimeout(ctx, s.relay.options.Limits.Hello)
	err := conn.HandshakeContext(shaking)
	cancel()
	if err != nil {
		s.end("intercept", "the program rejected the gateway's certificate: "+err.Error())
		s.drain()
		return
	}
	if conn.ConnectionState().NegotiatedProtocol == "h2" {
		s.serveHTTP(ctx, newFrames(conn), "https")
		return
	}
	s.serveHTTP(ctx, newStrict(conn, s.over), "https")
}

func (s *session) serverConfig() *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS12,
		NextProtos:             []string{"h2", "http/1.1"},
		SessionTicketsDisabled: true, // a ticket would outlive the decision
		Time:                   time.Now,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return s.relay.options.CA.leaf(s.name)
		},
	}
}

// clientConfig returns the TLS configuration for connections to the real host.
func (s *session) clientConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		RootCAs:    s.relay.options.Roots,
		ServerName: s.name,
	}
}
