// SPDX-License-Identifier: Apache-2.0

package hood

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/pkg/proposal"
)

var morning = time.Date(2026, 11, 21, 4, 5, 6, 789, time.UTC)

// started is the event of a program that began.
func started(pid, parent int, program string, argv ...string) proposal.Event {
	return proposal.Event{
		Command: "a", Kind: proposal.EventExec, Time: morning, Pid: pid, Parent: parent,
		Exec:     &proposal.Exec{Command: "a", Path: program, Argv: argv, ArgvDigest: "sha256:00", Layer: proposal.LayerRootfs, Pid: pid, Parent: parent},
		Decision: &proposal.ExecDecision{Effect: proposal.Allow, Rules: []string{"exec.rootfs"}, Cacheable: true},
	}
}

func refusal(pid, parent int, program, rule string) proposal.Event {
	e := started(pid, parent, program, program)
	e.Kind, e.Errno = proposal.EventRefused, "EACCES"
	e.Decision = &proposal.ExecDecision{Effect: proposal.Deny, Rules: []string{rule}, Reason: &proposal.Reason{Rule: rule, Message: "no", Command: -1}}
	return e
}

func exited(pid int, status int) proposal.Event {
	return proposal.Event{Command: "a", Kind: proposal.EventExit, Time: morning, Pid: pid, Status: status}
}

func event(kind, path string) proposal.Event {
	return proposal.Event{Command: "a", Kind: kind, Time: morning, Pid: 2, Parent: 1, Program: "/usr/bin/tool", Path: path}
}

// watching is a hood whose command "a" does what events say, with its log.
func watching(t *testing.T, w *world, recorded *proposal.Observations, events ...proposal.Event) (*Hood, *keeper) {
	t.Helper()
	w.decide = map[string]proposal.Effect{"a": proposal.Allow}
	k := &keeper{world: w}
	h := w.hood()
	h.p.Log = k
	h.p.Observer = NewObserver(k, nil)
	w.results = map[string]proposal.Result{"a": {Status: proposal.Exited, Observations: recorded}}
	w.during = func(context.Context) {
		for _, e := range events {
			h.p.Observer.See(e)
		}
	}
	return h, k
}

func whole() *proposal.Observations { return &proposal.Observations{Complete: true} }

// Everything that was seen stands in the log between the start and the result.
func TestEventsInLog(t *testing.T) {
	var events []proposal.Event
	for pid := range 1500 {
		events = append(events, started(pid+2, 1, "/bin/true", "true"))
	}
	h, k := watching(t, &world{}, whole(), events...)
	report, err := h.Run(t.Context(), planOf("a"), proposal.Run{})
	if err != nil {
		t.Fatal(err)
	}
	var seen []proposal.Event
	for i, e := range k.entries {
		if e.Kind != "events" {
			continue
		}
		if k.entries[i-1].Kind != "start" && k.entries[i-1].Kind != "events" {
			t.Errorf("events after %q", k.entries[i-1].Kind)
		}
		var body eventsOf
		if err := json.Unmarshal(e.Body, &body); err != nil {
			t.Fatal(err)
		}
		if body.First != int64(len(seen)) || body.ID != "a" || len(body.Events) > batchEvents {
			t.Errorf("batch of %d from %d, of %q, after %d", len(body.Events), body.First, body.ID, len(seen))
		}
		seen = append(seen, body.Events...)
	}
	if len(seen) != len(events) {
		t.Fatalf("%d events in the log, want %d", len(seen), len(events))
	}
	for i := range seen {
		if seen[i].Pid != events[i].Pid || seen[i].Exec.ArgvDigest != "sha256:00" {
			t.Fatalf("event %d is of process %d, want %d", i, seen[i].Pid, events[i].Pid)
		}
	}
	o := report.Records[0].Result.Observations
	if o == nil || !o.Complete || o.Counts.Execs != len(events) || len(o.Execs) != mostExecs {
		t.Errorf("%d execs counted and %d listed, complete %v", o.Counts.Execs, len(o.Execs), o.Complete)
	}
	if doubts := CompareLog(report, k.entries); len(doubts) > 0 {
		t.Errorf("doubts about what was just written: %q", doubts)
	}
}

