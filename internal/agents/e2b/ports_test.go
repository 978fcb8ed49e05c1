// SPDX-License-Identifier: Apache-2.0

package e2b

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/agents/stdin"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func TestParsePorts(t *testing.T) {
	if got, err := ParsePorts("3000,8000-8999"); err != nil || len(got) != 2 || got[1] != (PortRange{8000, 8999}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, list := range []string{"", "0", "x", "1-", "-1", "2-1", "65536", "1,", "1-2-3"} {
		if got, err := ParsePorts(list); err == nil {
			t.Errorf("%q is %v", list, got)
		}
	}
}

// Nothing reaches a sandbox but requests for a port that the operator has opened, with the sandbox's token, and not
// from another origin.
func TestPortsAreGuarded(t *testing.T) {
	closed := newDesk(t, Options{})
	m := closed.create(key, `{}`)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(closed.url, "http://"))
	token := map[string]string{"Host": "8000-" + m.SandboxID + ".localhost:" + port, "E2B-Traffic-Access-Token": m.TrafficAccessToken}
	if status, text := closed.call("GET", "/", "", token); status != 403 || !strings.Contains(text, "Host header") {
		t.Errorf("without ports: %d %s", status, text)
	}
	d := newDesk(t, Options{Ports: []PortRange{{8000, 8001}}})
	mine, public := d.create(key, `{}`), d.create(other, `{"network":{"allowPublicTraffic":true}}`)
	_, port, _ = net.SplitHostPort(strings.TrimPrefix(d.url, "http://"))
	host := func(name string) string { return name + ".localhost:" + port }
	const reached = "session.input: " // the session is a fake
	own := host("8000-" + mine.SandboxID)
	for _, tt := range []struct {
		name    string
		headers map[string]string
		status  int
		want    string
	}{
		{"the token", map[string]string{"Host": own, "E2B-Traffic-Access-Token": mine.TrafficAccessToken}, 501, reached},
		{"by headers", map[string]string{"E2b-Sandbox-Id": mine.SandboxID, "E2b-Sandbox-Port": "8001", "E2B-Traffic-Access-Token": mine.TrafficAccessToken}, 501, reached},
		{"its own page", map[string]string{"Host": own, "Origin": "http://" + own, "E2B-Traffic-Access-Token": mine.TrafficAccessToken}, 501, reached},
		{"public", map[string]string{"Host": host("8000-" + public.SandboxID)}, 501, reached},
		{"no token", map[string]string{"Host": own}, 401, "missing or wrong"},
		{"the envd token", map[string]string{"Host": own, "E2B-Traffic-Access-Token": mine.EnvdAccessToken}, 401, "missing or wrong"},
		{"another's token", map[string]string{"Host": own, "E2B-Traffic-Access-Token": public.TrafficAccessToken}, 401, "missing or wrong"},
		{"by headers, no token", map[string]string{"E2b-Sandbox-Id": mine.SandboxID, "E2b-Sandbox-Port": "8000"}, 401, "missing or wrong"},
		{"another port", map[string]string{"Host": host("8002-" + mine.SandboxID), "E2B-Traffic-Access-Token": mine.TrafficAccessToken}, 403, "--ports"},
		{"port 0", map[string]string{"Host": host("0-" + mine.SandboxID), "E2B-Traffic-Access-Token": mine.TrafficAccessToken}, 403, "Host header"},
		{"port 73536, which is 8000 in 16 bits", map[string]string{"Host": host("73536-" + mine.SandboxID), "E2B-Traffic-Access-Token": mine.TrafficAccessToken}, 403, "Host header"},
		{"no sandbox", map[string]string{"Host": host("8000-sb" + strings.Repeat("a", 26))}, 502, "was not found"},
		{"another domain", map[string]string{"Host": "8000-" + mine.SandboxID + ".example.com:" + port, "E2B-Traffic-Access-Token": mine.TrafficAccessToken}, 403, "Host header"},
		{"another server", map[string]string{"Host": "8000-" + mine.SandboxID + ".localhost:1", "E2B-Traffic-Access-Token": mine.TrafficAccessToken}, 403, "Host header"},
		{"rebinding, by headers", map[string]string{"Host": "evil.example:" + port, "E2b-Sandbox-Id": public.SandboxID, "E2b-Sandbox-Port": "8000"}, 403, "Host header"},
		{"a page", map[string]string{"Host": host("8000-" + public.SandboxID), "Origin": "http://evil.example"}, 403, "origins"},
		{"a page of this server", map[string]string{"Host": host("8000-" + public.SandboxID), "Origin": d.url}, 403, "origins"},
		{"a script of a page", map[string]string{"Host": host("8000-" + public.SandboxID), "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403, "origins"},
		{"a link of a page", map[string]string{"Host": host("8000-" + public.SandboxID), "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 501, reached},
		{"a page, by headers", map[string]string{"E2b-Sandbox-Id": public.SandboxID, "E2b-Sandbox-Port": "8000", "Origin": "null"}, 403, "origins"},
	} {
		if status, text := d.call("GET", "/", "", tt.headers); status != tt.status || !strings.Contains(text, tt.want) {
			t.Errorf("%s: %d %s", tt.name, status, text)
		}
	}
}

// A bridge passes data on as it is. What a sandbox forges ends it.
func TestBridge(t *testing.T) {
	for name, tt := range map[string]struct {
		output    []string // in chunks
		want      string
		isStopped bool
	}{
		"data":                   {[]string{"1:5:a\\nb", "\\\\c\n1:1:\x00\n", "1:0:\n"}, "a\nb\\c\x00", false},
		"of no connection":       {[]string{"7:1:x\n1:1:y\n1:0:\n"}, "y", false},
		"replaced":               {[]string{"1:40:token [redacted github-pat]\n"}, "", true},
		"a line of another form": {[]string{"hello\n"}, "", true},
		"too long":               {[]string{strings.Repeat("x", 4*bridgeChunk)}, "", true},
		"no number":              {[]string{"-1:1:x\n"}, "", true},
		"more than the window":   {[]string{strings.Repeat("1:1:x\n", 2+bridgeWindow)}, "", true},
		"after its end":          {[]string{"1:1:x\n1:0:\n1:1:y\n"}, "x", false},
		"a part, then a forgery": {[]string{"1:1:x\n", "x\n"}, "x", true},
	} {
		t.Run(name, func(t *testing.T) {
			input, err := stdin.Open(&gate.Gate{})
			if err != nil {
				t.Fatal(err)
			}
			defer input.Close()
			ctx, cancel := context.WithCancel(t.Context())
			x := &bridge{sandbox: &sandbox{server: New(Options{})}, cancel: cancel, input: input, ended: make(chan struct{}),
				conns: map[uint16]*bridged{}, idle: time.AfterFunc(time.Hour, cancel)}
			conn, err := x.openConnection()
			if err != nil {
				t.Fatal(err)
			}
			for _, data := range tt.output {
				x.readChunk(proposal.Chunk{Stream: proposal.ChunkStdout, Data: []byte(data)})
			}
			var got strings.Builder
			buffer := make([]byte, 100)
			_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
			for {
				n, err := conn.Read(buffer)
				if got.Write(buffer[:n]); err != nil {
					break
				}
			}
			if name != "more than the window" && got.String() != tt.want || (ctx.Err() != nil) != tt.isStopped {
				t.Errorf("got %q, %v", got.String(), ctx.Err())
			}
		})
	}
}

// What a sandbox forges is a number that its client gets, and nothing else.
func TestParseUsage(t *testing.T) {
	real := "cpu  6 0 6 4574 3 0\ncpu0 3 0 3 2287\nMemTotal:  2048 kB\nMemFree: 1024 kB\nCached: 8 kB\n Used\n 4096\n"
	if got, want := parseUsage(real), (usage{12, 4589, 1 << 20, 8 << 10, 2 << 20, 4096}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, forged := range []string{"", "cpu", "cpu a b c d e\nMemTotal: x kB\n-5\n", "cpu -1 -1 -1 -1 -1\nMemFree: -9 kB",
		"MemTotal: 99999999999999999999 kB\n9223372036854775807\n"} {
		if got := parseUsage(forged); got != (usage{}) {
			t.Errorf("%q: %+v", forged, got)
		}
	}
}
