// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/kit/testprogram"
)

const token = "ghs_0123456789abcdefABCDEF"

func oneCommit(t testing.TB) (*origin, string) {
	o := newOrigin(t, 40)
	return o, o.commit("c", o.tree("100644 f", o.blob("x")))
}

func TestTokenIsSent(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	o, head := oneCommit(t)
	server := serve(t, o.root)
	server.token = token
	dir := t.TempDir()
	s := open(t, Source{URL: server.url, Token: token, Dir: dir}, Limits{})
	if err := s.Fetch(t.Context(), head); err != nil {
		t.Fatal(err)
	}
	looked := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		looked++
		content, err := os.ReadFile(path)
		if strings.Contains(string(content), token) || strings.Contains(string(content), s.remote.secret[1]) {
			t.Errorf("the token is in %s", path)
		}
		return err
	})
	if err != nil || looked < 3 {
		t.Errorf("looked at %d files: %v", looked, err)
	}
}

func TestTokenIsWanted(t *testing.T) {
	t.Parallel()
	o, head := oneCommit(t)
	server := serve(t, o.root)
	server.token = token
	for _, wrong := range []string{"", "ghs_wrong"} {
		s := open(t, Source{URL: server.url, Token: wrong}, Limits{})
		err := s.Fetch(t.Context(), head)
		wantCode(t, err, CodeFetch)
		if err == nil || !strings.Contains(err.Error(), "cannot access the repository with this token") || wrong != "" && strings.Contains(err.Error(), wrong) {
			t.Errorf("got %v", err)
		}
	}
}

// TestTokenNotInArguments looks at every process while the server keeps git waiting.
func TestTokenNotInArguments(t *testing.T) {
	t.Parallel()
	o, head := oneCommit(t)
	server := serve(t, o.root)
	var looked atomic.Int64
	server.before = func(http.ResponseWriter, *http.Request) bool {
		for _, arguments := range processes(server.url) {
			looked.Add(1)
			if strings.Contains(arguments, token) || strings.Contains(arguments, "Basic") {
				t.Errorf("%q", arguments)
			}
		}
		return false
	}
	s := open(t, Source{URL: server.url, Token: token}, Limits{})
	if err := s.Fetch(t.Context(), head); err != nil || looked.Load() == 0 {
		t.Errorf("%v, after a look at %d processes", err, looked.Load())
	}
}

// processes returns the arguments of every process whose arguments contain needle.
func processes(needle string) (found []string) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, line := range lines {
		if arguments, err := os.ReadFile(line); err == nil && bytes.Contains(arguments, []byte(needle)) {
			found = append(found, string(arguments))
		}
	}
	return found
}

// TestRedirect: neither the request nor the token goes to another host or to
// another path of the same host.
func TestRedirect(t *testing.T) {
	t.Parallel()
	o, head := oneCommit(t)
	for _, status := range sample.EveryNth(t, []int{301, 302, 303, 307, 308}, 2, 5) {
		other := serve(t, o.root)
		server := serve(t, o.root)
		server.before = func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, strings.TrimSuffix(other.url, "/octocat/hello.git")+r.URL.String(), status)
			return true
		}
		s := open(t, Source{URL: server.url, Token: token}, Limits{})
		wantCode(t, s.Fetch(t.Context(), head), CodeFetch)
		if asked := other.requests(); len(asked) > 0 {
			t.Errorf("%d: the other server was asked: %q", status, asked)
		}
		for _, line := range server.requests() {
			if !strings.Contains(line, "auth=Basic") {
				t.Errorf("no token in %s", line)
			}
		}
	}
}

// TestRedirectLate redirects only the request for the pack.
func TestRedirectLate(t *testing.T) {
	t.Parallel()
	o, head := oneCommit(t)
	other := serve(t, o.root)
	server := serve(t, o.root)
	server.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			http.Redirect(w, r, strings.TrimSuffix(other.url, "/octocat/hello.git")+r.URL.String(), http.StatusTemporaryRedirect)
			return true
		}
		return false
	}
	s := open(t, Source{URL: server.url, Token: token}, Limits{})
	wantCode(t, s.Fetch(t.Context(), head), CodeFetch)
	if asked := other.requests(); len(asked) > 0 {
		t.Errorf("the other server was asked: %q", asked)
	}
}