// A record is complete only when the sandbox says so and nothing went astray.
func TestComplete(t *testing.T) {
	foreign := started(3, 1, "/bin/true")
	foreign.Command = "b"
	for name, test := range map[string]struct {
		recorded *proposal.Observations
		events   []proposal.Event
		want     bool
	}{
		"whole":                  {whole(), []proposal.Event{started(2, 1, "/bin/true")}, true},
		"no last word":           {&proposal.Observations{}, []proposal.Event{started(2, 1, "/bin/true")}, false},
		"dropped":                {&proposal.Observations{Complete: true, Counts: proposal.Counts{Dropped: 1}}, nil, false},
		"of another command":     {whole(), []proposal.Event{foreign}, false},
		"the sandbox is unaware": {nil, []proposal.Event{started(2, 1, "/bin/true")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := watching(t, &world{}, test.recorded, test.events...)
			report, err := h.Run(t.Context(), planOf("a"), proposal.Run{})
			if err != nil {
				t.Fatal(err)
			}
			if o := report.Records[0].Result.Observations; o == nil || o.Complete != test.want {
				t.Errorf("observations %+v, want complete %v", o, test.want)
			}
		})
	}
}

func TestNothingWatched(t *testing.T) {
	h, k := watching(t, &world{}, nil)
	report, err := h.Run(t.Context(), planOf("a"), proposal.Run{})
	if err != nil {
		t.Fatal(err)
	}
	if o := report.Records[0].Result.Observations; o != nil {
		t.Errorf("observations %+v of nobody", o)
	}
	if slices.ContainsFunc(k.entries, func(e Entry) bool { return e.Kind == "events" }) {
		t.Error("events of nobody in the log")
	}
}

// THREATS 30: a log that cannot take an event ends the command, and the run.
func TestLogFailsWhileWatching(t *testing.T) {
	stopped := &proposal.StopError{Code: "audit.full", Message: "no room"}
	w := &world{fail: map[string]error{"log events": stopped}}
	h, k := watching(t, w, whole())
	k.fails = "events"
	k.err = stopped
	ended := make(chan error, 1)
	w.during = func(ctx context.Context) {
		h.p.Observer.See(started(2, 1, "/bin/true"))
		<-ctx.Done() // the sandbox kills the command
		ended <- context.Cause(ctx)
	}
	report, err := h.Run(t.Context(), planOf("a"), proposal.Run{})
	if !errors.Is(err, stopped) || report.Error == nil || report.Error.Code != "audit.full" {
		t.Errorf("error %v, report's %+v, want audit.full", err, report.Error)
	}
	if cause := <-ended; !errors.Is(cause, stopped) {
		t.Errorf("command ended because of %v", cause)
	}
	if o := report.Records[0].Result.Observations; o == nil || o.Complete {
		t.Errorf("observations %+v, want not complete", o)
	}
}

// A policy that cannot judge a program ends the command and the run, and what was
// seen until then is in the log.
func TestFail(t *testing.T) {
	w := &world{}
	h, k := watching(t, w, whole())
	w.during = func(ctx context.Context) {
		h.p.Observer.See(started(2, 1, "/bin/true"))
		h.p.Observer.Fail(&proposal.StopError{Code: "policy.deadline", Message: "no answer"})
		<-ctx.Done()
	}
	report, _ := h.Run(t.Context(), planOf("a"), proposal.Run{})
	if report.Error == nil || report.Error.Code != "policy.deadline" || report.Records[0].Result.Observations.Complete {
		t.Errorf("error %+v", report.Error)
	}
	if !slices.ContainsFunc(k.entries, func(e Entry) bool { return e.Kind == "events" }) {
		t.Error("what was seen is not in the log")
	}
	h.p.Observer.Fail(errors.New("nobody runs"))
}

