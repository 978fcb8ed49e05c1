// SPDX-License-Identifier: Apache-2.0

//go:build linux

package mcpserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	minToken  = 32 // characters
	maxTokens = 100
	maxHeader = 64 << 10
)

// Tokens are the bearer tokens that clients of the HTTP server must present one of, as
// digests.
type Tokens [][sha256.Size]byte

// ReadTokens reads a file with one token of at least 32 characters a line. A file that other
// users can read is refused. Its error is a *proposal.StopError.
func ReadTokens(name string) (tokens Tokens, err error) {
	refuse := func(message string, err error) (Tokens, error) {
		return nil, &proposal.StopError{Code: "mcp.token", Message: fmt.Sprintf("cannot use the token file %q: %s", name, message),
			Hint: "write a token of at least 32 random characters, for example: (umask 077; openssl rand -hex 32 > FILE)", Err: err}
	}
	info, err := os.Stat(name)
	if err != nil {
		return refuse("it cannot be read", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return refuse("other users can read or write it", nil)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return refuse("it cannot be read", err)
	}
	for line := range bytes.Lines(data) {
		token := bytes.TrimSpace(line)
		if len(token) == 0 {
			continue
		}
		if len(token) < minToken || bytes.ContainsAny(token, " \t") || len(tokens) == maxTokens {
			return refuse(fmt.Sprintf("a token is shorter than %d characters or has a space, or there are more than %d", minToken, maxTokens), nil)
		}
		tokens = append(tokens, sha256.Sum256(token))
	}
	if len(tokens) == 0 {
		return refuse("it has no token", nil)
	}
	return tokens, nil
}

// find returns which token is given, in constant time, or "".
func (t Tokens) find(token string) (user string) {
	given := sha256.Sum256([]byte(token))
	for _, known := range t {
		if subtle.ConstantTimeCompare(given[:], known[:]) == 1 {
			user = hex.EncodeToString(known[:8])
		}
	}
	return user
}

// Listen listens on addr, HOST:PORT, which must be an address of the loopback interface.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	refuse := func(message string, err error) (net.Listener, error) {
		return nil, &proposal.StopError{Code: "mcp.address", Message: fmt.Sprintf("cannot listen on %q: %s", addr, message),
			Hint: "use a loopback address, for example 127.0.0.1:8931; for other hosts, forward the port with ssh -L", Err: err}
	}
	parsed, err := netip.ParseAddrPort(addr)
	if err != nil || !parsed.Addr().IsLoopback() {
		return refuse("not an address and port of the loopback interface", nil)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return refuse("it is not available", err)
	}
	return l, nil
}

// HTTP serves clients at l by MCP's streamable HTTP until ctx ends; then what they run is
// killed and their logs are sealed. Options.Approver must be NoApprover.
func (s *Server) HTTP(ctx context.Context, l net.Listener, tokens Tokens) error {
	if s.o.Approver == Elicit {
		return &proposal.StopError{Code: "mcp.approver", Message: "clients over HTTP cannot approve", Hint: "use --approver none with --http"}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.begin(ctx)
	server := &http.Server{Handler: s.handler(l.Addr().String(), tokens), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: maxHeader}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	err := server.Serve(l)
	cancel()
	s.end()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// handler checks, in this order, Host, Origin and token, and passes the rest to the SDK,
// which binds a session to the token that began it.
func (s *Server) handler(addr string, tokens Tokens) http.Handler {
	inner := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp }, &mcp.StreamableHTTPOptions{
		MaxRequestBodyBytes: maxFrame, SessionTimeout: gate.DefaultIdle,
	})
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		user := tokens.find(token)
		if user == "" {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{UserID: user, Expiration: time.Now().Add(time.Hour)}, nil
	}
	return local(addr, auth.RequireBearerToken(verify, nil)(s.tracked(inner)))
}

// requestHeader identifies a request within this process. What a client sends is replaced.
const requestHeader = "Fumehood-Request"

// tracked makes a request's end known to the call that it carries: an answer that no
// client waits for cannot be delivered later. A request to end a session ends its calls first.
func (s *Server) tracked(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := rand.Text()
		r.Header.Set(requestHeader, id)
		s.requests.Store(id, r.Context())
		defer s.requests.Delete(id)
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
		if ss.ID() == id && c.user == user {
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

// userOf returns which token a call came with, or "".
func userOf(extra *mcp.RequestExtra) string {
	if extra == nil || extra.TokenInfo == nil {
		return ""
	}
	return extra.TokenInfo.UserID
}

// local refuses requests that a web page has caused: those for another host (DNS
// rebinding), and those from an origin other than this server.
func local(addr string, next http.Handler) http.Handler {
	_, port, _ := net.SplitHostPort(addr)
	hosts := map[string]bool{addr: true, "localhost:" + port: true, "127.0.0.1:" + port: true, "[::1]:" + port: true}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origins := r.Header.Values("Origin")
		host, plain := "", true
		if len(origins) == 1 {
			host, plain = strings.CutPrefix(origins[0], "http://")
		}
		switch {
		case !hosts[r.Host]:
			http.Error(w, "fumehood: the Host header is not this server's", http.StatusForbidden)
		case len(origins) > 1 || len(origins) == 1 && (!plain || !hosts[host]):
			http.Error(w, "fumehood: requests from other origins are refused", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