// pack intercepts the response that holds the pack.
func (g *gitServer) pack(change func(w http.ResponseWriter, body []byte)) {
	g.before = func(w http.ResponseWriter, r *http.Request) bool {
		request, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(request))
		if !bytes.Contains(request, []byte("command=fetch")) {
			return false
		}
		answer := httptest.NewRecorder()
		g.pass(answer, r)
		w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
		change(w, answer.Body.Bytes())
		return true
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	o, head := oneCommit(t)
	server, ca := serveTLS(t, o.root)
	server.token = token
	s := open(t, Source{URL: server.url, Token: token, CA: ca}, Limits{})
	if err := s.Fetch(t.Context(), head); err != nil {
		t.Error(err)
	}
	asked := len(server.requests())
	s = open(t, Source{URL: server.url, Token: token}, Limits{})
	wantCode(t, s.Fetch(t.Context(), head), CodeFetch)
	if len(server.requests()) != asked {
		t.Error("an unknown server got a request")
	}
}

// TestProxy: the proxy is asked to connect, and sees no token.
func TestProxy(t *testing.T) {
	t.Parallel()
	o, head := oneCommit(t)
	server, ca := serveTLS(t, o.root)
	var asked atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Method != http.MethodConnect || r.Header.Get("Authorization") != "" {
			t.Errorf("%s with %q", r.Method, r.Header)
		}
		http.Error(w, "no", http.StatusForbidden)
	}))
	defer proxy.Close()
	s := open(t, Source{URL: server.url, Token: token, CA: ca, Proxy: proxy.URL}, Limits{})
	wantCode(t, s.Fetch(t.Context(), head), CodeFetch)
	if asked.Load() == 0 || len(server.requests()) > 0 {
		t.Errorf("proxy asked %d times, server %q", asked.Load(), server.requests())
	}
	s = open(t, Source{URL: server.url, Token: token, CA: ca, Proxy: proxy.URL, NoProxy: "127.0.0.1"}, Limits{})
	if err := s.Fetch(t.Context(), head); err != nil {
		t.Error(err)
	}
}

func TestOtherObject(t *testing.T) {
	t.Parallel()
	o, head := oneCommit(t)
	evil := o.commit("evil", o.tree("100644 f", o.blob("evil")))
	server := serve(t, o.root)
	server.before = func(_ http.ResponseWriter, r *http.Request) bool {
		request, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(bytes.ReplaceAll(request, []byte(head), []byte(evil))))
		return false
	}
	s := open(t, Source{URL: server.url}, Limits{})
	err := s.Fetch(t.Context(), head)
	wantCode(t, err, CodeFetch)
	_, err = s.Write(t.Context(), head, filepath.Join(t.TempDir(), "d"))
	wantCode(t, err, CodeCommit)
}

