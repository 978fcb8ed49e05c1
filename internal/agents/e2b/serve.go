// SPDX-License-Identifier: Apache-2.0

package e2b

import (
	"context"
	"net"

	"github.com/fumehood/fumehood/internal/kit/localhttp"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An Endpoint is where a Server listens, and who may use it.
type Endpoint struct {
	Addr     string // HOST:PORT of the loopback interface
	KeysFile string // one API key of at least 32 characters a line; only its owner may read it
	Tenants  bool   // a key may be followed by tenant=NAME: see Options.Gate
	listener net.Listener
	keys     localhttp.Tokens
}

// Open reads the keys and listens, so that what is wrong with them is an error before there is
// a Server. Its error is a *proposal.StopError (e2b.keys, e2b.address).
func (e *Endpoint) Open(ctx context.Context) (err error) {
	if e.keys, err = localhttp.ReadTokens(e.KeysFile, "e2b.keys", e.Tenants); err != nil {
		return err
	}
	e.listener, err = localhttp.ListenLoopback(ctx, e.Addr, "e2b.address")
	return err
}

// URL is the address that clients use, after Open.
func (e *Endpoint) URL() string { return "http://" + e.listener.Addr().String() }

// Serve serves clients until ctx ends: see Server.ServeClients. e must be open.
func (e *Endpoint) Serve(ctx context.Context, o Options) error {
	if err := o.checkLimits(); err != nil {
		_ = e.listener.Close()
		return err
	}
	return New(o).ServeClients(ctx, e.listener, e.keys)
}

// checkLimits refuses options with which no client could have a sandbox.
func (o Options) checkLimits() error {
	refuse := func(message, hint string) error {
		return &proposal.StopError{Code: "e2b.options", Message: message, Hint: hint}
	}
	if min(o.Quota.Sandboxes, o.Sandboxes) < 0 || min(o.Memory, o.Quota.Memory) < 0 ||
		min(o.Timeout, o.MaxTimeout, o.Quota.Time) < 0 {
		return refuse("a limit of the server is negative", "use positive limits")
	}
	d := o.withDefaults()
	switch {
	case d.Memory > d.Quota.Memory:
		return refuse("one sandbox has more memory than all sandboxes of a key together",
			"lower the memory of a sandbox, or raise that of a key")
	case d.Timeout > d.MaxTimeout:
		return refuse("a sandbox's time-out is longer than its maximum", "lower the time-out, or raise its maximum")
	}
	return nil
}
