// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"crypto/rand"
	"net"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fumehood/fumehood/internal/agents/health"
	"github.com/fumehood/fumehood/internal/kit/localhttp"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// ServeStreamableHTTP serves clients at l by MCP's streamable HTTP until ctx ends. Then it drains: no call
// begins, those that run end within Options.Drain or are killed, and all logs are sealed.
// Options.Approver must be NoApprover.
func (s *Server) ServeStreamableHTTP(ctx context.Context, l net.Listener, tokens localhttp.Tokens) error {
	if s.o.Approver == Elicit {
		return &proposal.StopError{Code: "mcp.approver", Message: "clients over HTTP cannot approve",
			Hint: "use --approver none with --http"}
	}
	killed, kill := health.WithGrace(ctx, s.o.Drain)
	defer kill()
	s.setContext(killed)
	s.share = (s.o.MaxClients + len(tokens) - 1) / max(1, len(tokens))
	defer s.o.Metrics.Serve(s.serverStatus)()
	server := &http.Server{Handler: s.httpHandler(l.Addr().String(), tokens), ReadHeaderTimeout: 10 * time.Second,
		MaxHeaderBytes: localhttp.MaxHeader}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		s.drain.Wait(killed)
	}
	kill()
	s.endClients()
	health.Close(server)
	return err
}

// httpHandler checks, in this order, Host, Origin and token, and passes the rest to the SDK,
// which binds a session to the token that began it. Metrics and health need no token, so
// that what collects them has none: a token lets its holder run commands.
func (s *Server) httpHandler(addr string, tokens localhttp.Tokens) http.Handler {
	inner := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp }, &mcp.StreamableHTTPOptions{
		MaxRequestBodyBytes: maxFrame, SessionTimeout: gate.DefaultIdle,
	})
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		user := tokens.Find(token)
		if user.Name == "" {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{UserID: user.Name, Extra: map[string]any{tenantKey: user.Tenant},
			Expiration: time.Now().Add(time.Hour)}, nil
	}
	checked := auth.RequireBearerToken(verify, nil)(s.trackRequests(inner))
	if s.o.Metrics != nil {
		checked = s.o.Metrics.Mount(checked, s.serverStatus)
	}
	return localhttp.RefuseBrowserRequests(addr, checked)
}

// requestHeader identifies a request within this process. What a client sends is replaced.
const requestHeader = "Fumehood-Request"

// trackRequests makes a request's end known to the call that it carries: an answer that no
// client waits for cannot be delivered later. A request to end a session ends its calls first.
func (s *Server) trackRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := rand.Text()
		r.Header.Set(requestHeader, id)
		s.requests.Store(id, r.Context())
		defer s.requests.Delete(id)
		if r.Method == http.MethodPost {
			defer s.drain.Enter()()
		}
		if r.Method == http.MethodDelete {
			s.cancelSession(r.Header.Get("Mcp-Session-Id"), auth.TokenInfoFromContext(r.Context()).UserID)
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) cancelSession(id, user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ss, c := range s.clients {
		if ss.ID() == id && c.user.Name == user {
			c.cancel()
		}
	}
}

// requestOf returns the context of the HTTP request that carries a call; it has ended if
// the request has.
func (s *Server) requestOf(extra *mcp.RequestExtra) context.Context {
	if extra == nil || extra.Header.Get(requestHeader) == "" {
		return context.Background()
	}
	if ctx, there := s.requests.Load(extra.Header.Get(requestHeader)); there {
		return ctx.(context.Context)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	return ended
}

// tenantKey is where a token's description has its tenant.
const tenantKey = "tenant"

// userOf returns whose token a call came with.
func userOf(extra *mcp.RequestExtra) (user localhttp.User) {
	if extra != nil && extra.TokenInfo != nil {
		user.Name = extra.TokenInfo.UserID
		user.Tenant, _ = extra.TokenInfo.Extra[tenantKey].(string)
	}
	return user
}
