// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// stdio sends messages to a server, keeps its input open until it has ended or half a
// second has passed, and returns what it wrote and its error.
func stdio(t testing.TB, w *world, messages string) (string, error) {
	t.Helper()
	in, feed := io.Pipe()
	go func() {
		_, _ = io.WriteString(feed, messages)
		time.Sleep(500 * time.Millisecond)
		feed.Close()
	}()
	var out bytes.Buffer
	err := serverOf(w, Options{}).ServeStdio(t.Context(), in, &out)
	in.Close()
	return out.String(), err
}

const hello = initialize + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"

const callTrue = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run","arguments":{"command":"true"}}}` + "\n"

// A line that is no message is answered, and the next one is read.
func TestStdioGarbage(t *testing.T) {
	for name, x := range map[string]struct{ garbage, want string }{
		"text":                {"hello\n", `"code":-32700`},
		"half of a message":   {`{"jsonrpc":` + "\n", `"code":-32700`},
		"another protocol":    {"GET / HTTP/1.1\r\n", `"code":-32700`},
		"another object":      {`{"method":"ping","id":9}` + "\n", `"code":-32600`},
		"a number":            {"5\n", `"code":-32600`},
		"an empty line":       {"\n \r\n", ""},
		"more than one error": {"a\nb\n", `"code":-32700`},
	} {
		w := newWorld()
		out, err := stdio(t, w, hello+x.garbage+callTrue)
		if err != nil || !w.has("run true") || !w.has("seal") || !strings.Contains(out, x.want) || strings.Contains(out, `"error"`) != (x.want != "") {
			t.Errorf("%s: %v, did %q\n%s", name, err, w.did, out)
		}
		for line := range strings.Lines(out) {
			if !json.Valid([]byte(line)) {
				t.Errorf("%s: wrote %q", name, line)
			}
		}
	}
}

// A line that is too long ends the server, and the log is sealed.
func TestStdioTooLong(t *testing.T) {
	w := newWorld()
	in, feed := io.Pipe()
	go func() {
		_, _ = io.WriteString(feed, hello+callTrue)
		eventually(t, "the command", func() bool { return w.has("run true") })
		_, _ = io.WriteString(feed, `{"x":"`+strings.Repeat("x", maxFrame)+`"}`+"\n")
	}()
	var out bytes.Buffer
	err := serverOf(w, Options{}).ServeStdio(t.Context(), in, &out)
	in.Close()
	if err == nil || proposal.FailureOf(err).Code != "mcp.protocol" || !w.has("seal") || !w.has("close gate") {
		t.Errorf("%v, did %q", err, w.did)
	}
}

// Whatever a client sends, the server ends with its input, writes only messages, and runs
// nothing that its policy denies.
func FuzzStdio(f *testing.F) {
	f.Add(callTrue)
	f.Add(strings.Replace(callTrue, "true", "deny", 1))
	f.Add(`{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"fumehood://output/x"}}` + "\n")
	f.Add(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"run","arguments":{"command":"ask"},"requestState":"x.y"}}` + "\n")
	f.Add(`[{"jsonrpc":"2.0","id":5,"method":"ping"}]` + "\n")
	f.Fuzz(func(t *testing.T, messages string) {
		w := newWorld()
		var out bytes.Buffer
		_ = serverOf(w, Options{}).ServeStdio(t.Context(), strings.NewReader(hello+messages), &out)
		d := json.NewDecoder(&out)
		for {
			var message struct{ JSONRPC string }
			if err := d.Decode(&message); err == io.EOF {
				break
			} else if err != nil || message.JSONRPC != "2.0" {
				t.Fatalf("wrote %q, %v", message, err)
			}
		}
		if w.has("run deny") || w.has("run ask") {
			t.Errorf("did %q", w.did)
		}
	})
}

// A server answers what came before its input ended.
func TestStdioAnswers(t *testing.T) {
	lanetest.SkipShort(t)
	w := newWorld()
	w.out = "hi\n"
	if out, err := stdio(t, w, hello+callTrue); err != nil || !strings.Contains(out, `"id":2`) || !strings.Contains(out, "exit code 0") || !w.has("seal") {
		t.Errorf("%v\n%s", err, out)
	}
}
