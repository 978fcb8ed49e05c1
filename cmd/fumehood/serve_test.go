// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

const (
	serveKey   = "e2b_0123456789abcdef0123456789abcdef01234567"
	serveOther = "e2b_fedcba9876543210fedcba9876543210fedcba98"
)

// A serveDesk is the directory of a server's test.
type serveDesk struct {
	dir string
	env []string
}

func newServeDesk(t *testing.T) serveDesk {
	t.Helper()
	d := serveDesk{dir: t.TempDir()}
	d.env = append(os.Environ(), "FUMEHOOD_CACHE="+jobtest.BuildCache(t), asFumehood+"=1", "TMPDIR="+d.dir, "XDG_STATE_HOME="+filepath.Join(d.dir, "state"))
	for name, text := range map[string]string{"ws/data.csv": "n\n1\n2\n6\n", "keys": serveKey + "\n" + serveOther + "\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(d.dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// A served is a running server.
type served struct {
	serveDesk
	cmd *exec.Cmd
	err *lockedBuffer
	url string
}

// A lockedBuffer holds the output of a process, and can be read while the process writes.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var serveURL = regexp.MustCompile(`serving E2B's SDK at (http://127\.0\.0\.1:\d+):`)

func startServe(t *testing.T, d serveDesk, args ...string) served {
	t.Helper()
	s := served{serveDesk: d, err: &lockedBuffer{}}
	s.cmd = exec.Command(os.Args[0], append([]string{"serve", "--e2b", "127.0.0.1:0", "--keys-file", "keys", "--workspace", "ws", "--config", "none"}, args...)...)
	s.cmd.Dir, s.cmd.Env, s.cmd.Stderr = d.dir, d.env, s.err
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill(); _ = s.cmd.Wait() })
	jobtest.WaitUntil(t, "the server", func() bool {
		found := serveURL.FindStringSubmatch(s.err.String())
		if found != nil {
			s.url = found[1]
		}
		return found != nil || s.cmd.ProcessState != nil
	})
	return s
}

// end ends the server as a service manager does.
func (s served) end(t *testing.T) {
	t.Helper()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("the server: %v\n%s", err, s.err)
	}
}

// verifyLogs checks that every log is sealed, with the real command, and returns their number.
func (s served) verifyLogs(t *testing.T) int {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(s.dir, "state/fumehood/*/audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range logs {
		cmd := exec.Command(os.Args[0], "verify", log, "--untrusted-key")
		cmd.Env = s.env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", log, err, out)
		}
	}
	return len(logs)
}

// A box is a sandbox as its client knows it.
type box struct{ SandboxID, EnvdAccessToken, TrafficAccessToken string }

// call sends a request and returns its answer, if there is one.
func (s served) call(method, path, body string, headers ...string) string {
	req, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer r.Body.Close()
	data, _ := io.ReadAll(r.Body)
	return string(data)
}

func (s served) create(t *testing.T, body string) (b box) {
	t.Helper()
	if got := s.call("POST", "/v2/sandboxes", body, "X-API-KEY", serveKey); json.Unmarshal([]byte(got), &b) != nil || b.SandboxID == "" {
		t.Fatalf("%s\n%s", got, s.err)
	}
	return b
}

func (s served) run(b box, command string) string {
	message, _ := json.Marshal(map[string]any{"process": map[string]any{"cmd": "/bin/bash", "args": []string{"-l", "-c", command}}})
	frame := string(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))) + string(message)
	return s.call("POST", "/process.Process/Start", frame, "Content-Type", "application/connect+json",
		"E2b-Sandbox-Id", b.SandboxID, "E2b-Sandbox-Port", "49983", "X-Access-Token", b.EnvdAccessToken)
}

func (s served) execute(b box, code string) string {
	body, _ := json.Marshal(map[string]string{"code": code, "language": "bash"})
	return s.call("POST", "/execute", string(body), "E2b-Sandbox-Id", b.SandboxID, "E2b-Sandbox-Port", "49999", "E2B-Traffic-Access-Token", b.TrafficAccessToken)
}

// TestServe has clients with two sandboxes at a real server. What a denied proposal says
// reaches them, one sandbox has nothing of the other, and the host's files stay as they are.
func TestServe(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	s := startServe(t, newServeDesk(t))
	one, two := s.create(t, `{"envVars":{"SEED":"7"}}`), s.create(t, `{}`)
	for _, step := range []struct{ got, want string }{
		{s.run(one, "echo made > x; cat data.csv"), "bgoxCjIKNgo="}, // n 1 2 6
		{s.run(one, "curl https://evil.example"), "PolicyDenied: network.client"},
		{s.run(two, "cat x"), `"exitCode":1`},
		{s.execute(one, "echo \"$SEED $(cat x)\""), `"text":"7 made\n"`},
		{s.execute(two, "echo ${SEED-none}"), `"text":"none\n"`},
		{s.call("POST", "/v2/sandboxes", `{"envVars":{"LD_PRELOAD":"x"}}`, "X-API-KEY", serveKey), "env.name"},
		{s.call("GET", "/sandboxes/"+one.SandboxID, "", "X-API-KEY", serveOther), "no sandbox"},
		{s.call("DELETE", "/sandboxes/"+two.SandboxID, "", "X-API-KEY", serveKey), ""},
		{s.execute(two, "true"), "has ended"},
	} {
		if !strings.Contains(step.got, step.want) {
			t.Errorf("%q lacks %q", step.got, step.want)
		}
	}
	metrics := s.call("GET", "/metrics", "")
	for _, want := range []string{`sandbox_starts_total{result="started"} 2`, "session_ready_seconds_count 2", "fumehood_sandboxes 1", `decisions_total{effect="deny"} 1`, `commands_total{outcome="failed"} 1`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s:\n%s", want, metrics)
		}
	}
	if got := s.call("GET", "/healthz", ""); got != "{\"status\":\"ready\"}\n" {
		t.Errorf("health: %s", got)
	}
	s.end(t)
	if n := s.verifyLogs(t); n != 2 {
		t.Errorf("%d logs\n%s", n, s.err)
	}
	if names, _ := filepath.Glob(filepath.Join(s.dir, "ws", "*")); len(names) != 1 {
		t.Errorf("the workspace on the host has %q", names)
	}
}