// A log that is slower than the command makes it wait; nothing is lost, and what
// waits is bounded.
func TestSlowLog(t *testing.T) {
	w := &world{}
	h, k := watching(t, w, whole())
	k.slow = 20 * time.Millisecond
	most := 0
	w.during = func(context.Context) {
		for pid := range 4000 {
			h.p.Observer.See(started(pid+2, 1, "/bin/true"))
			h.p.Observer.mu.Lock()
			most = max(most, len(h.p.Observer.watch.batch.Events))
			h.p.Observer.mu.Unlock()
		}
	}
	report, err := h.Run(t.Context(), planOf("a"), proposal.Run{})
	if err != nil {
		t.Fatal(err)
	}
	if n := report.Records[0].Result.Observations.Counts.Execs; n != 4000 || most > batchEvents {
		t.Errorf("%d execs seen, at most %d waiting", n, most)
	}
}

// A batch does not wait for the next event.
func TestBatchAge(t *testing.T) {
	w := &world{}
	h, k := watching(t, w, whole())
	w.during = func(context.Context) {
		h.p.Observer.See(started(2, 1, "/bin/sleep"))
		deadline := time.Now().Add(5 * time.Second)
		for k.last() != "events" && time.Now().Before(deadline) {
			time.Sleep(5 * time.Millisecond)
		}
	}
	if _, err := h.Run(t.Context(), planOf("a"), proposal.Run{}); err != nil {
		t.Fatal(err)
	}
	kinds := []string{}
	for _, e := range k.entries {
		kinds = append(kinds, e.Kind)
	}
	if diff := cmp.Diff([]string{"run", "decision", "start", "events", "result", "end"}, kinds); diff != "" {
		t.Error(diff)
	}
}

