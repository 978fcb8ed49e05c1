// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An arrival is text that a command printed, as it came while the command ran.
type arrival struct {
	stream, text string
	at           time.Duration
}

// arrivals collects what comes.
type arrivals struct {
	mu    sync.Mutex
	begin time.Time
	list  []arrival
	lost  int64
}

func (a *arrivals) take(c proposal.Chunk) {
	a.mu.Lock()
	defer a.mu.Unlock()
	text := string(c.Data)
	if c.Display != nil {
		text = c.Display.Forms["text/plain"]
	}
	a.list = append(a.list, arrival{c.Stream, text, time.Since(a.begin)})
	a.lost += c.Dropped
}

func (a *arrivals) in(ctx context.Context) context.Context {
	a.begin = time.Now()
	return gate.WithOutput(ctx, a.take)
}

// text returns what came of one stream, or of all.
func (a *arrivals) text(stream string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var b strings.Builder
	for _, x := range a.list {
		if stream == "" || x.stream == stream {
			b.WriteString(x.text)
		}
	}
	return b.String()
}

func (a *arrivals) has(text string) bool { return strings.Contains(a.text(""), text) }

// What a command prints comes while it runs, in order, and the Record has all of it, too.
func TestOutputComes(t *testing.T) {
	t.Parallel()
	s := open(t, newGate(t, gate.Options{}), gate.SessionOptions{})
	defer s.Close()
	ran(t, s, run("warm", "true"))
	var shell arrivals
	r, err := s.Do(shell.in(t.Context()), run("shell", "echo one; echo err >&2; sleep 0.5; echo two"))
	if err != nil || string(r.Result.Stdout.Head) != "one\ntwo\n" || shell.text("stdout") != "one\ntwo\n" || shell.text("stderr") != "err\n" {
		t.Errorf("%v: %q, came %+v", err, r.Result.Stdout.Head, shell.list)
	}
	if first, last := shell.list[0].at, shell.list[len(shell.list)-1].at; last-first < 250*time.Millisecond {
		t.Errorf("all came at the end: %+v", shell.list)
	}
}

// A command that prints a secret slowly, letter by letter and line by line, does not get it
// past the search.
func TestOutputSlowSecret(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-is-a-secret"
	workspace := t.TempDir()
	// The script has the secret in parts, as the workspace must not contain it.
	writeFile(t, workspace, "slow.sh", "for end in '' '\\n'; do for c in h u n t e r 2 - i s - a - s e c r e t; do printf -- \"$c$end\"; sleep 0.02; done; echo; done; echo end\n")
	s := open(t, newGate(t, gate.Options{Workspace: workspace, Masks: []gate.Mask{{Name: "PASSWORD", Value: secret}}}), gate.SessionOptions{})
	defer s.Close()
	ran(t, s, run("warm", "true"))
	var came arrivals
	if r, err := s.Do(came.in(t.Context()), run("slow", "sh slow.sh")); err != nil || r.Result == nil || !r.Result.Succeeded() {
		t.Fatalf("%v, %+v, %+v", err, r.Decision, r.Result)
	}
	// The first letter comes alone if the search is faster than the second.
	if got, want := strings.Replace(came.text(""), "\nh\n", "\n", 1), "[redacted PASSWORD]\n[redacted PASSWORD]\n\nend\n"; got != want {
		t.Errorf("came %q, want %q", got, want)
	}
}

// A receiver that does not return while the command runs does not hold it up.
func TestOutputSlowReceiver(t *testing.T) {
	t.Parallel()
	s := open(t, newGate(t, gate.Options{}), gate.SessionOptions{})
	defer s.Close()
	ran(t, s, run("warm", "true"))
	watcher, seen := startProcess(t, s, run("watcher", "echo up; until [ -e flooded ]; do sleep 0.05; done; echo flooded"))
	var came arrivals
	ctx := gate.WithOutput(t.Context(), func(c proposal.Chunk) {
		came.take(c)
		<-watcher.Done()
	})
	r, err := s.Do(ctx, run("flood", "yes | head -c 3000000; touch flooded"))
	if err != nil || !r.Result.Succeeded() || r.Result.Stdout.Bytes != 3000000 {
		t.Errorf("%v: %+v", err, r.Result)
	}
	if got := seen.text(""); got != "up\nflooded\n" {
		t.Errorf("the command did not end before its receiver returned: the watcher printed %q", got)
	}
	// What came before the receiver returned is bounded, and so is the rest of a pipe after it.
	if n := len(came.text("")); n == 0 || n > 2<<20 {
		t.Errorf("%d bytes came", n)
	}
}