func TestBrokenPacks(t *testing.T) {
	t.Parallel()
	for _, c := range sample.EveryNth(t, []struct {
		name   string
		change func(w http.ResponseWriter, body []byte)
		want   string
	}{
		{"cut in the middle", func(w http.ResponseWriter, b []byte) { w.Write(b[:len(b)*2/3]) }, ""},
		{"cut at once", func(w http.ResponseWriter, b []byte) {}, ""},
		{"another byte", func(w http.ResponseWriter, b []byte) { b[len(b)-30] ^= 1; w.Write(b) }, CodeFetch},
		{"not a pack", func(w http.ResponseWriter, b []byte) { w.Write([]byte("0000")) }, ""},
		{"a page", func(w http.ResponseWriter, b []byte) {
			w.Header().Set("Content-Type", "text/html")
			w.Write([]byte("<html>\x1b[2J::error::hello"))
		}, ""},
		{"hostile words", func(w http.ResponseWriter, b []byte) {
			said := "ERR \x1b[2J\r\n::add-mask::x\n" + token
			fmt.Fprintf(w, "%04x%s", len(said)+4, said)
		}, CodeFetch},
	}, 2, 10) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o, head := oneCommit(t)
			server := serve(t, o.root)
			server.pack(c.change)
			s := open(t, Source{URL: server.url, Token: token}, Limits{})
			err := s.Fetch(t.Context(), head)
			if err == nil || c.want != "" && code(err) != c.want {
				t.Fatalf("got %v, want %s", err, c.want)
			}
			if got := code(err); got != CodeFetch && got != CodeUnavailable {
				t.Errorf("code %s", got)
			}
			if said := err.Error(); strings.Contains(said, token) || strings.ContainsAny(said, "\x1b\r\n") || len(said) > 2000 {
				t.Errorf("said %q", said)
			}
			if parts, _ := filepath.Glob(filepath.Join(s.bare, "objects/pack/tmp_*")); len(parts) > 0 {
				t.Errorf("left %q", parts)
			}
			server.answer(nil)
			if err := s.Fetch(t.Context(), head); err != nil {
				t.Errorf("and not usable afterwards: %v", err)
			}
		})
	}
}

func TestUnavailable(t *testing.T) {
	t.Parallel()
	o, head := oneCommit(t)
	for _, c := range []struct {
		name  string
		fails int // requests
		want  string
	}{{"twice", 2, ""}, {"always", 1000, CodeUnavailable}} {
		server := serve(t, o.root)
		var asked atomic.Int64
		server.before = func(w http.ResponseWriter, _ *http.Request) bool {
			down := int(asked.Add(1)) <= c.fails
			if down {
				http.Error(w, "down", http.StatusBadGateway)
			}
			return down
		}
		s := open(t, Source{URL: server.url}, Limits{})
		wantCode(t, s.Fetch(t.Context(), head), c.want)
		if c.want != "" && asked.Load() != attempts {
			t.Errorf("%s: asked %d times", c.name, asked.Load())
		}
	}
	server := httptest.NewServer(nil)
	server.Close()
	s := open(t, Source{URL: server.URL + "/o/r"}, Limits{})
	wantCode(t, s.Fetch(t.Context(), head), CodeUnavailable)
}

func TestWall(t *testing.T) {
	t.Parallel()
	o, head := oneCommit(t)
	server := serve(t, o.root)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	server.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			<-release
		}
		return false
	}
	s := open(t, Source{URL: server.url}, Limits{Wall: 500 * time.Millisecond})
	err := s.Fetch(t.Context(), head) // which the server never answers
	wantCode(t, err, CodeLimit)
	if err == nil || !strings.Contains(err.Error(), "500ms") {
		t.Errorf("got %v", err)
	}
	if left := processes(s.bare); len(left) > 0 {
		t.Errorf("still running: %q", left)
	}
}

// TestPack: the server sends more than the limit, at once or so slowly that it
// would never finish, and Fetch ends.
func TestPack(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, 40)
	noise := make([]byte, 1<<20)
	rand.NewChaCha8([32]byte{}).Read(noise)
	head := o.commit("c", o.tree("100644 f", o.blob(string(noise))))
	for _, slow := range sample.EveryNth(t, []bool{false, true}, 1, 10) {
		server := serve(t, o.root)
		server.pack(func(w http.ResponseWriter, body []byte) {
			if slow {
				_, _ = w.Write(body[:512<<10])
				body = body[512<<10:]
			}
			for part := len(body); len(body) > 0; body = body[part:] {
				if slow {
					part = 1
					_ = http.NewResponseController(w).Flush()
					time.Sleep(time.Millisecond)
				}
				if _, err := w.Write(body[:part]); err != nil {
					return
				}
			}
		})
		s := open(t, Source{URL: server.url}, Limits{Pack: 256 << 10})
		err := s.Fetch(t.Context(), head)
		wantCode(t, err, CodeLimit)
		if size := s.measureSize(); size > 256<<10 {
			t.Errorf("the store has %d bytes", size)
		}
		if slow {
			continue
		}
		server.answer(nil)
		s = open(t, Source{URL: server.url}, Limits{})
		if err := s.Fetch(t.Context(), head); err != nil {
			t.Errorf("with the default limit: %v", err)
		}
	}
}

