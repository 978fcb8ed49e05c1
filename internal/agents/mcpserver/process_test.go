// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Calls of one client run their commands beside each other, and one with a network alone.
func TestRunBeside(t *testing.T) {
	for _, alone := range []bool{false, true} {
		w := newWorld()
		w.release, w.alone = make(chan struct{}), alone
		cs := start(t, w, Options{}, mcp.ClientOptions{})
		call(t, cs, "run", proposeArgs{Command: "true"})
		var calls sync.WaitGroup
		for range 4 {
			calls.Go(func() { call(t, cs, "run", proposeArgs{Command: "wait"}) })
		}
		if !alone {
			eventually(t, "four commands", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.beside == 4 })
			calls.Go(func() { call(t, cs, "run", proposeArgs{Command: "fetch", Network: []string{"api.example"}}) })
			time.Sleep(20 * time.Millisecond)
			if w.has("run fetch") {
				t.Error("a command with a network ran beside others")
			}
		}
		close(w.release)
		calls.Wait()
		if ran := w.has("run fetch"); ran == alone {
			t.Errorf("the command with a network ran: %v", ran)
		}
	}
}

// A command in the background goes on after its call, shows its output in parts, and ends when it is stopped or
// with its session. One that ends at once is answered like any other.
func TestProcess(t *testing.T) {
	w := newWorld()
	w.release = make(chan struct{})
	cs := start(t, w, Options{}, mcp.ClientOptions{})
	process := func(in processArgs) string { t.Helper(); return words(call(t, cs, "process", in)) }
	if got := process(processArgs{}); got != "no command was started in the background" {
		t.Errorf("nothing: %q", got)
	}
	for command, want := range map[string]string{"true": "exit code 0", "deny": "not run: policy denied it", "ask": "not run: it needs an approval"} {
		if got := words(call(t, cs, "run", proposeArgs{Command: command, Background: true})); !strings.Contains(got, want) || strings.Contains(got, "note: ") {
			t.Errorf("%s: %q", command, got)
		}
	}
	started := words(call(t, cs, "run", proposeArgs{Command: "wait", Background: true}))
	id, _, _ := strings.Cut(started, ":")
	if want := id + ": running in the background\noutput, bytes 0 to 18 of 18:\n```\n1 of 2\n2 of 2\n```"; started != want {
		t.Errorf("%q, want %q", started, want)
	}
	if got := process(processArgs{ID: id, Since: 7}); !strings.Contains(got, "bytes 7 to 18 of 18:\n```\n") || strings.Contains(got, "1 of 2") {
		t.Errorf("a part: %q", got)
	}
	if got := words(call(t, cs, "run", proposeArgs{Command: "true"})); !strings.Contains(got, "exit code 0") {
		t.Errorf("another command: %q", got)
	}
	if got := process(processArgs{}); !strings.HasPrefix(got, id+": running, ") || !strings.HasSuffix(got, ": wait") {
		t.Errorf("the list: %q", got)
	}
	if got := process(processArgs{ID: id, Stop: true}); !strings.HasPrefix(got, id+": killed by SIGKILL, 5 ms\n") {
		t.Errorf("stopped: %q", got)
	}
	for _, in := range []processArgs{{ID: "c99"}, {Since: 1}, {Stop: true}, {ID: id, Since: -1}, {ID: id, Wait: 61}, {ID: id, Input: "x"}, {ID: id, EOF: true}, {Input: "x"}} {
		if r := call(t, cs, "process", in); !r.IsError || !strings.Contains(words(r), "mcp.arguments") {
			t.Errorf("%+v: %s", in, words(r))
		}
	}
	for in, want := range map[*proposeArgs]string{{Command: "wait", Input: true}: "mcp.arguments", {Command: "wait", Input: true, Background: true, Stdin: "x"}: "mcp.arguments",
		{Command: "wait", Input: true, Background: true}: "session.input"} { // its session is not of this process
		if r := call(t, cs, "run", in); !r.IsError || !strings.Contains(words(r), want) {
			t.Errorf("%+v: %s", in, words(r))
		}
	}
	call(t, cs, "run", proposeArgs{Command: "wait", Background: true})
	call(t, cs, "end_session", nil)
	if got := process(processArgs{}); got != "no command was started in the background" {
		t.Errorf("after the session: %q", got)
	}
	close(w.release)
}

// What is kept of a command's output is bounded, and its positions stay.
func TestPrinted(t *testing.T) {
	b := printed{more: make(chan struct{})}
	total := int64(0)
	for i := range 50_000 {
		line := fmt.Sprintf("line %d ä\n", i)
		b.addChunk(proposal.Chunk{Data: []byte(line)})
		total += int64(len(line))
	}
	if len(b.bytes) > 2*maxBuffer || b.end != total {
		t.Errorf("%d bytes, end %d of %d", len(b.bytes), b.end, total)
	}
	part, begin, end := b.readSince(0)
	if begin != total-int64(len(b.bytes)) || end != total || len(part) > maxStdout || !strings.HasSuffix(string(part), "\n") && !strings.ContainsRune(string(part), 'ä') {
		t.Errorf("from %d to %d of %d: %q", begin, begin+int64(len(part)), end, part[len(part)-20:])
	}
	var all strings.Builder
	for at := begin; at < end; {
		part, from, _ := b.readSince(at)
		if from != at || len(part) == 0 {
			t.Fatalf("at %d: %d bytes from %d", at, len(part), from)
		}
		if s := string(part); strings.ToValidUTF8(s, "?") != s && at > begin {
			t.Errorf("at %d: a divided character", at)
		}
		all.Write(part)
		at += int64(len(part))
	}
	if got := all.String(); !strings.HasSuffix(got, "line 49999 ä\n") || strings.Count(got, "line ") < maxBuffer/20 {
		t.Errorf("%d lines", strings.Count(got, "line "))
	}
}
