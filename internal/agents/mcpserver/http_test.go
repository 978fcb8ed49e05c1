// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/localhttp"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	token = "0123456789abcdef0123456789abcdef"
	other = "fedcba9876543210fedcba9876543210"
)

// serve serves w over HTTP and returns the address, and a function that stops the server.
func serve(t *testing.T, w *world, o Options) (addr string, stop func()) {
	t.Helper()
	tokens, err := localhttp.ReadTokens(writeFile(t, "tokens", token+"\n\n"+other+"\n"), "mcp.token", false)
	if err != nil {
		t.Fatal(err)
	}
	l, err := localhttp.ListenLoopback(t.Context(), "127.0.0.1:0", "mcp.address")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	s := serverOf(w, o)
	go func() { done <- s.ServeStreamableHTTP(ctx, l, tokens) }()
	stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		done <- nil
	}
	t.Cleanup(stop)
	return l.Addr().String(), stop
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

// post sends a request with the given headers; Host is the host.
func post(t *testing.T, addr, body string, headers map[string]string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+token)
	for name, value := range headers {
		if name == "Host" {
			req.Host = value
		} else if req.Header.Set(name, value); value == "" {
			req.Header.Del(name)
		}
	}
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Body.Close() })
	return r
}

// Requests without a token, from a web page, or for another host are refused before
// anything of the protocol is read.
func TestHTTPRefuses(t *testing.T) {
	lanetest.SkipShort(t)
	w := newWorld()
	addr, _ := serve(t, w, Options{})
	_, port, _ := strings.Cut(addr, ":")
	for _, tt := range []struct {
		name   string
		header map[string]string
		want   int
	}{
		{"the token", nil, 200},
		{"the second token", map[string]string{"Authorization": "Bearer " + other}, 200},
		{"its own origin", map[string]string{"Origin": "http://" + addr}, 200},
		{"localhost", map[string]string{"Host": "localhost:" + port}, 200},
		{"no token", map[string]string{"Authorization": ""}, 401},
		{"a wrong token", map[string]string{"Authorization": "Bearer " + token[1:] + "x"}, 401},
		{"part of the token", map[string]string{"Authorization": "Bearer " + token[:31]}, 401},
		{"an empty token", map[string]string{"Authorization": "Bearer "}, 401},
		{"another scheme", map[string]string{"Authorization": "Basic " + token}, 401},
		{"a web page", map[string]string{"Origin": "https://evil.example"}, 403},
		{"a page of another local server", map[string]string{"Origin": "http://127.0.0.1:1"}, 403},
		{"a file", map[string]string{"Origin": "null"}, 403},
		{"https", map[string]string{"Origin": "https://" + addr}, 403},
		{"rebinding", map[string]string{"Host": "evil.example:" + port}, 403},
		{"rebinding without a port", map[string]string{"Host": "evil.example"}, 403},
		{"another port", map[string]string{"Host": "127.0.0.1:1"}, 403},
		{"rebinding and origin", map[string]string{"Host": "evil.example:" + port, "Origin": "http://evil.example:" + port}, 403},
	} {
		if r := post(t, addr, initialize, tt.header); r.StatusCode != tt.want {
			body, _ := io.ReadAll(r.Body)
			t.Errorf("%s: %d, want %d: %s", tt.name, r.StatusCode, tt.want, body)
		}
	}
	if r := post(t, addr, `{"jsonrpc":"2.0","id":1,"method":"x","params":"`+strings.Repeat("x", maxFrame)+`"}`, nil); r.StatusCode != http.StatusRequestEntityTooLarge && r.StatusCode != 400 {
		t.Errorf("a large body: %d", r.StatusCode)
	}
	if len(w.did) > 0 {
		t.Errorf("did %q", w.did)
	}
}

// A session belongs to the token that began it, and its id cannot be guessed.
func TestHTTPSessions(t *testing.T) {
	addr, _ := serve(t, newWorld(), Options{})
	first := post(t, addr, initialize, nil).Header.Get("Mcp-Session-Id")
	second := post(t, addr, initialize, nil).Header.Get("Mcp-Session-Id")
	if len(first) < 26 || first == second || first[:8] == second[:8] {
		t.Errorf("ids %q and %q", first, second)
	}
	list := `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`
	post(t, addr, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, map[string]string{"Mcp-Session-Id": first})
	for _, tt := range []struct {
		headers map[string]string
		want    int
	}{
		{map[string]string{"Mcp-Session-Id": first}, 200},
		{map[string]string{"Mcp-Session-Id": first, "Authorization": "Bearer " + other}, 403},
		{map[string]string{"Mcp-Session-Id": first[1:] + "A"}, 404},
	} {
		if r := post(t, addr, list, tt.headers); r.StatusCode != tt.want {
			t.Errorf("%v: %d, want %d", tt.headers, r.StatusCode, tt.want)
		}
	}
}