func TestSource(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name   string
		source Source
		want   string
	}{
		{"https", Source{URL: "https://github.com/octocat/hello", Dir: dir}, ""},
		{"loopback", Source{URL: "http://127.0.0.1:80/octocat/hello", Dir: dir}, ""},
		{"loopback, IPv6", Source{URL: "http://[::1]:80/octocat/hello", Dir: dir}, ""},
		{"http", Source{URL: "http://github.com/octocat/hello", Dir: dir}, CodeSource},
		{"http, the runner's server", Source{URL: "http://ghes.example/octocat/hello", Server: "http://GHES.example", Dir: dir}, ""},
		{"http, the runner's server has https", Source{URL: "http://ghes.example/o/r", Server: "https://ghes.example", Dir: dir}, CodeSource},
		{"http, another server", Source{URL: "http://evil.example/o/r", Server: "http://ghes.example", Dir: dir}, CodeSource},
		{"http, a name like loopback", Source{URL: "http://127.0.0.1.evil.example/o/r", Dir: dir}, CodeSource},
		{"user information", Source{URL: "https://user:pass@github.com/o/r", Dir: dir}, CodeSource},
		{"ext", Source{URL: "ext::sh -c touch% PWNED", Dir: dir}, CodeSource},
		{"file", Source{URL: "file:///etc", Dir: dir}, CodeSource},
		{"a path", Source{URL: "/etc", Dir: dir}, CodeSource},
		{"ssh", Source{URL: "ssh://git@github.com/o/r", Dir: dir}, CodeSource},
		{"scp", Source{URL: "git@github.com:o/r", Dir: dir}, CodeSource},
		{"an option", Source{URL: "--upload-pack=x", Dir: dir}, CodeSource},
		{"a query", Source{URL: "https://github.com/o/r?x", Dir: dir}, CodeSource},
		{"a fragment", Source{URL: "https://github.com/o/r#", Dir: dir}, CodeSource},
		{"no repository", Source{URL: "https://github.com/", Dir: dir}, CodeSource},
		{"no host", Source{URL: "https:///o/r", Dir: dir}, CodeSource},
		{"a newline", Source{URL: "https://github.com/o/r\nx", Dir: dir}, CodeSource},
		{"no folder", Source{URL: "https://github.com/o/r"}, CodeSource},
		{"token with a newline", Source{URL: "https://github.com/o/r", Token: "a\nX-Evil: 1", Dir: dir}, CodeSource},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Open(c.source, Limits{})
			wantCode(t, err, c.want)
			if err != nil && strings.Contains(err.Error(), "pass") {
				t.Errorf("a password in %v", err)
			}
			if err == nil {
				s.Close()
			}
		})
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("Close left %v", left)
	}
}

func TestGitVersion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ says, want string }{
		{"git version 2.39.5", ""}, {"git version 2.32.0", ""}, {"git version 3.0.0 (Apple Git-1)", ""}, {"git version 2.54.GIT", ""},
		{"git version 2.31.9", CodeGit}, {"git version 1.99.0", CodeGit}, {"hello", CodeGit}, {"", CodeGit}, {"git version 99999.1.1", CodeGit},
	} {
		path := filepath.Join(t.TempDir(), "git")
		testprogram.WriteExecutable(t, path, "#!/bin/sh\necho '"+c.says+"'\n")
		if got := code(git(path).checkVersion(t.Context())); got != c.want {
			t.Errorf("%q: %q, want %q", c.says, got, c.want)
		}
	}
	wantCode(t, git("/nonexistent/git").checkVersion(t.Context()), CodeGit)
}
