// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/record"

	"github.com/fumehood/fumehood/internal/agents/health"
	"github.com/fumehood/fumehood/k8s/internal/logfile"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A writer is a pod's gate, which writes its log.
type writer struct {
	*audit.Log
	t    *testing.T
	lock *os.File
}

func write(t *testing.T, dir, pod string) *writer {
	t.Helper()
	path := filepath.Join(dir, pod, "1.jsonl")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	log, err := audit.Create(path, audit.Options{Origin: "pod/test"})
	if err != nil {
		t.Fatal(err)
	}
	f, err := logfile.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	w := &writer{log, t, f}
	w.add("run", proposal.Run{ID: "1", Start: time.Now()})
	return w
}

func (w *writer) add(kind string, v any) {
	w.t.Helper()
	if _, err := w.Append(kind, v); err != nil {
		w.t.Fatal(err)
	}
}

// end seals the log, or does not, and ends the gate.
func (w *writer) end(sealed bool) {
	w.t.Helper()
	if sealed {
		w.add("end", journal.End{Error: &proposal.Failure{Code: "pod.revoked", Message: "the policy was revoked"}})
		if _, err := w.Seal(); err != nil {
			w.t.Fatal(err)
		}
	}
	_ = w.Close()
	_ = w.lock.Close()
}

func refusal(argv ...string) proposal.Event {
	return proposal.Event{Kind: proposal.EventRefused, Program: "/bin/sh", Exec: &proposal.Exec{Path: argv[0], Argv: argv},
		Decision: &proposal.ExecDecision{Effect: proposal.Deny, Reason: &proposal.Reason{Rule: "x.y", Message: "not here"}}}
}

// An agent is one that runs in dir.
type running struct {
	t      *testing.T
	events *record.FakeRecorder
	m      *health.Metrics
	ended  chan string
	warned chan error
}

func start(t *testing.T, dir string) *running {
	a := &running{t, record.NewFakeRecorder(100), health.New("v0"), make(chan string, 10), make(chan error, 10)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	o := Options{Logs: dir, Since: time.Now(), Metrics: a.m, Events: a.events, Warn: func(err error) { a.warned <- err },
		Ended: func(_ context.Context, path string) error { a.ended <- path; return nil }}
	go func() { defer close(done); _ = Run(ctx, o) }()
	t.Cleanup(func() { cancel(); <-done })
	return a
}

func (a *running) event() string {
	a.t.Helper()
	select {
	case e := <-a.events.Events:
		return e
	case <-time.After(20 * time.Second):
		a.t.Fatal("there is no event")
		return ""
	}
}

// Refusals become events of their pods while those run, and the end says why.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	old := write(t, dir, "ns_old_2")
	old.add("events", journal.Events{ID: "a", Events: []proposal.Event{refusal("/bin/before")}})
	over := write(t, dir, "ns_over_3")
	over.add("events", journal.Events{ID: "a", Events: []proposal.Event{refusal("/bin/before")}})
	over.end(true)
	time.Sleep(20 * time.Millisecond) // entries have milliseconds
	a := start(t, dir)
	w := write(t, dir, "ns_web_1")
	w.add("decision", journal.Decision{ID: "a", Decision: proposal.Decision{Effect: proposal.Deny}})
	w.add("events", journal.Events{ID: "a", Events: []proposal.Event{{Kind: proposal.EventExec}, refusal("/bin/id", "-u")}})
	if got, want := a.event(), `Warning ProgramRefused policy refused a program that "/bin/sh" started: "/bin/id -u": not here (x.y)`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	old.add("events", journal.Events{ID: "a", Events: []proposal.Event{{Kind: proposal.EventRequest, Flow: &proposal.Flow{Egress: proposal.Egress{Name: "evil.example", Port: 443}, Code: "address"}}}})
	if got, want := a.event(), `Warning ConnectionRefused the gateway refused "evil.example:443": address`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	w.end(true)
	if got, want := a.event(), "Warning GateFailed pod.revoked: the policy was revoked"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	ended := []string{<-a.ended, <-a.ended} // the agent before this one may not have seen the first
	if !slices.Equal(ended, []string{over.Path(), w.Path()}) {
		t.Errorf("%q have ended", ended)
	}
	old.end(false)
	if got, want := a.event(), "Warning LogIncomplete the gate ended before it sealed the pod's log"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := counted(t, a.m, "fumehood_decisions_total", "deny"); got != 1 {
		t.Errorf("%v denials", got)
	}
	if len(a.warned) > 0 {
		t.Error(<-a.warned)
	}
}

func counted(t *testing.T, m *health.Metrics, name, label string) float64 {
	families, err := m.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, x := range f.GetMetric() {
			if f.GetName() == name && len(x.GetLabel()) == 1 && x.GetLabel()[0].GetValue() == label {
				return x.GetCounter().GetValue()
			}
		}
	}
	return -1
}

// A log that was changed, and one that is none, are reported, and nothing of them is shown
// after the change.
func TestInvalid(t *testing.T) {
	dir := t.TempDir()
	a := start(t, dir)
	w := write(t, dir, "ns_web_1")
	f, err := os.OpenFile(w.Path(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"entry":{"body":{},"kind":"end","time":"2026-01-01T00:00:00.000Z"},"n":7}` + "\n"); err != nil {
		t.Fatal(err)
	}
	if got := a.event(); !strings.HasPrefix(got, "Warning LogIncomplete the pod's log is not valid: ") {
		t.Error(got)
	}
	if err := <-a.warned; !strings.Contains(err.Error(), w.Path()) {
		t.Error(err)
	}
	write(t, dir, "nothing").end(true)
	if err := <-a.warned; !strings.Contains(err.Error(), "the directory's name is not that of a pod's log") {
		t.Error(err)
	}
}

// What programs are called cannot change how a message is shown, or make it too long.
func TestMessages(t *testing.T) {
	hostile := "/bin/\x1b[31m\n\u202e\xff" + strings.Repeat("x", 5000)
	reason := refusal(hostile)
	reason.Program, reason.Decision.Reason.Message = hostile, hostile
	flow := proposal.Event{Flow: &proposal.Flow{Egress: proposal.Egress{Name: hostile}, Decision: proposal.EgressDecision{Reason: reason.Decision.Reason}}}
	entry := journal.LogEvent{Events: []proposal.Event{reason, flow, {Kind: proposal.EventRefused}}, Totals: &proposal.Totals{}, Error: &proposal.Failure{Code: "x", Message: hostile}}
	list := messages(entry)
	if len(list) != 3 {
		t.Errorf("%d messages", len(list))
	}
	for _, m := range list {
		if len(m.text) > 1024 || strings.ContainsFunc(strings.TrimSuffix(m.text, "…"), func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%d bytes: %q", len(m.text), m.text)
		}
	}
}

// A directory that cannot be read is no directory without logs.
func TestNoLogs(t *testing.T) {
	if err := Run(t.Context(), Options{Logs: filepath.Join(t.TempDir(), "missing")}); !os.IsNotExist(err) {
		t.Error(err)
	}
}