// The findings are policy's, asked once about each thing of note.
func TestFindings(t *testing.T) {
	connect := event(proposal.EventConnect, "")
	connect.Address = "tcp 169.254.169.254:80"
	h, k := watching(t, &world{}, whole(), started(2, 1, "/bin/true"), connect, connect, refusal(3, 2, "/usr/bin/curl", "exec.net"))
	var asked []string
	h.p.Observer.judge = func(_ context.Context, e proposal.Event) ([]proposal.Finding, error) {
		asked = append(asked, e.Kind)
		return []proposal.Finding{{Rule: "event." + e.Kind, Message: "m", Event: e}}, nil
	}
	report, err := h.Run(t.Context(), planOf("a"), proposal.Run{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{proposal.EventRefused, proposal.EventConnect}, asked); diff != "" {
		t.Error(diff)
	}
	if f := report.Records[0].Result.Observations.Findings; len(f) != 2 || f[1].Event.Times != 2 {
		t.Errorf("findings %+v", f)
	}
	if doubts := CompareLog(report, k.entries); len(doubts) > 0 {
		t.Errorf("doubts: %q", doubts)
	}
	h.p.Observer.judge = func(context.Context, proposal.Event) ([]proposal.Finding, error) {
		return nil, &proposal.StopError{Code: "policy.event", Message: "no answer"}
	}
	if report, _ := h.Run(t.Context(), planOf("a"), proposal.Run{}); report.Error == nil || report.Error.Code != "policy.event" {
		t.Errorf("a judge without an answer: %+v", report.Error)
	}
}

// THREATS 27: a report that tells other things than its log saw is found out.
func TestCompareEvents(t *testing.T) {
	events := []proposal.Event{started(2, 1, "/bin/bash", "bash", "-c", "x"), refusal(3, 2, "/usr/bin/curl", "exec.net"), event(proposal.EventWrite, "/etc/passwd")}
	for name, forge := range map[string]func(*proposal.Observations, *keeper){
		"nothing":                  func(*proposal.Observations, *keeper) {},
		"a refusal less":           func(o *proposal.Observations, _ *keeper) { o.Execs = o.Execs[:1] },
		"another count":            func(o *proposal.Observations, _ *keeper) { o.Counts.Refused = 0 },
		"another program":          func(o *proposal.Observations, _ *keeper) { o.Programs[1].Path = "/bin/true" },
		"nothing of note":          func(o *proposal.Observations, _ *keeper) { o.Notable = nil },
		"complete":                 func(o *proposal.Observations, _ *keeper) { o.Complete = false },
		"a finding more":           func(o *proposal.Observations, _ *keeper) { o.Findings = []proposal.Finding{{Rule: "x"}} },
		"events left out":          func(_ *proposal.Observations, k *keeper) { k.drop("events") },
		"events of another":        func(_ *proposal.Observations, k *keeper) { k.edit("events", `"id":"a"`, `"id":"b"`) },
		"events from further on":   func(_ *proposal.Observations, k *keeper) { k.edit("events", `"first":0`, `"first":1`) },
		"events that are no JSON":  func(_ *proposal.Observations, k *keeper) { k.edit("events", `{`, `[`) },
		"an argument list changed": func(_ *proposal.Observations, k *keeper) { k.edit("events", `sha256:00`, `sha256:01`) },
	} {
		t.Run(name, func(t *testing.T) {
			h, k := watching(t, &world{}, whole(), events...)
			report, err := h.Run(t.Context(), planOf("a"), proposal.Run{})
			if err != nil {
				t.Fatal(err)
			}
			forge(report.Records[0].Result.Observations, k)
			if doubts := CompareLog(report, k.entries); (len(doubts) == 0) != (name == "nothing") {
				t.Errorf("doubts %q", doubts)
			}
		})
	}
}

// What a command can make long is cut before it reaches the log.
func TestHugeEvents(t *testing.T) {
	long := strings.Repeat("\xff\u202e", 1<<20)
	e := started(2, 1, "/tmp/"+long, slices.Repeat([]string{long}, 1000)...)
	e.Exec.Env, e.Exec.Script, e.Exec.Cwd, e.Decision.Rules = slices.Repeat([]string{long}, 100), long, long, slices.Repeat([]string{long}, 100)
	e.Decision.Reason = &proposal.Reason{Message: long, Text: long}
	e.Target, e.Address, e.Call, e.Errno = long, long, long, long
	data, err := json.Marshal(trimmed(e))
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 256<<10 || len(data)*2*batchEvents/100 > 8<<20 {
		t.Errorf("an event of %d bytes", len(data))
	}
	if x := trimmed(e).Exec; !x.ArgvCut || len(x.Argv) != 1 || x.ArgvDigest != "sha256:00" {
		t.Errorf("%d words, cut %v", len(x.Argv), x.ArgvCut)
	}
}

func BenchmarkSee(b *testing.B) {
	o := NewObserver(discard{}, nil)
	_, stop := context.WithCancelCause(b.Context())
	o.begin(proposal.Record{Proposal: proposal.Proposal{ID: "a"}}, stop)
	e := started(2, 1, "/usr/bin/true", "true", "--version")
	b.ReportAllocs()
	for b.Loop() {
		o.See(e)
	}
	if _, err := o.end(b.Context(), whole()); err != nil {
		b.Fatal(err)
	}
}

type discard struct{}

func (discard) Append(_ string, v any) (int64, error) { _, err := json.Marshal(v); return 0, err }

// drop and edit forge entries of one kind.
func (k *keeper) drop(kind string) {
	k.entries = slices.DeleteFunc(k.entries, func(e Entry) bool { return e.Kind == kind })
}

func (k *keeper) edit(kind, old, new string) {
	for i, e := range k.entries {
		if e.Kind != kind {
			continue
		}
		body := strings.Replace(string(e.Body), old, new, 1)
		if body == string(e.Body) {
			panic(fmt.Sprintf("no %s in %s", old, body))
		}
		k.entries[i].Body = []byte(body)
	}
}
