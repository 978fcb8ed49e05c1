// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A gitServer is git's own smart HTTP server on loopback.
type gitServer struct {
	url    string
	token  string                                        // if set, requests without it get a 401
	before func(http.ResponseWriter, *http.Request) bool // if set, may answer the request itself

	root    string
	backend cgi.Handler
	mu      sync.Mutex
	log     []string // "GET /path auth=<header>"
}

func serve(t testing.TB, root string) *gitServer {
	t.Helper()
	g := newServer(t, root)
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	g.url = server.URL + "/octocat/hello.git"
	return g
}

// serveTLS also returns the path of the certificate.
func serveTLS(t testing.TB, root string) (g *gitServer, ca string) {
	t.Helper()
	g = newServer(t, root)
	server := httptest.NewUnstartedServer(g)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are expected
	server.StartTLS()
	t.Cleanup(server.Close)
	g.url = server.URL + "/octocat/hello.git"
	ca = filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(ca, block, 0o644); err != nil {
		t.Fatal(err)
	}
	return g, ca
}

// inShort are the tests that use git with -short.
var inShort = []string{"TestFetchTwice", "TestHostile", "TestInspect", "TestLocalFolder", "TestRepositoryRefuses", "TestTokenIsSent", "TestWriteUnder"}

// skipShort ends a test that starts many processes of git.
func skipShort(t testing.TB) {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	if testing.Short() && !slices.Contains(inShort, name) {
		t.Skip("starts git; run without -short")
	}
}

func newServer(t testing.TB, root string) *gitServer {
	t.Helper()
	path, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	g := &gitServer{root: root, backend: cgi.Handler{Path: path, Args: []string{"http-backend"}, InheritEnv: []string{"PATH"}, Env: []string{
		"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "HOME=/nonexistent",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_COUNT=2",
		"GIT_CONFIG_KEY_0=uploadpack.allowAnySHA1InWant", "GIT_CONFIG_VALUE_0=true",
		"GIT_CONFIG_KEY_1=safe.directory", "GIT_CONFIG_VALUE_1=*"}}}
	return g
}

func (g *gitServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	g.log = append(g.log, fmt.Sprintf("%s %s auth=%s", r.Method, r.URL.Path, r.Header.Get("Authorization")))
	before := g.before
	g.mu.Unlock()
	if before != nil && before(w, r) {
		return
	}
	if _, password, _ := r.BasicAuth(); g.token != "" && password != g.token {
		w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
		http.Error(w, "Repository not found.", http.StatusUnauthorized)
		return
	}
	g.pass(w, r)
}

func (g *gitServer) pass(w http.ResponseWriter, r *http.Request) {
	backend := g.backend
	protocol := r.Header.Get("Git-Protocol")
	if protocol != "" {
		backend.Env = append(backend.Env[:len(backend.Env):len(backend.Env)], "GIT_PROTOCOL="+protocol)
	}
	if repository, isPack := strings.CutSuffix(r.URL.Path, "/git-upload-pack"); isPack {
		uploadPack(w, r, backend, filepath.Join(g.root, repository))
		return
	}
	repository, isFirst := strings.CutSuffix(r.URL.Path, "/info/refs")
	config, err := os.ReadFile(filepath.Join(g.root, repository, "config"))
	if !isFirst || err != nil || protocol != "version=2" {
		backend.ServeHTTP(w, r)
		return
	}
	first, found := firstAnswers.Load(string(config))
	if !found {
		answer := httptest.NewRecorder()
		backend.ServeHTTP(answer, r)
		first, _ = firstAnswers.LoadOrStore(string(config), answer)
	}
	answer := first.(*httptest.ResponseRecorder)
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	w.Write(answer.Body.Bytes())
}

// uploadPack starts what git's server would start, without the two processes in between.
func uploadPack(w http.ResponseWriter, r *http.Request, backend cgi.Handler, dir string) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = unpacked
	}
	c := exec.CommandContext(r.Context(), backend.Path, "upload-pack", "--stateless-rpc", dir)
	c.Env = append(backend.Env[:len(backend.Env):len(backend.Env)], "PATH="+os.Getenv("PATH"))
	c.Stdin, c.Stdout = body, w
	w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
	_ = c.Run() // what went wrong is in the answer
}

// firstAnswers holds git's first answer by the repository's config: version 2 of the protocol
// lists the server's abilities there, and no reference. Each would cost three processes.
var firstAnswers sync.Map

// answer sets before. It locks, because a handler may still be running.
func (g *gitServer) answer(before func(http.ResponseWriter, *http.Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.before = before
}

func (g *gitServer) requests() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string{}, g.log...)
}

// An origin is a bare repository whose objects are written byte by byte, so that
// they can be ones that git would not write.
type origin struct {
	t      testing.TB
	root   string
	dir    string
	digits int
}

func newOrigin(t testing.TB, digits int) *origin {
	t.Helper()
	skipShort(t)
	root := t.TempDir()
	o := &origin{t: t, root: root, dir: filepath.Join(root, "octocat/hello.git"), digits: digits}
	if err := writeBare(o.dir, digits); err != nil {
		t.Fatal(err)
	}
	o.put("refs/heads/main", o.commit("first", o.tree("100644 a.txt", o.blob("hi\n")))+"\n")
	return o
}

func (o *origin) put(name, content string) {
	o.t.Helper()
	path := filepath.Join(o.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		o.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		o.t.Fatal(err)
	}
}

func (o *origin) object(kind, content string) string {
	o.t.Helper()
	raw := fmt.Sprintf("%s %d\x00%s", kind, len(content), content)
	sum := newHash(o.digits)
	sum.Write([]byte(raw))
	id := hex.EncodeToString(sum.Sum(nil))
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	z.Write([]byte(raw))
	z.Close()
	o.put("objects/"+id[:2]+"/"+id[2:], packed.String())
	return id
}

func (o *origin) blob(content string) string { return o.object("blob", content) }

// tree takes pairs of "mode name" and id, and writes them in the given order.
func (o *origin) tree(pairs ...string) string {
	o.t.Helper()
	var content strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		raw, err := hex.DecodeString(pairs[i+1])
		if err != nil {
			o.t.Fatal(err)
		}
		content.WriteString(pairs[i] + "\x00" + string(raw))
	}
	return o.object("tree", content.String())
}

func (o *origin) commit(message, tree string, parents ...string) string {
	text := "tree " + tree + "\n"
	for _, parent := range parents {
		text += "parent " + parent + "\n"
	}
	who := "A <a@example.invalid> 1700000000 +0000\n"
	return o.object("commit", text+"author "+who+"committer "+who+"\n"+message+"\n")
}

// store opens a store on the origin's server.
func (o *origin) store(limits Limits) (*Store, *gitServer) {
	o.t.Helper()
	server := serve(o.t, o.root)
	return open(o.t, Source{URL: server.url}, limits), server
}

func open(t testing.TB, source Source, limits Limits) *Store {
	t.Helper()
	if source.Dir == "" {
		source.Dir = t.TempDir()
	}
	s, err := Open(source, limits)
	if err != nil {
		t.Fatal(err)
	}
	s.wait = time.Millisecond
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// files returns what is below dir: paths with their content, links with "-> ",
// empty directories with "/".
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		switch {
		case d.Type()&os.ModeSymlink != 0:
			target, _ := os.Readlink(path)
			found[name] = "-> " + target
		case d.IsDir():
			if list, _ := os.ReadDir(path); len(list) == 0 {
				found[name] = "/"
			}
		default:
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			found[name] = string(content)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
