// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Options configure a Relay. Ask, Report and Roots must be set.
type Options struct {
	// Ask returns policy's answer about a hello or a request. An error refuses it.
	Ask func(context.Context, proposal.Egress) (proposal.EgressDecision, error)
	// Report receives every request, and every connection when it has ended. It must not
	// block for long.
	Report func(proposal.Flow)
	// Roots authenticate the certificates of upstream servers.
	Roots *x509.CertPool
	// CA signs for intercepted names; without it, interception is refused.
	CA          *CA
	Credentials []Credential
	// Scan returns what looks like a secret in a request, Redact replaces it. Without
	// them a request that policy wants filtered is refused.
	Scan   func(url string, header http.Header, body []byte) []proposal.EgressSecret
	Redact func(url string, header http.Header, body []byte) (string, http.Header, []byte)
	Limits Limits
}

// Limits bound a connection. A zero field means its default.
type Limits struct {
	Hello time.Duration // until the first bytes show the connection's purpose; for each head: 10 s
	Idle  time.Duration // without a byte in either direction: 2 min
	Total time.Duration // for a whole connection: 1 h
	// Run is the maximum number of bytes sent in the whole run, to all names: 256 MiB.
	Run proposal.Bytes
}

// A Target is the destination for which a connection was admitted.
type Target struct {
	// Egress is what policy was asked when the connection was admitted, of kind
	// EgressConnect. Later questions are derived from it.
	Egress proposal.Egress
	// Inside is the address that the program itself connected to, for the Flows.
	Inside string
	// Upstream is a connection to Egress.Address, if there is one already. Serve closes
	// it.
	Upstream net.Conn
	// Dial makes another connection to that address, and to no other.
	Dial func(context.Context) (net.Conn, error)
}

// A Relay serves the connections of one run. It may be used by many goroutines.
type Relay struct {
	options Options
	budgets budgets
}

// New returns a Relay, or an error if a required option is missing.
func New(o Options) (*Relay, error) {
	if o.Ask == nil || o.Report == nil || o.Roots == nil {
		return nil, errors.New("invalid relay options: Ask, Report and Roots must be set")
	}
	for _, c := range o.Credentials {
		if err := c.checkCredential(); err != nil {
			return nil, err
		}
	}
	o.Limits = o.Limits.withDefaults()
	return &Relay{options: o}, nil
}

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&l.Hello, 10 * time.Second}, {&l.Idle, 2 * time.Minute}, {&l.Total, time.Hour}} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	if l.Run <= 0 {
		l.Run = 256 * proposal.MiB
	}
	return l
}

// Serve serves client according to d, policy's decision about the connection, until it
// has ended and been reported; then both connections are closed. When ctx is done it is
// cut at once.
func (r *Relay) Serve(ctx context.Context, client net.Conn, t Target, d proposal.EgressDecision) {
	newSession(r, client, t, d).serveAndReport(ctx)
}
