// SPDX-License-Identifier: Apache-2.0

package names

import (
	"context"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Options are what a Server needs; all fields but Rate must be set.
type Options struct {
	Pool *Pool
	// Ask asks policy. The Server fills Kind, Name, Type and Protocol.
	Ask func(context.Context, proposal.Egress) (proposal.EgressDecision, error)
	// Find finds the name outside, as Resolver.Resolve does: a name that is nowhere, or
	// where it must not be, is not there inside either.
	Find func(ctx context.Context, name string, private bool) error
	// Tell is told what became of each look-up.
	Tell func(proposal.Flow)
	// Rate is how many messages a second are answered; 0 is DefaultRate. What is more
	// is answered with a failure, and told as one Flow a second.
	Rate int
}

// A Server answers DNS messages. It is used by many goroutines at once.
type Server struct {
	o Options
}

// NewServer returns a Server.
func NewServer(o Options) (*Server, error) {
	return &Server{o: o}, nil
}

// Query answers one message, of UDP or of TCP without its length. nil is no answer:
// what came was no question. An answer has at most 512 bytes.
func (s *Server) Query(ctx context.Context, message []byte) []byte {
	return nil
}
