// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
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

// A GitServer serves bare repositories over git's smart HTTP protocol by
// `git http-backend`. It reads only; a push is refused.
//
// For a fetch by commit id the repository needs `uploadpack.allowAnySHA1InWant`,
// which GitHub has: the server sets it for every repository that it serves.
type GitServer struct {
	// URL is the server's address without a slash at the end. A repository
	// ROOT/octocat/Hello-World.git is at URL/octocat/Hello-World, with or
	// without ".git", as on GitHub.
	URL string
	// Token, when not empty, must come along as the password of basic
	// authentication or as a bearer token: otherwise 401. Private names it for
	// one repository ("owner/name") and wins over Token.
	Token   string
	Private map[string]string
	// Before, when set, sees every request first and says whether it has
	// answered: for redirects, slow answers and cut packs.
	Before func(http.ResponseWriter, *http.Request) bool

	backend cgi.Handler
	mu      sync.Mutex
	log     []GitRequest
}

// A GitRequest is one line of a GitServer's log.
type GitRequest struct {
	Method, Path, Query string
	Protocol            string // the header Git-Protocol
	Authorization       string // the header as it came; empty: no credential came along
	Status              int
}

// NewGitServer serves the repositories under root until the test ends. The test
// fails at once when there is no git.
func NewGitServer(t testing.TB, root string) *GitServer {
	t.Helper()
	g, err := GitHandler(root)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	g.URL = server.URL
	return g
}

// GitHandler is NewGitServer without a listener of its own.
func GitHandler(root string) (*GitServer, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, err
	}
	return &GitServer{backend: cgi.Handler{
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
	}}, nil
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
	if g.Before != nil && g.Before(seen, r) {
		return
	}
	if !g.admits(r) {
		seen.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
		http.Error(seen, "Repository not found.", http.StatusUnauthorized)
		return
	}
	g.serve(seen, r)
}

// serve hands r to git. The path gets its ".git" and the protocol version its
// variable, which net/http/cgi does not know.
func (g *GitServer) serve(w http.ResponseWriter, r *http.Request) {
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

func (g *GitServer) admits(r *http.Request) bool {
	want := g.Token
	if name, _, ok := splitRepository(r.URL.Path); ok && g.Private[name] != "" {
		want = g.Private[name]
	}
	if want == "" {
		return true
	}
	_, password, _ := r.BasicAuth()
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return password == want || bearer == want
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