// bearer adds the token to requests.
type bearer struct{}

func (bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return http.DefaultTransport.RoundTrip(r)
}

func dial(t *testing.T, addr string) *mcp.ClientSession {
	t.Helper()
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "tester"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: "http://" + addr, HTTPClient: &http.Client{Transport: bearer{}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return cs
}

// Each client has its own gate. One that disconnects while its command runs is ended, and
// so are all when the server stops.
func TestHTTPClients(t *testing.T) {
	worlds := make(chan *world, 3)
	addr, stop := serve(t, nil, Options{Gate: func(context.Context, string) (gate.Opener, error) {
		w := newWorld()
		w.out = "hi\n"
		worlds <- w
		return w, nil
	}})
	first, second := dial(t, addr), dial(t, addr)
	for _, cs := range []*mcp.ClientSession{first, second} {
		if got := words(call(t, cs, "run", proposeArgs{Command: "true"})); !strings.HasPrefix(got, "c1: exit code 0") || !strings.Contains(got, "\nhi\n") {
			t.Errorf("got %+v", got)
		}
	}
	one, two := <-worlds, <-worlds
	waiting := func(ctx context.Context) {
		_, _ = first.CallTool(ctx, &mcp.CallToolParams{Name: "run", Arguments: proposeArgs{Command: "wait"}})
	}
	go waiting(t.Context())
	eventually(t, "the command", func() bool { return one.has("run wait") })
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, "http://"+addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Mcp-Session-Id", first.ID())
	if r, err := (bearer{}).RoundTrip(req); err != nil || r.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE: %v, %v", r, err)
	}
	eventually(t, "the end of the first", func() bool { return one.has("killed") && one.has("seal") })
	if two.has("seal") {
		t.Error("the other client has ended, too")
	}
	stop()
	if !two.has("seal") {
		t.Error("the log is not sealed")
	}
}

// A token has its share of the clients, and another one finds room.
func TestHTTPShares(t *testing.T) {
	addr, _ := serve(t, newWorld(), Options{MaxClients: 3}) // of two tokens
	begin := func(token string) *http.Response {
		t.Helper()
		as := map[string]string{"Authorization": "Bearer " + token}
		as["Mcp-Session-Id"] = post(t, addr, initialize, as).Header.Get("Mcp-Session-Id")
		post(t, addr, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, as)
		return post(t, addr, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"check","arguments":{"command":"true"}}}`, as)
	}
	for i, tt := range []struct {
		token string
		busy  bool
	}{{token, false}, {token, false}, {token, true}, {other, false}, {other, true}} {
		body, err := io.ReadAll(begin(tt.token).Body)
		if err != nil || strings.Contains(string(body), "mcp.busy") != tt.busy || !tt.busy && !strings.Contains(string(body), "allow") {
			t.Errorf("client %d: %v %s", i+1, err, body)
		}
	}
}

func TestHTTPNeverElicits(t *testing.T) {
	if err := serverOf(newWorld(), Options{Approver: Elicit}).ServeStreamableHTTP(t.Context(), nil, nil); err == nil || proposal.FailureOf(err).Code != "mcp.approver" {
		t.Errorf("got %v", err)
	}
}

// A client that is killed ends its command at once: its request is cut off.
func TestHTTPDisconnect(t *testing.T) {
	w := newWorld()
	addr, _ := serve(t, w, Options{})
	id := post(t, addr, initialize, nil).Header.Get("Mcp-Session-Id")
	post(t, addr, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, map[string]string{"Mcp-Session-Id": id})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	body := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run","arguments":{"command":"wait"}}}`
	fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMcp-Session-Id: %s\r\nFumehood-Request: x\r\nContent-Length: %d\r\n\r\n%s", addr, token, id, len(body), body)
	eventually(t, "the command", func() bool { return w.has("run wait") })
	c.Close()
	eventually(t, "the kill", func() bool { return w.has("killed") })
}
