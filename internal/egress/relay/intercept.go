// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"crypto/tls"
	"time"
)

// interceptTLS terminates the program's TLS and serves the requests in it.
func (s *session) interceptTLS(ctx context.Context) {
	_, raw, ok := s.readHello()
	if !ok {
		return
	}
	if s.relay.options.CA == nil {
		s.refuseConnection(refusal{code: "intercept", message: "no CA is set that could sign for the host"})
		s.sendAlert(alertInternal)
		return
	}
	s.client.unreadBytes(raw)
	conn := tls.Server(s.client, s.serverConfig())
	shaking, cancel := context.WithTimeout(ctx, s.relay.options.Limits.Hello)
	err := conn.HandshakeContext(shaking)
	cancel()
	if err != nil {
		s.recordEndReason("intercept", "the program rejected the gateway's certificate: "+err.Error())
		s.drainClient()
		return
	}
	if conn.ConnectionState().NegotiatedProtocol == "h2" {
		s.serveHTTP(ctx, newFrames(conn), "https")
		return
	}
	s.serveHTTP(ctx, newStrictReader(conn, s.over), "https")
}

func (s *session) serverConfig() *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS12,
		NextProtos:             []string{"h2", "http/1.1"},
		SessionTicketsDisabled: true, // a ticket would outlive the decision
		Time:                   time.Now,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return s.relay.options.CA.leafCertificate(s.name)
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
