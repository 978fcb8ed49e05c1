// SPDX-License-Identifier: Apache-2.0

package order

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

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/watch/observe"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var morning = time.Date(2026, 11, 21, 4, 5, 6, 789, time.UTC)

// started returns the event of a program start.
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

// reached is the gateway's event about name, which rule refuses unless it is "".
func reached(kind, name, rule string) proposal.Event {
	f := &proposal.Flow{Egress: proposal.Egress{Command: "a", Kind: kind, Name: name, Port: 443, Protocol: "tcp"}, Inside: "198.18.0.5:443",
		Decision: proposal.EgressDecision{Effect: proposal.Allow, Rules: []string{"egress.granted"}}}
	if rule != "" {
		f.Code = "policy"
		f.Decision = proposal.EgressDecision{Effect: proposal.Deny, Rules: []string{rule}, Reason: &proposal.Reason{Rule: rule, Message: "no", Suggestion: "ask", Command: -1}}
	}
	return proposal.Event{Command: "a", Kind: kind, Time: morning, Program: "/usr/bin/pip", Flow: f}
}

// watching returns stages whose command "a" does what events say, with its log.
func watching(t *testing.T, w *world, recorded *proposal.Observations, events ...proposal.Event) (*Stages, *keeper) {
	t.Helper()
	w.decide = map[string]proposal.Effect{"a": proposal.Allow}
	k := &keeper{world: w}
	h := w.stages()
	h.Log = k
	h.Observer = observing(k)
	w.results = map[string]proposal.Result{"a": {Status: proposal.Exited, Observations: recorded}}
	w.during = func(context.Context) {
		for _, e := range events {
			h.Observer.AddEvent(e)
		}
	}
	return h, k
}

func whole() *proposal.Observations { return &proposal.Observations{Complete: true} }

// All events are in the log between the start and the result.
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
		var body journal.Events
		if err := json.Unmarshal(e.Body, &body); err != nil {
			t.Fatal(err)
		}
		if body.First != int64(len(seen)) || body.ID != "a" {
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
	if o == nil || !o.Complete || o.Counts.Execs != len(events) {
		t.Errorf("%d execs counted, complete %v", o.Counts.Execs, o.Complete)
	}
	if doubts := CompareLog(report, k.entries); len(doubts) > 0 {
		t.Errorf("doubts about what was just written: %q", doubts)
	}
}

