// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fumehood/fumehood/internal/agents/health"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

// ask sends a GET without a token.
func ask(t *testing.T, url string, headers map[string]string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		req.Header.Set(name, value)
		if name == "Host" {
			req.Host = value
		}
	}
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(body)
}

// Health and metrics are the only answers without a token, and a web page cannot have them.
func TestStatus(t *testing.T) {
	lanetest.SkipShort(t)
	m := health.New("v0")
	url, err := m.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr, _ := serve(t, newWorld(), Options{Metrics: m, MaxClients: 1})
	for path, want := range map[string]int{"/healthz": 200, "/": 404} {
		if code, _ := ask(t, url+path, map[string]string{"Host": "10.0.0.1:9464"}); code != want {
			t.Errorf("the address for probes: %s: %d", path, code)
		}
	}
	for _, tt := range []struct {
		path    string
		headers map[string]string
		code    int
		want    string
	}{
		{"/healthz", nil, 200, `{"status":"ready"}`},
		{"/metrics", nil, 200, "fumehood_sandboxes 0"},
		{"/healthz", map[string]string{"Host": "evil.example"}, 403, "Host"},
		{"/metrics", map[string]string{"Origin": "https://evil.example"}, 403, "origin"},
		{"/", nil, 401, "no bearer token"},
		{"/healthz/", nil, 401, ""},
		{"/metrics/../x", nil, 401, ""},
		{"//metrics", nil, 401, ""},
	} {
		if code, body := ask(t, "http://"+addr+tt.path, tt.headers); code != tt.code || !strings.Contains(body, tt.want) {
			t.Errorf("%s %v: %d %s", tt.path, tt.headers, code, body)
		}
	}
	cs := dial(t, addr)
	call(t, cs, "run", proposeArgs{Command: "true"})
	if code, body := ask(t, "http://"+addr+"/healthz", nil); code != 503 || !strings.Contains(body, `"not ready","reason":"the server has its maximum of 1 clients"`) {
		t.Errorf("full: %d %s", code, body)
	}
	if err := cs.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "the slot", func() bool { code, _ := ask(t, "http://"+addr+"/healthz", nil); return code == 200 })
	bare, _ := serve(t, newWorld(), Options{})
	if code, _ := ask(t, "http://"+bare+"/metrics", nil); code != 401 {
		t.Errorf("a server without metrics: %d", code)
	}
}

// A server that is stopped answers the calls that run, refuses others, and then seals.
func TestDrain(t *testing.T) {
	lanetest.SkipShort(t)
	for name, tt := range map[string]struct {
		drain    time.Duration
		released bool
	}{"the command ends": {time.Hour, true}, "the command does not end": {300 * time.Millisecond, false}, "no time": {0, false}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.release = make(chan struct{})
			addr, stop := serve(t, w, Options{Metrics: health.New("v0"), Drain: tt.drain})
			cs := dial(t, addr)
			answer := make(chan *mcp.CallToolResult, 1)
			go func() {
				r, _ := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "run", Arguments: proposeArgs{Command: "wait"}})
				answer <- r
			}()
			eventually(t, "the command", func() bool { return w.has("run wait") })
			stopped := make(chan struct{})
			go func() { stop(); close(stopped) }()
			if tt.drain > 0 {
				eventually(t, "the drain", func() bool {
					code, body := ask(t, "http://"+addr+"/healthz", nil)
					return code == 503 && strings.Contains(body, "draining") || code == 0 && !tt.released
				})
			}
			if tt.released {
				if r := call(t, cs, "run", proposeArgs{Command: "true"}); !r.IsError || !strings.Contains(words(r), "mcp.draining") {
					t.Errorf("a new call: %s", words(r))
				}
				if w.has("killed") || w.has("seal") {
					t.Error("the server does not wait")
				}
				close(w.release)
				if r := <-answer; r == nil || r.IsError || !strings.Contains(words(r), "exit code 0") {
					t.Errorf("the running call: %+v", r)
				}
			}
			<-stopped
			if !w.has("seal") || !w.has("close gate") || w.has("killed") == tt.released || w.has("run true") {
				t.Errorf("did %q", w.did)
			}
		})
	}
}

// A client can cancel its command while the server drains.
func TestDrainCancelled(t *testing.T) {
	w := newWorld()
	addr, stop := serve(t, w, Options{Metrics: health.New("v0"), Drain: time.Hour})
	cs := dial(t, addr)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = cs.CallTool(ctx, &mcp.CallToolParams{Name: "run", Arguments: proposeArgs{Command: "wait"}})
	}()
	eventually(t, "the command", func() bool { return w.has("run wait") })
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	eventually(t, "the drain", func() bool { code, _ := ask(t, "http://"+addr+"/healthz", nil); return code == 503 })
	cancel()
	<-stopped
	if !w.has("killed") || !w.has("seal") {
		t.Errorf("did %q", w.did)
	}
}
