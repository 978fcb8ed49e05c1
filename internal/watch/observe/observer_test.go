// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/audit/journal"
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

// A keeper is a log that can be read again.
type keeper struct {
	mu      sync.Mutex
	entries []journal.Events
	slow    time.Duration
}

// Append keeps v as a reader of the log has it.
func (k *keeper) Write(kind string, v any) (int64, error) { return k.Append(kind, v) }

func (k *keeper) Append(kind string, v any) (int64, error) {
	time.Sleep(k.slow)
	body, err := json.Marshal(v)
	if err != nil {
		return 0, err
	}
	var e journal.Events
	if kind != "events" || json.Unmarshal(body, &e) != nil {
		return 0, errors.New("not an events entry: " + kind)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.entries = append(k.entries, e)
	return int64(len(k.entries) - 1), nil
}

func (k *keeper) empty() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.entries) == 0
}

// events are all that the log has one by one.
func (k *keeper) events() (list []proposal.Event) {
	for _, e := range k.entries {
		list = append(list, e.Events...)
	}
	return list
}

// counted is how many flows the log only counts.
func (k *keeper) counted() (n int) {
	for _, e := range k.entries {
		if f := e.Flows; f != nil {
			n += f.Lookups + f.Connections + f.Requests + f.Datagrams
		}
	}
	return n
}

func whole() *proposal.Observations { return &proposal.Observations{Complete: true} }

func noFindings(context.Context, proposal.Event) ([]proposal.Finding, error) { return nil, nil }

func asIs(e proposal.Event) proposal.Event { return e }

