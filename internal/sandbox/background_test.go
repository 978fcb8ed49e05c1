// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// printed collects what a command in the background prints while it runs.
type printed struct {
	mu   sync.Mutex
	text strings.Builder
}

func (p *printed) take(c proposal.Chunk) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text.Write(c.Data)
}

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// until waits until cond holds.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what, "did not happen")
		}
	}
}

// background starts text and waits until it has printed something.
func background(t *testing.T, r *Runner, id, text string) (Process, *printed) {
	t.Helper()
	return startPrinting(t, r, Execution{ID: id, Text: text, Grant: proposal.Grant{Limits: testLimits()}})
}

// startPrinting starts x and waits until it has printed something.
func startPrinting(t *testing.T, r *Runner, x Execution) (Process, *printed) {
	t.Helper()
	out := &printed{}
	x.Output = out.take
	p, err := r.Start(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	until(t, x.ID+"'s output", func() bool { return out.String() != "" || ended(p) })
	return p, out
}

func ended(p Process) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// outcomeOf waits for the result, which must be complete.
func outcomeOf(t *testing.T, p Process) proposal.Result {
	t.Helper()
	r, err := p.Result()
	if err != nil {
		t.Fatal(err)
	}
	if r.Observations == nil || !r.Observations.Complete {
		t.Errorf("not complete: %+v, %s %q", r.Observations, r.Outcome(), r.Detail)
	}
	return r
}

// of returns the events of one command, by kind and path, sorted.
func (r *recorder) of(id string) (list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Command == id && e.Kind != proposal.EventExit {
			list = append(list, e.Kind+" "+e.Path)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// programs returns which programs run in the sandbox, except for init and the question.
func programs(t *testing.T, r *Runner) string {
	t.Helper()
	out, _ := play(t, r, `for p in /proc/[0-9]*; do [ $p = /proc/1 ] || [ $p = /proc/$$ ] || cat $p/comm; done 2>/dev/null; true`)
	return strings.Join(strings.Fields(strings.ReplaceAll(out, "cat", "")), " ")
}

// A command in the background goes on while others run, one after the other; each event is
// its own command's.
func TestBackground(t *testing.T) {
	t.Parallel()
	o, rec := gatedOptions(t)
	r := testRunner(t, o)
	p, out := background(t, r, "bg", "while :; do echo tick; sleep 0.02; date >/tmp/now; done")
	if result, err := r.Run(t.Context(), cellOf("cell", "", "x=41\n")); err != nil || !result.Succeeded() {
		t.Fatalf("%v, %+v", err, result)
	}
	for i := range 5 {
		before := len(out.String())
		if text, result := play(t, r, "uname; echo >/tmp/f; env true"); text != "Linux\n" || result.Leftover != 0 {
			t.Errorf("%d: %q, %+v", i, text, result)
		}
		until(t, "a tick", func() bool { return len(out.String()) > before })
	}
	if result, err := r.Put(t.Context(), "made", []byte("x")); err != nil || result.Outputs[0].Refused != "" {
		t.Errorf("%v, %+v", err, result)
	}
	before := len(out.String())
	until(t, "a tick after Put", func() bool { return len(out.String()) > before })
	if result, err := r.Run(t.Context(), cellOf("cell2", "x=41\n", "echo $((x + 1))")); err != nil || string(result.Stdout.Head) != "42\n" {
		t.Errorf("%v, %+v", err, result)
	}
	p.Kill(proposal.KilledCaller)
	result := outcomeOf(t, p)
	if result.Status != proposal.Signaled || result.Killed != proposal.KilledCaller || result.Stdout.Bytes < 30 {
		t.Errorf("%+v", result)
	}
	if got := programs(t, r); got != "bash" { // of the cells
		t.Errorf("left: %q", got)
	}
	if got := rec.of("bg"); !slices.Equal(got, []string{"exec /usr/bin/bash", "exec /usr/bin/date", "exec /usr/bin/sleep", "write /tmp/now"}) {
		t.Errorf("of the background: %q", got)
	}
	if got := rec.of("x"); slices.Contains(got, "exec /usr/bin/sleep") || slices.Contains(got, "exec /usr/bin/date") || slices.Contains(got, "write /tmp/now") || !slices.Contains(got, "exec /usr/bin/uname") {
		t.Errorf("of the foreground: %q", got)
	}
}

// How a command in the background ends is a value, whatever it leaves behind.
func TestBackgroundEnds(t *testing.T) {
	t.Parallel()
	r, _ := gated(t)
	for _, test := range []struct {
		name, text, want string
	}{
		{"exits", "echo up; exit 3", "exit code 3, 0 left"},
		{"is refused", "/opt/bin/canary", "exit code 126, 0 left"},
		{"is not there", "/nothing", "exit code 127, 0 left"},
		{"kills itself", "echo up; kill -SEGV $$", "SIGSEGV, 0 left"},
		{"leaves a job", "sleep 1000 & echo up", "exit code 0, 1 left"},
		{"leaves a daemon", "/opt/bin/testprogram daemon /opt/bin/testprogram sleep 1000s", "exit code 0, 1 left"},
		{"leaves a session", "echo up; setsid -f sleep 1000", "exit code 0, 1 left"},
		{"prints too much", "echo up; yes", "output limit, 0 left"},
	} {
		p, _ := background(t, r, "bg", test.text)
		result := outcomeOf(t, p)
		if got := fmt.Sprintf("%s, %d left", result.Outcome(), result.Leftover); got != test.want && !(test.name == "prints too much" && result.Status == proposal.OutputLimit) {
			t.Errorf("%s: %s, want %s: %+v", test.name, got, test.want, result)
		}
		if got := programs(t, r); got != "" {
			t.Errorf("%s: left %q", test.name, got)
		}
	}
}

// The time limit, an interrupt, the end of the sandbox and of another command.
func TestBackgroundStopped(t *testing.T) {
	t.Parallel()
	r, _ := gated(t)
	limits := testLimits()
	limits.Wall = proposal.Duration(300 * time.Millisecond)
	p, err := r.Start(t.Context(), Execution{ID: "slow", Text: "sleep 1000", Grant: proposal.Grant{Limits: limits}})
	if err != nil {
		t.Fatal(err)
	}
	if result := outcomeOf(t, p); result.Status != proposal.TimedOut || result.Limit != "wall 300ms" {
		t.Errorf("%+v", result)
	}
	p, out := background(t, r, "interrupted", "/opt/bin/testprogram interrupt")
	if err := p.Interrupt(); err != nil {
		t.Error(err)
	}
	if result := outcomeOf(t, p); !result.Succeeded() || out.String() != "up\ninterrupted\n" {
		t.Errorf("%q, %+v", out, result)
	}
	p, _ = background(t, r, "bg", "echo up; sleep 1000")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if result, err := r.Run(ctx, Execution{ID: "fg", Text: "sleep 1000", Grant: proposal.Grant{Limits: testLimits()}}); err == nil || result.Status != proposal.Signaled {
		t.Errorf("%v, %+v", err, result)
	}
	if out, _ := play(t, r, "echo on"); out != "on\n" || ended(p) {
		t.Errorf("%q, the background has ended: %v", out, ended(p))
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if result, err := p.Result(); err != nil || result.Status != proposal.Signaled || result.Killed != proposal.KilledSandbox {
		t.Errorf("%v, %+v", err, result)
	}
	if _, err := r.Start(t.Context(), Execution{ID: "late", Text: "true", Grant: proposal.Grant{Limits: testLimits()}}); err == nil {
		t.Error("a closed runner starts a command")
	}
}

// A command that forks and starts programs without end, in sessions of its own, is ended
// like any other, and its events stay its own.
func TestBackgroundForks(t *testing.T) {
	t.Parallel()
	r, rec := gated(t)
	const bomb = `export bomb='while :; do setsid /usr/bin/true & setsid bash -c "$bomb" & done'; echo up; setsid bash -c "$bomb" 2>/dev/null & exec sleep 1000`
	for i := range sample.Rounds(t, 3, 1, 1) {
		id := fmt.Sprint("bomb", i)
		p, _ := background(t, r, id, bomb)
		rec.reset(deny)
		for range 2 {
			if out, result := play(t, r, "uname"); out != "Linux\n" && result.Status != proposal.ProcessLimit {
				t.Logf("%q, %+v", out, result) // the processes are the sandbox's
			}
		}
		if got := rec.of("x"); slices.Contains(got, "exec /usr/bin/true") || slices.Contains(got, "exec /usr/bin/setsid") {
			t.Errorf("of the foreground: %q", got)
		}
		p.Kill(proposal.KilledCaller)
		if result := outcomeOf(t, p); result.Status != proposal.Signaled {
			t.Errorf("%+v", result)
		}
		if got := programs(t, r); got != "" {
			t.Errorf("left: %q", got)
		}
	}
}

// What floods the record ends only its own command.
func TestBackgroundFlood(t *testing.T) {
	t.Parallel()
	o, rec := gatedOptions(t)
	o.Events = 2000
	r := testRunner(t, o)
	p, _ := background(t, r, "bg", "echo up; /opt/bin/tricks flood 1000000; sleep 1000")
	for range 3 {
		if out, result := play(t, r, "uname; uname"); out != "Linux\nLinux\n" || !result.Succeeded() {
			t.Errorf("%q, %+v", out, result)
		}
	}
	result, err := p.Result()
	if err != nil || result.Status != proposal.OutputLimit || result.Limit != "events 2000" || result.Observations.Complete {
		t.Errorf("%v, %+v", err, result)
	}
	if got := rec.of("x"); !slices.Equal(got, []string{"exec /usr/bin/bash", "exec /usr/bin/uname"}) {
		t.Errorf("of the foreground: %q", got)
	}
}

// Commands have one user: one can kill or stop another. It cannot make its deeds another's.
func TestBackgroundHarm(t *testing.T) {
	t.Parallel()
	o, rec := gatedOptions(t)
	r := testRunner(t, o)
	if result, err := r.Run(t.Context(), cellOf("cell", "", "x=1\n")); err != nil || !result.Succeeded() {
		t.Fatalf("%v, %+v", err, result)
	}
	victim, _ := background(t, r, "victim", "echo up; sleep 1000; echo on")
	killer, _ := background(t, r, "killer", "echo up; kill -STOP -1; sleep 0.1; date; kill -9 -1")
	if result := outcomeOf(t, victim); result.Signal != "SIGKILL" {
		t.Errorf("%+v", result)
	}
	if result := outcomeOf(t, killer); result.Status == proposal.SandboxFailed {
		t.Errorf("%+v", result)
	}
	if got := rec.of("victim"); slices.Contains(got, "exec /usr/bin/date") {
		t.Errorf("of the victim: %q", got)
	}
	if out, result := play(t, r, "uname"); out != "Linux\n" || !result.Succeeded() {
		t.Errorf("%q, %+v", out, result)
	}
	result, err := r.Run(t.Context(), cellOf("cell2", "x=1\n", "echo $x"))
	if err != nil || result.Status == proposal.SandboxFailed {
		t.Errorf("%v, %+v", err, result)
	}
}

// At most MaxBackground run at once, and what cannot run in the background is refused.
func TestBackgroundRefused(t *testing.T) {
	t.Parallel()
	r, _ := gated(t)
	x := Execution{ID: "x", Text: "sleep 1000", Grant: proposal.Grant{Limits: testLimits()}}
	var list []Process
	for range MaxBackground {
		p, err := r.Start(t.Context(), x)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	net, outputs, service := x, x, x
	net.Grant.Network, outputs.Outputs, service.Service = []string{"a.example:443"}, []string{"a"}, true
	for i, x := range []Execution{x, net, outputs, service, cellOf("c", "", "true")} {
		if _, err := r.Start(t.Context(), x); err == nil || !strings.Contains(err.Error(), "sandbox.background") {
			t.Errorf("%d: %v", i, err)
		}
	}
	for i, p := range list {
		if i%2 == 0 {
			p.Kill(proposal.KilledCaller)
			outcomeOf(t, p)
		}
	}
	// A shell becomes its program only after Start has returned.
	want := fmt.Sprint(MaxBackground / 2)
	poll := "i=0; while n=$(cat /proc/[0-9]*/comm | grep -c sleep); [ $n != " + want + " ] && [ $((i+=1)) -lt 100 ]; do :; done; echo $n"
	if out, _ := play(t, r, poll); strings.TrimSpace(out) != want {
		t.Errorf("%q sleep", out)
	}
}

// Daemons of a command that has ended start no more programs: they are killed, and the
// commands after it have none of their events. One that traces or stops others changes
// nothing about that.
func TestBackgroundOutlives(t *testing.T) {
	t.Parallel()
	r, rec := gated(t)
	for range sample.Rounds(t, 3, 1, 1) {
		p, _ := background(t, r, "bg", "/opt/bin/tricks daemons")
		result := outcomeOf(t, p)
		if !result.Succeeded() || result.Leftover < 4 {
			t.Errorf("%+v", result)
		}
		if got := rec.of("bg"); !slices.Contains(got, "exec /usr/bin/true") {
			t.Errorf("of the background: %q", got)
		}
		rec.reset(deny)
		for range 3 {
			if out, result := play(t, r, "uname"); out != "Linux\n" || result.Leftover != 0 {
				t.Errorf("%q, %+v", out, result)
			}
		}
		if got := rec.of("bg"); len(got) > 0 {
			t.Errorf("after its end: %q", got)
		}
		if got := rec.of("x"); !slices.Equal(got, []string{"exec /usr/bin/bash", "exec /usr/bin/uname"}) {
			t.Errorf("of the foreground: %q", got)
		}
		if got := programs(t, r); got != "" {
			t.Errorf("left: %q", got)
		}
		rec.reset(deny)
	}
}
