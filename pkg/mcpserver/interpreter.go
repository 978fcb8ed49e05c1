// SPDX-License-Identifier: Apache-2.0

//go:build linux

package mcpserver

import (
	"context"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// An Interpreter runs the snippets of one session with state that lasts from one to the
// next. Its methods are safe for concurrent use.
type Interpreter interface {
	// Run decides, records and runs one snippet. Denied, failed and killed are values in the
	// Record, as for gate.Session.Do; if ctx ends, the snippet is interrupted. Displays are
	// results other than text.
	Run(ctx context.Context, c Cell) (proposal.Record, []Display, error)
}

// A Cell is one snippet.
type Cell struct {
	// Context names the state that the snippet uses and leaves; "" is the default one.
	Context string
	// Proposal has Code and Language.
	Proposal proposal.Proposal
	// Approval is set if the client has approved the snippet: see gate.Session.DoApproved.
	Approval *proposal.ClientApproval
}

// A Display is one rich result of a snippet.
type Display struct {
	MIME string // "image/png", "text/html" and so on
	Data []byte // not encoded; untrusted
}

// stateless runs each snippet as a command of its own.
type stateless struct{ Session }

func (s stateless) Run(ctx context.Context, c Cell) (proposal.Record, []Display, error) {
	if c.Context != "" {
		return proposal.Record{}, nil, &proposal.StopError{Code: "mcp.context", Message: "unsupported: context", Hint: "omit it: each snippet runs in a new interpreter, and files persist"}
	}
	r, err := attempt(ctx, s.Session, c.Proposal, c.Approval)
	return r, nil, err
}

// attempt is Do, or DoApproved if there is an approval.
func attempt(ctx context.Context, s Session, p proposal.Proposal, a *proposal.ClientApproval) (proposal.Record, error) {
	if a == nil {
		return s.Do(ctx, p)
	}
	return s.DoApproved(ctx, p, *a)
}
