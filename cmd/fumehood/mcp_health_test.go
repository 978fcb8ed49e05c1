// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/sandbox/install/installtest"
)

const healthToken = "0123456789abcdef0123456789abcdef"

// A httpServer is a real server over HTTP with the shipped policy.
type httpServer struct {
	mcpDesk
	cmd *exec.Cmd
	url string
	log *strings.Builder // standard error, when it has ended
	out chan struct{}
}

func newHTTPServer(t *testing.T, flags ...string) *httpServer {
	t.Helper()
	s := &httpServer{mcpDesk: newMCPDesk(t), log: &strings.Builder{}, out: make(chan struct{})}
	if err := os.WriteFile(filepath.Join(s.dir, "token"), []byte(healthToken), 0o600); err != nil {
		t.Fatal(err)
	}
	s.cmd = exec.Command(os.Args[0], append([]string{"mcp", "--workspace", "ws", "--config", "none", "--http", "127.0.0.1:0", "--token-file", "token"}, flags...)...)
	s.cmd.Dir, s.cmd.Env = s.dir, s.env
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	found := make(chan string, 1)
	go func() {
		defer close(s.out)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			fmt.Fprintln(s.log, lines.Text())
			if _, url, is := strings.Cut(lines.Text(), "serving MCP at "); is {
				found <- url
			}
		}
	}()
	select {
	case s.url = <-found:
	case <-s.out:
		t.Fatalf("the server has ended: %s", s.log)
	}
	return s
}

// bearerToken adds the token to requests.
type bearerToken struct{}

func (bearerToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+healthToken)
	return http.DefaultTransport.RoundTrip(r)
}

func (s *httpServer) dial(t *testing.T) *mcp.ClientSession {
	t.Helper()
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: s.url, HTTPClient: &http.Client{Transport: bearerToken{}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return cs
}

// get returns an answer without a token; code 0 if there is no server.
func (s *httpServer) get(t *testing.T, path string) (code int, body string) {
	t.Helper()
	r, err := http.Get(s.url + path)
	if err != nil {
		return 0, err.Error()
	}
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(data)
}

// expect checks the values of metrics.
func (s *httpServer) expect(t *testing.T, want map[string]string) {
	t.Helper()
	_, page := s.get(t, "/metrics")
	for name, value := range want {
		if m := regexp.MustCompile(`(?m)^fumehood_` + regexp.QuoteMeta(name) + ` (\S+)$`).FindStringSubmatch(page); m == nil || m[1] != value {
			t.Errorf("%s is %q, want %s", name, m, value)
		}
	}
}

// end waits for the exit code and verifies every log, at least one.
func (s *httpServer) end(t *testing.T) {
	t.Helper()
	<-s.out
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v:\n%s", err, s.log)
	}
	logs := regexp.MustCompile(`log (\S+), key (\S+)`).FindAllStringSubmatch(s.log.String(), -1)
	if len(logs) == 0 {
		t.Errorf("no log in\n%s", s.log)
	}
	for _, m := range logs {
		cmd := exec.Command(os.Args[0], "verify", m[1], "--key", m[2])
		cmd.Dir, cmd.Env = s.dir, s.env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("verify %s: %v\n%s", m[1], err, out)
		}
	}
	jobtest.CheckNothingRuns(t, s.dir)
}

// A sandbox that does not start is counted, and the server is not ready, until one starts.
func TestMCPStartFails(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	dir := t.TempDir() // which the sandbox's kernel must be able to enter
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("cp", "-a", filepath.Dir(installtest.Runsc(t).Path), filepath.Join(dir, "runsc")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	runsc := filepath.Join(dir, "runsc", "fumehood-runsc")
	s := newHTTPServer(t, "--runsc", runsc)
	cs := s.dial(t)
	mcpCall(t, cs, "check", map[string]any{"command": "true"}) // makes the gate
	moment := time.Now().Add(time.Hour)
	if err := os.Chtimes(runsc, moment, moment); err != nil {
		t.Fatal(err)
	}
	r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "run", Arguments: map[string]any{"command": "true"}})
	if err != nil || !r.IsError {
		t.Errorf("%+v, %v", r, err)
	}
	s.expect(t, map[string]string{`sandbox_starts_total{result="failed"}`: "1", `sandbox_starts_total{result="started"}`: "0", "sandboxes": "0", "session_ready_seconds_count": "0"})
	if code, body := s.get(t, "/healthz"); code != 503 || !strings.Contains(body, `"not ready","reason":"the last sandbox did not start: sandbox.runsc-`) {
		t.Errorf("%d %s", code, body)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.end(t)
}
