// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/semaphore"

	"github.com/fumehood/fumehood/internal/kit/localhttp"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A client is the state of one connection.
type client struct {
	server *Server
	user   localhttp.User  // over HTTP: whose token it has
	ctx    context.Context // ends when the connection does
	cancel context.CancelFunc

	mu       sync.Mutex
	gate     gate.Opener
	session  *session
	sessions int
	last     *endedSession // of the session before
	proposed int
	closed   bool
	asked    *questions
}

// A session is an open gate.Session with what the server keeps about it.
type session struct {
	gate.Session
	setup  *setup
	places *semaphore.Weighted // for commands that calls wait for

	mu        sync.Mutex
	used      bool                       // a call has ended that may have left files in the sandbox
	printed   string                     // the last line of a running command
	outputs   map[string]proposal.Stream // by the name in their resource's URI
	names     []string                   // the keys of outputs, oldest first
	processes []*process                 // oldest first
}

func newSession(inner gate.Session, notes []string) *session {
	return &session{Session: inner, setup: &setup{notes: notes}, places: semaphore.NewWeighted(maxBeside),
		outputs: map[string]proposal.Stream{}}
}

// isUsed reports whether calls that have ended, or the set-up, may have left files in the sandbox.
func (s *session) isUsed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used || s.setup.hasRun()
}

func (s *session) markUsed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = true
}

// withLastLine returns a context whose command's last line progress notifications show.
func (s *session) withLastLine(ctx context.Context) context.Context {
	s.setLastLine("")
	return gate.WithOutput(ctx, func(c proposal.Chunk) {
		lines := strings.FieldsFunc(string(c.Data), func(r rune) bool { return r == '\n' || r == '\r' })
		if len(lines) > 0 {
			s.setLastLine(lines[len(lines)-1])
		}
	})
}

func (s *session) setLastLine(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.printed = line
}

// describeCommand says what the running command does.
func (s *session) describeCommand() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.printed == "" {
		return "running"
	}
	return "running: " + text.Inline(s.printed, 100)
}

// An endedSession session is what the resources still show of it.
type endedSession struct {
	report proposal.Report
	log    string
}

func newClient(s *Server, user localhttp.User) *client {
	c := &client{server: s, user: user, asked: newQuestions()}
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	return c
}

// boundToConnection returns ctx so that it also ends with the connection and, over HTTP, with the
// request that is waiting for the answer.
func (c *client) boundToConnection(ctx context.Context, extra *mcp.RequestExtra) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.ctx, cancel)
	stopRequest := context.AfterFunc(c.server.requestOf(extra), cancel)
	return ctx, func() { stop(); stopRequest(); cancel() }
}

var errGone = &proposal.StopError{Code: "mcp.closed", Message: "the connection is closed", Hint: "connect again"}

// ensureGate returns the client's gate, which it makes if there is none.
func (c *client) ensureGate() (gate.Opener, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gateLocked()
}

func (c *client) gateLocked() (gate.Opener, error) {
	if c.closed {
		return nil, errGone
	}
	if c.gate != nil {
		return c.gate, nil
	}
	begin := time.Now()
	g, err := c.server.o.Gate(c.ctx, c.user.Tenant)
	if err == nil {
		c.gate = g
	} else if m := c.server.o.Metrics; m != nil {
		m.Started(time.Since(begin), errors.Join(err, c.ctx.Err()))
	}
	return g, err
}

// ensureSession returns the client's session, and begins one if there is none or it has ended.
func (c *client) ensureSession(req *mcp.CallToolRequest) (*session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var lost []string
	if c.session != nil {
		select {
		case <-c.session.Done():
			_, _ = c.endLocked()
			lost = []string{"the session before this one ended, because no call came for too long or for the reason in its report: its files are lost"}
		default:
			return c.session, nil
		}
	}
	requested := time.Now()
	g, err := c.gateLocked()
	if err != nil {
		return nil, err
	}
	// The end of the connection ends calls, and close then seals the log: it is not an
	// interruption of the session.
	inner, err := g.Open(context.WithoutCancel(c.ctx),
		gate.SessionOptions{Network: c.server.o.Network, Proposer: clientName(req), Requested: requested})
	if err != nil {
		return nil, err
	}
	c.sessions++
	c.session = newSession(inner, lost)
	return c.session, nil
}

// clientName returns the name and version that the client gives itself, for people.
func clientName(req *mcp.CallToolRequest) string {
	info := req.ClientInfo()
	if info == nil || info.Name == "" {
		return "MCP client without a name"
	}
	return "MCP client " + text.Inline(info.Name+" "+info.Version, 100)
}

// nextID returns the id of the next proposal: c1, c2 and so on.
func (c *client) nextID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.proposed++
	return fmt.Sprintf("c%d", c.proposed)
}

// sealSession seals the open session and returns what is known of it; nil if there is none.
func (c *client) sealSession() (*endedSession, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endLocked()
}

func (c *client) endLocked() (*endedSession, error) {
	if c.session == nil {
		return nil, nil
	}
	report, err := c.session.Close()
	if c.server.o.Ended != nil {
		c.server.o.Ended(report, err)
	}
	c.last = &endedSession{report, c.session.Log()}
	c.session = nil
	return c.last, err
}

// close ends the client.
func (c *client) close() {
	c.cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.endLocked()
	c.closed = true
	if c.gate != nil {
		_ = c.gate.Close()
	}
}
