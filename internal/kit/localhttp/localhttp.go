// SPDX-License-Identifier: Apache-2.0

// Package localhttp is what HTTP servers on the loopback interface share: tokens from a
// file, the listener, and the refusal of requests that a web page has caused.
package localhttp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// MaxHeader is the maximum size of a request's headers in bytes.
const MaxHeader = 64 << 10

const (
	minToken  = 32 // characters
	maxTokens = 100
)

// Tokens are the tokens that clients must present one of.
type Tokens []knownToken

type knownToken struct {
	digest [sha256.Size]byte
	tenant string
}

// tenantName is that of a Kubernetes namespace: a DNS label (RFC 1123).
var tenantName = pattern.New(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// A User is whose token a client has presented. The zero User is that of no token.
type User struct {
	Name   string // of the token
	Tenant string // that the file names beside the token, or ""
}

// ReadTokens reads a file with one token of at least 32 characters a line, which may be followed by
// a space and tenant=NAME if tenants is true. A file that other users can read is refused. Its
// error is a *proposal.StopError with the given code.
func ReadTokens(name, code string, tenants bool) (tokens Tokens, err error) {
	refuse := func(message string, err error) (Tokens, error) {
		return nil, &proposal.StopError{Code: code,
			Message: fmt.Sprintf("cannot use the token file %q: %s", name, message),
			Hint:    "write a token of at least 32 random characters, for example: (umask 077; openssl rand -hex 32 > FILE)", Err: err}
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
		text, tenant, named := bytes.Cut(bytes.TrimSpace(line), []byte(" tenant="))
		if len(text) == 0 {
			continue
		}
		if len(text) < minToken || bytes.ContainsAny(text, " \t") || len(tokens) == maxTokens {
			return refuse(fmt.Sprintf("a token is shorter than %d characters or has a space, or there are more than %d",
				minToken, maxTokens), nil)
		}
		if named && !tenants {
			return refuse("it names a tenant, and sandboxes on this host have none: use --backend kubernetes", nil)
		}
		if named && !tenantName.MatchString(string(tenant)) {
			return refuse("a tenant is not the name of a namespace", nil)
		}
		if other := tokens.Find(string(text)); other.Name != "" && other.Tenant != string(tenant) {
			return refuse("a token is of two tenants", nil)
		}
		tokens = append(tokens, knownToken{sha256.Sum256(text), string(tenant)})
	}
	if len(tokens) == 0 {
		return refuse("it has no token", nil)
	}
	return tokens, nil
}

// Find returns whose token the given one is, in constant time. The zero User is returned if it is
// not among t.
func (t Tokens) Find(given string) (user User) {
	digest := sha256.Sum256([]byte(given))
	for _, k := range t {
		if subtle.ConstantTimeCompare(digest[:], k.digest[:]) == 1 {
			user = User{hex.EncodeToString(k.digest[:8]), k.tenant}
		}
	}
	return user
}

// ListenLoopback listens on addr, HOST:PORT, which must be an address of the loopback interface. Its
// error is a *proposal.StopError with the given code.
func ListenLoopback(ctx context.Context, addr, code string) (net.Listener, error) {
	refuse := func(message string, err error) (net.Listener, error) {
		return nil, &proposal.StopError{Code: code, Message: fmt.Sprintf("cannot listen on %q: %s", addr, message),
			Hint: "use a loopback address, for example 127.0.0.1:8931; for other hosts, forward the port with ssh -L",
			Err:  err}
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

// RefuseBrowserRequests passes to next the requests that no web page has caused. It refuses those for a
// host other than addr (DNS rebinding), and those from an origin other than this server.
func RefuseBrowserRequests(addr string, next http.Handler) http.Handler {
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
