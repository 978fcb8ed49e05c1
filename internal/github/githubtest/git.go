// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A GitServer serves bare repositories over git's smart HTTP protocol by `git
// http-backend`. It is read-only; a push is refused.
//
// To fetch by commit id, a repository needs `uploadpack.allowAnySHA1InWant`, as on
// GitHub: the server sets it for every repository that it serves.
type GitServer struct {
	// URL is the server's address without a trailing slash. A repository
	// ROOT/octocat/Hello-World.git is at URL/octocat/Hello-World, with or without
	// ".git", as on GitHub.
	URL string

	backend cgi.Handler
	mu      sync.Mutex
	tokens  map[string]string // by owner/name, or "" for all others
	before  func(http.ResponseWriter, *http.Request) bool
	log     []GitRequest
}

// A GitRequest is one line of a GitServer's log.
type GitRequest struct {
	Method, Path, Query string
	Protocol            string // the header Git-Protocol
	Authorization       string // the header as received; empty: no credential
	Status              int
}

// NewGitServer serves the repositories under root until the test ends. The test
// fails at once if git is not installed.
func NewGitServer(t testing.TB, root string) *GitServer {
	t.Helper()
	g, err := GitHandler(root)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(g)
	g.URL = "http://" + server.Listener.Addr().String()
	server.Start()
	t.Cleanup(server.Close)
	return g
}

// GitHandler is NewGitServer without a listener.
func GitHandler(root string) (*GitServer, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, err
	}
	return &GitServer{tokens: map[string]string{}, backend: cgi.Handler{
		Path: git,
		Args: []string{"http-backend"},
		Env: []string{
			"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "HOME=/nonexistent",
			"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_COUNT=3",
			"GIT_CONFIG_KEY_0=uploadpack.allowAnySHA1InWant", "GIT_CONFIG_VALUE_0=true",
			"GIT_CONFIG_KEY_1=uploadpack.allowFilter", "GIT_CONFIG_VALUE_1=true",
			"GIT_CONFIG_KEY_2=safe.directory", "GIT_CONFIG_VALUE_2=*",
		},
		InheritEnv: []string{"PATH"},
		Stderr:     io.Discard, // failed requests are in the log
	}}, nil
}

// RequireToken makes a repository ("owner/name"; "" for all without a token of their
// own) require a token, as the password of basic authentication or as a bearer
// token. Without it the response is 401.
func (g *GitServer) RequireToken(repository, token string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tokens[repository] = token
}

// BeforeEach calls f first for every request. f reports whether it has responded: for
// redirects, slow responses and truncated packs.
func (g *GitServer) BeforeEach(f func(http.ResponseWriter, *http.Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.before = f
}

// Requests returns a copy of the log.
func (g *GitServer) Requests() []GitRequest {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.log)
}

// ServeHTTP implements [http.Handler].
func (g *GitServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	seen := &statusWriter{ResponseWriter: w, status: http.StatusOK}
	entry := GitRequest{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery,
		Protocol: r.Header.Get("Git-Protocol"), Authorization: r.Header.Get("Authorization")}
	defer func() {
		entry.Status = seen.status
		g.mu.Lock()
		defer g.mu.Unlock()
		g.log = append(g.log, entry)
	}()
	want, before := g.rulesFor(r)
	if before != nil && before(seen, r) {
		return
	}
	if want != "" && !hasToken(r, want) {
		seen.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
		http.Error(seen, "Repository not found.", http.StatusUnauthorized)
		return
	}
	g.serveGit(seen, r)
}

// serveGit passes r to git. It adds ".git" to the path, and sets the variable for the
// protocol version, which net/http/cgi does not know.
func (g *GitServer) serveGit(w http.ResponseWriter, r *http.Request) {
	backend := g.backend
	if protocol := r.Header.Get("Git-Protocol"); protocol != "" {
		backend.Env = append(slices.Clone(backend.Env), "GIT_PROTOCOL="+protocol)
	}
	r = r.Clone(r.Context())
	if name, rest, ok := splitRepository(r.URL.Path); ok {
		r.URL.Path = "/" + name + ".git/" + rest
	}
	backend.ServeHTTP(w, r)
}

// rulesFor returns the current token and Before function for a request.
func (g *GitServer) rulesFor(r *http.Request) (token string, before func(http.ResponseWriter, *http.Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	token = g.tokens[""]
	if name, _, ok := splitRepository(r.URL.Path); ok && g.tokens[name] != "" {
		token = g.tokens[name]
	}
	return token, g.before
}

func hasToken(r *http.Request, token string) bool {
	_, password, _ := r.BasicAuth()
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return password == token || bearer == token
}

// splitRepository cuts "/owner/name.git/info/refs" into "owner/name" and "info/refs".
func splitRepository(full string) (name, rest string, ok bool) {
	parts := strings.SplitN(strings.TrimPrefix(path.Clean(full), "/"), "/", 3)
	if len(parts) < 3 {
		return "", "", false
	}
	return parts[0] + "/" + strings.TrimSuffix(parts[1], ".git"), parts[2], true
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets a Before flush or hijack through [http.ResponseController].
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
