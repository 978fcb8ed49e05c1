// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"fmt"

	"github.com/fumehood/fumehood/internal/agents/health"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var errDraining = &proposal.StopError{Code: "mcp.draining", Message: "the server is shutting down and begins no call",
	Hint: "connect again when it has been restarted"}

// serverStatus says whether the server takes new sessions.
func (s *Server) serverStatus() health.Status {
	s.mu.Lock()
	clients := len(s.clients)
	s.mu.Unlock()
	switch {
	case s.drain.HasBegun():
		return health.DrainingStatus()
	case clients >= s.o.MaxClients:
		return health.Status{Status: health.StatusNotReady,
			Reason: fmt.Sprintf("the server has its maximum of %d clients", clients)}
	}
	return health.Status{Status: health.StatusReady}
}