func newObserver(t testing.TB, log journal.Log, judge Judge) *Observer {
	t.Helper()
	o, err := New(log, judge)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// begin begins the command "a".
func begin(t testing.TB, o *Observer) {
	t.Helper()
	_, stop := context.WithCancelCause(t.Context())
	if err := o.Begin(proposal.Record{Proposal: proposal.Proposal{ID: "a"}, Entry: 7}, asIs, stop); err != nil {
		t.Fatal(err)
	}
}

// watching returns what was seen of the command "a", which does what events say, and its
// log, which gives the same.
func watching(t *testing.T, judge Judge, recorded *proposal.Observations, events ...proposal.Event) (*proposal.Observations, *keeper) {
	t.Helper()
	k := &keeper{}
	o := newObserver(t, k, judge)
	return during(t, o, k, recorded, func() {
		for _, e := range events {
			o.AddEvent(e)
		}
	}), k
}

// during is watching for a command that does what do does.
func during(t *testing.T, o *Observer, k *keeper, recorded *proposal.Observations, do func()) *proposal.Observations {
	t.Helper()
	begin(t, o)
	do()
	seen, err := o.End(t.Context(), "a", recorded)
	if err != nil {
		t.Fatal(err)
	}
	if seen != nil {
		agree(t, k, *seen)
	}
	return seen
}

// agree checks that a reader of the log computes what was seen, and that the log has every
// event in its place.
func agree(t *testing.T, k *keeper, seen proposal.Observations) {
	t.Helper()
	next := 0
	for _, e := range k.entries {
		if e.First != int64(next) || e.ID != "a" || e.Decision != 7 || len(e.Events) > batchEvents {
			t.Errorf("batch of %d from %d, of %q, after %d", len(e.Events), e.First, e.ID, next)
		}
		next += len(e.Events)
	}
	again := RecountEvents(k.entries)
	again.Complete, again.Findings, again.Counts.Dropped = seen.Complete, seen.Findings, seen.Counts.Dropped
	if diff := cmp.Diff(text(t, seen), text(t, again)); diff != "" {
		t.Errorf("a reader of the log computes otherwise (-seen +read):\n%s", diff)
	}
}

func text(t *testing.T, o proposal.Observations) string {
	t.Helper()
	data, err := json.MarshalIndent(o, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Every event is in the log, in order, in batches.
func TestEventsInLog(t *testing.T) {
	var events []proposal.Event
	for pid := range 1500 {
		events = append(events, started(pid+2, 1, "/bin/true", "true"))
	}
	o, k := watching(t, noFindings, whole(), events...)
	seen := k.events()
	if len(seen) != len(events) {
		t.Fatalf("%d events in the log, want %d", len(seen), len(events))
	}
	for i := range seen {
		if seen[i].Pid != events[i].Pid || seen[i].Exec.ArgvDigest != "sha256:00" {
			t.Fatalf("event %d is of process %d, want %d", i, seen[i].Pid, events[i].Pid)
		}
	}
	if o == nil || !o.Complete || o.Counts.Execs != len(events) || len(o.Execs) != maxExecs {
		t.Errorf("%d execs counted and %d listed, complete %v", o.Counts.Execs, len(o.Execs), o.Complete)
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
			if o, _ := watching(t, noFindings, test.recorded, test.events...); o == nil || o.Complete != test.want {
				t.Errorf("observations %+v, want complete %v", o, test.want)
			}
		})
	}
}

// An event before Begin or after End is in no log, and no later record is complete.
func TestStrays(t *testing.T) {
	k := &keeper{}
	o := newObserver(t, k, noFindings)
	o.AddEvent(started(2, 1, "/bin/true"))
	if seen := during(t, o, k, whole(), func() {}); seen.Complete || seen.Counts.Dropped != 1 {
		t.Errorf("after an event before Begin: %+v", seen)
	}
	o.AddEvent(started(2, 1, "/bin/true"))
	if seen := during(t, o, k, whole(), func() {}); seen.Complete || seen.Counts.Dropped != 2 || !k.empty() {
		t.Errorf("after an event between commands: %+v", seen)
	}
}

func TestNothingWatched(t *testing.T) {
	o, k := watching(t, noFindings, nil)
	if o != nil {
		t.Errorf("observations %+v of nothing", o)
	}
	if !k.empty() {
		t.Error("events in the log")
	}
}

// What an Observer needs cannot be left out.
func TestIncomplete(t *testing.T) {
	_, noLog := New(nil, noFindings)
	_, noJudge := New(&keeper{}, nil)
	o := newObserver(t, &keeper{}, noFindings)
	noClean := o.Begin(proposal.Record{Proposal: proposal.Proposal{ID: "a"}}, nil, func(error) {})
	for what, err := range map[string]error{"log": noLog, "judge": noJudge, "redaction": noClean} {
		if err == nil || proposal.FailureOf(err).Code != "observe.incomplete" {
			t.Errorf("without a %s: %v", what, err)
		}
	}
	o.AddEvent(started(2, 1, "/bin/true"))
	if o.findWatch("a") != nil {
		t.Error("a command is observed that could not begin")
	}
}

// Nothing of an event is logged, kept or judged that was not redacted.
func TestRedacted(t *testing.T) {
	var judged []proposal.Event
	k := &keeper{}
	o := newObserver(t, k, func(_ context.Context, e proposal.Event) ([]proposal.Finding, error) {
		judged = append(judged, e)
		return []proposal.Finding{{Rule: "x", Event: e}}, nil
	})
	clean := func(e proposal.Event) proposal.Event {
		e.Path = strings.ReplaceAll(e.Path, "hunter2", "[x]")
		return e
	}
	if err := o.Begin(proposal.Record{Proposal: proposal.Proposal{ID: "a"}, Entry: 7}, clean, func(error) {}); err != nil {
		t.Fatal(err)
	}
	o.AddEvent(event(proposal.EventWrite, "/etc/hunter2"))
	seen, err := o.End(t.Context(), "a", whole())
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal([]any{k.entries, seen, judged})
	if err != nil || strings.Contains(string(data), "hunter2") || strings.Count(string(data), "/etc/[x]") != 4 {
		t.Errorf("%v: %s", err, data)
	}
}

// A log that is slower than the command makes it wait; nothing is lost, and what
// waits is bounded.
func TestSlowLog(t *testing.T) {
	lanetest.SkipShort(t)
	k := &keeper{slow: 20 * time.Millisecond}
	o := newObserver(t, k, noFindings)
	highest := 0
	seen := during(t, o, k, whole(), func() {
		for pid := range 4000 {
			o.AddEvent(started(pid+2, 1, "/bin/true"))
			o.mu.Lock()
			highest = max(highest, len(o.watches["a"].batch.Events))
			o.mu.Unlock()
		}
	})
	if n := seen.Counts.Execs; n != 4000 || highest > batchEvents {
		t.Errorf("%d execs seen, at most %d waiting", n, highest)
	}
}

// The findings are policy's, asked once about each thing of note.
func TestFindings(t *testing.T) {
	connect := event(proposal.EventConnect, "")
	connect.Address = "tcp 169.254.169.254:80"
	var asked []string
	seen, _ := watching(t, func(_ context.Context, e proposal.Event) ([]proposal.Finding, error) {
		asked = append(asked, e.Kind)
		return []proposal.Finding{{Rule: "event." + e.Kind, Message: "m", Event: e}}, nil
	}, whole(), started(2, 1, "/bin/true"), connect, connect, refusal(3, 2, "/usr/bin/curl", "exec.net"))
	if diff := cmp.Diff([]string{proposal.EventRefused, proposal.EventConnect}, asked); diff != "" {
		t.Error(diff)
	}
	if f := seen.Findings; len(f) != 2 || f[1].Event.Times != 2 || !seen.Complete {
		t.Errorf("findings %+v", f)
	}
}

// What a command can make long is cut before it reaches the log.
func TestHugeEvents(t *testing.T) {
	long := strings.Repeat("\xff\u202e", 1<<20)
	e := started(2, 1, "/tmp/"+long, slices.Repeat([]string{long}, 1000)...)
	e.Exec.Env, e.Exec.Script, e.Exec.Cwd, e.Decision.Rules = slices.Repeat([]string{long}, 100), long, long, slices.Repeat([]string{long}, 100)
	e.Decision.Reason = &proposal.Reason{Message: long, Text: long}
	e.Target, e.Address, e.Call, e.Errno = long, long, long, long
	data, err := json.Marshal(trimEvent(e))
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 256<<10 || len(data)*2*batchEvents/100 > 8<<20 {
		t.Errorf("an event of %d bytes", len(data))
	}
	if x := trimEvent(e).Exec; !x.ArgvCut || len(x.Argv) != 1 || x.ArgvDigest != "sha256:00" {
		t.Errorf("%d words, cut %v", len(x.Argv), x.ArgvCut)
	}
}

func BenchmarkSee(b *testing.B) {
	o := newObserver(b, discard{}, noFindings)
	begin(b, o)
	e := started(2, 1, "/usr/bin/true", "true", "--version")
	b.ReportAllocs()
	for b.Loop() {
		o.AddEvent(e)
	}
	if _, err := o.End(b.Context(), "a", whole()); err != nil {
		b.Fatal(err)
	}
}

type discard struct{}

func (d discard) Write(kind string, v any) (int64, error) { return d.Append(kind, v) }

func (discard) Append(_ string, v any) (int64, error) { _, err := json.Marshal(v); return 0, err }
