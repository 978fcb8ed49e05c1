// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"net"

	"github.com/fumehood/fumehood/pkg/proposal"
)

type session struct {
	relay    *Relay
	client   net.Conn
	target   Target
	decision proposal.EgressDecision
}

func newSession(r *Relay, client net.Conn, t Target, d proposal.EgressDecision) *session {
	return &session{relay: r, client: client, target: t, decision: d}
}

// run refuses everything until the ways are built.
func (s *session) run(context.Context) {
	s.client.Close()
	if s.target.Upstream != nil {
		s.target.Upstream.Close()
	}
}