// An event passes the Redactor before it is logged or in the report.
func TestEventsPassRedactor(t *testing.T) {
	h, k := watching(t, &world{}, whole(), event(proposal.EventWrite, "/etc/"+canary))
	report, err := h.Run(t.Context(), planOf("a"), proposal.Run{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal([]any{report, k.entries})
	if err != nil || strings.Contains(string(data), canary) || !strings.Contains(string(data), "/etc/[redacted C]") {
		t.Errorf("%v: %s", err, data)
	}
}

// THREATS 30: a log that cannot take an event ends the command, and the run.
func TestLogFailsWhileWatching(t *testing.T) {
	lanetest.SkipShort(t)
	stopped := &proposal.StopError{Code: "audit.full", Message: "no room"}
	w := &world{fail: map[string]error{"log events": stopped}}
	h, k := watching(t, w, whole())
	k.fails = "events"
	k.err = stopped
	ended := make(chan error, 1)
	w.during = func(ctx context.Context) {
		h.Observer.AddEvent(started(2, 1, "/bin/true"))
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

// A policy that cannot judge a program ends the command and the run, and earlier
// events are in the log.
func TestFail(t *testing.T) {
	w := &world{}
	h, k := watching(t, w, whole())
	w.during = func(ctx context.Context) {
		h.Observer.AddEvent(started(2, 1, "/bin/true"))
		h.Observer.Fail(&proposal.StopError{Code: "policy.deadline", Message: "no answer"})
		<-ctx.Done()
	}
	report, _ := h.Run(t.Context(), planOf("a"), proposal.Run{})
	if report.Error == nil || report.Error.Code != "policy.deadline" || report.Records[0].Result.Observations.Complete {
		t.Errorf("error %+v", report.Error)
	}
	if !slices.ContainsFunc(k.entries, func(e journal.Entry) bool { return e.Kind == "events" }) {
		t.Error("what was seen is not in the log")
	}
	h.Observer.Fail(errors.New("no command runs"))
}

// A batch does not wait for the next event.
func TestBatchAge(t *testing.T) {
	lanetest.SkipShort(t)
	w := &world{}
	h, k := watching(t, w, whole())
	w.during = func(context.Context) {
		h.Observer.AddEvent(started(2, 1, "/bin/sleep"))
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

// What policy finds about the events is in the report; when it cannot answer, the run ends.
func TestFindings(t *testing.T) {
	h, k := watching(t, &world{}, whole(), started(2, 1, "/bin/true"), refusal(3, 2, "/usr/bin/curl", "exec.net"))
	h.Observer = observing(k, proposal.Finding{Rule: "event.x", Message: "m"})
	report, err := h.Run(t.Context(), planOf("a"), proposal.Run{})
	if err != nil {
		t.Fatal(err)
	}
	if f := report.Records[0].Result.Observations.Findings; len(f) != 1 || f[0].Rule != "event.x" {
		t.Errorf("findings %+v", f)
	}
	if doubts := CompareLog(report, k.entries); len(doubts) > 0 {
		t.Errorf("doubts: %q", doubts)
	}
	h.Observer, err = observe.New(k, func(context.Context, proposal.Event) ([]proposal.Finding, error) {
		return nil, &proposal.StopError{Code: "policy.event", Message: "no answer"}
	})
	if err != nil {
		t.Fatal(err)
	}
	if report, _ := h.Run(t.Context(), planOf("a"), proposal.Run{}); report.Error == nil || report.Error.Code != "policy.event" {
		t.Errorf("a judge without an answer: %+v", report.Error)
	}
}

// THREATS 27: a report that contradicts the events in its log is detected.
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

// THREATS 27: a report that tells other things of the network than its log is found out.
func TestCompareNetwork(t *testing.T) {
	for name, forge := range map[string]func(*proposal.Observations){
		"a refusal less":   func(o *proposal.Observations) { o.Network = o.Network[1:] },
		"another host":     func(o *proposal.Observations) { o.Network[0].Name = "go.example" },
		"fewer bytes":      func(o *proposal.Observations) { o.Network[1].Sent = 0 },
		"another program":  func(o *proposal.Observations) { o.Network[0].Program = "/usr/bin/go" },
		"another count":    func(o *proposal.Observations) { o.Counts.NetRefused = 0 },
		"let through":      func(o *proposal.Observations) { o.Network[0].Refused = false },
		"another way":      func(o *proposal.Observations) { o.Network[1].Calls = []string{"GET /"} },
		"in another order": func(o *proposal.Observations) { slices.Reverse(o.Network) },
	} {
		t.Run(name, func(t *testing.T) {
			upload := reached(proposal.EventRequest, "go.example", "")
			upload.Flow.Egress.Method, upload.Flow.Egress.Path, upload.Flow.Sent, upload.Flow.Received = "POST", "/upload", 9000, 1
			h, k := watching(t, &world{}, whole(), upload, reached(proposal.EventConnection, "evil.example", "egress.no-rule"))
			report, err := h.Run(t.Context(), planOf("a"), proposal.Run{})
			if err != nil {
				t.Fatal(err)
			}
			if doubts := CompareLog(report, k.entries); len(doubts) > 0 {
				t.Fatalf("doubts before: %q", doubts)
			}
			forge(report.Records[0].Result.Observations)
			if len(CompareLog(report, k.entries)) == 0 {
				t.Error("no doubts")
			}
		})
	}
}

// Events that the log only counts are compared by their counts.
func TestCompareCounted(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	const files, lookups, refused = 20_700, 10_500, 10_300
	h, k := watching(t, &world{}, whole())
	k.world.during = func(context.Context) {
		for range files {
			h.Observer.AddEvent(event(proposal.EventWrite, "/workspace/x"))
		}
		for i := range lookups {
			h.Observer.AddEvent(reached(proposal.EventLookup, fmt.Sprintf("n%d.example", i), ""))
		}
		for range refused {
			h.Observer.AddEvent(reached(proposal.EventConnection, "evil.example", "egress.no-rule"))
		}
	}
	report, err := h.Run(t.Context(), planOf("a"), proposal.Run{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(proposal.Counts{Writes: files, Lookups: lookups, Connections: refused, NetRefused: refused}, report.Records[0].Result.Observations.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if doubts := CompareLog(report, k.entries); len(doubts) > 0 {
		t.Errorf("doubts: %q", doubts)
	}
	original := slices.Clone(k.entries)
	for name, forge := range map[string][2]string{"more flows": {`"flows":{"lookups":`, `"flows":{"lookups":1`}, "negative flows": {`"flows":{"lookups":`, `"flows":{"lookups":-`},
		"more files": {`"more":`, `"more":1`}, "negative files": {`"more":`, `"more":-`}} {
		k.entries = slices.Clone(original)
		for i, e := range k.entries {
			k.entries[i].Body = []byte(strings.Replace(string(e.Body), forge[0], forge[1], 1))
		}
		if len(CompareLog(report, k.entries)) == 0 {
			t.Errorf("%s: counts that were changed are not found out", name)
		}
	}
}

// drop and edit forge entries of one kind.
func (k *keeper) drop(kind string) {
	k.entries = slices.DeleteFunc(k.entries, func(e journal.Entry) bool { return e.Kind == kind })
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
