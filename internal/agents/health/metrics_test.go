// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/golden"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A paper is a log in memory; a full one refuses entries.
type paper struct {
	entries int64
	full    bool
}

func (p *paper) Append(string, any) (int64, error) {
	if p.full {
		return 0, errors.New("no space left")
	}
	p.entries++
	return p.entries - 1, nil
}

func (p *paper) Write(kind string, v any) (int64, error) { return p.Append(kind, v) }

// newMetrics returns Metrics of a server with a pool.
func newMetrics() *Metrics {
	m := New("v1.2.3")
	m.CountWaiting(func() int { return 1 })
	return m
}

// used returns Metrics of a server that has done one of everything.
func used(t *testing.T) *Metrics {
	t.Helper()
	m := newMetrics()
	m.SetLimit(16)
	m.CountDecision(3 * time.Millisecond)
	m.Started(300*time.Millisecond, nil)
	m.Ready(400 * time.Millisecond)
	m.Started(time.Second, &proposal.StopError{Code: "sandbox.start", Message: "/secret/path is missing"})
	m.Started(time.Second, errors.Join(&proposal.StopError{Code: "sandbox.start"}, context.Canceled))
	m.Started(2*time.Second, nil)
	m.Ended()
	log := m.Log(&paper{})
	results := []proposal.Result{
		{Status: proposal.Exited, WallMS: 5}, {Status: proposal.Exited, ExitCode: 1, WallMS: 40, Retried: &proposal.Attempt{}},
		{Status: proposal.Signaled, Observations: &proposal.Observations{Counts: proposal.Counts{Refused: 3, NetRefused: 2, Watched: 5, NetWatched: 4}}},
		{}, {Status: proposal.TimedOut, WallMS: 120_000}, {Status: proposal.OutOfMemory}, {Status: proposal.ProcessLimit}, {Status: proposal.DiskLimit}, {Status: proposal.OutputLimit},
	}
	flow := func(kind, code string, sent int64) proposal.Event {
		return proposal.Event{Kind: kind, Flow: &proposal.Flow{Code: code, Sent: sent, Received: 10 * sent, Decision: proposal.EgressDecision{Effect: proposal.Allow}}}
	}
	flows := []proposal.Event{flow(proposal.EventConnection, "", 100), flow(proposal.EventConnection, "policy", 20), flow(proposal.EventConnection, "unreachable", 0),
		flow(proposal.EventRequest, "", 99), flow(proposal.EventLookup, "", 1), {Kind: proposal.EventConnection}}
	entries := []any{proposal.Run{Policy: "sha256:old"}, proposal.Run{Policy: "sha256:new"}, journal.Start{}, journal.Events{Events: flows}, journal.End{},
		journal.Decision{Decision: proposal.Decision{Effect: proposal.Allow, Reasons: []proposal.Reason{{Effect: proposal.Deny, Observed: true}}}}, journal.Decision{}, journal.Decision{Decision: proposal.Decision{Effect: proposal.Ask}},
		journal.End{Error: &proposal.Failure{Code: "session.idle"}}, journal.End{Error: &proposal.Failure{Code: "gate.slow"}}}
	for _, r := range results {
		entries = append(entries, journal.Result{Result: r})
	}
	for i, e := range entries {
		add := log.Append
		if i%2 == 0 {
			add = log.Write
		}
		if n, err := add("kind", e); err != nil || n != int64(i) {
			t.Fatalf("entry %d: %d, %v", i, n, err)
		}
	}
	return m
}

func get(t *testing.T, h http.Handler, method, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(body)
}

func ready() Status { return Status{Status: StatusReady} }

// own returns the lines of the metrics that are fumehood's.
func own(page string) string {
	var b strings.Builder
	for line := range strings.Lines(page) {
		if strings.Contains(line, "fumehood_") && !strings.Contains(line, "_created") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func TestMetrics(t *testing.T) {
	code, page := get(t, used(t).Handler(ready), http.MethodGet, MetricsPath)
	if code != 200 || !strings.Contains(page, "process_resident_memory_bytes") || !strings.Contains(page, "go_goroutines") {
		t.Errorf("%d:\n%s", code, page)
	}
	if strings.Contains(page, "secret") || strings.Contains(page, "go_build") {
		t.Errorf("it reveals too much:\n%s", page)
	}
	golden.Compare(t, "testdata/metrics.txt", []byte(own(page)))
}

// Every time series is there before anything happens, so that the first failure is an
// increase, and no later one is new.
func TestSeries(t *testing.T) {
	count := func(m *Metrics) (n int) {
		families, err := m.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			n += len(f.GetMetric())
		}
		return n
	}
	if before, after := count(newMetrics()), count(used(t)); before+1 != after || before != 38 { // the policy is that of a run
		t.Errorf("%d series, then %d", before, after)
	}
}

// What could not be written to the log did not happen, and the caller gets the error.
func TestFullLog(t *testing.T) {
	m := newMetrics()
	if _, err := m.Log(&paper{full: true}).Append("decision", journal.Decision{}); err == nil {
		t.Error("the error is lost")
	}
	if _, page := get(t, m.Handler(ready), http.MethodGet, MetricsPath); !strings.Contains(page, `decisions_total{effect="deny"} 0`) {
		t.Errorf("the decision is counted:\n%s", own(page))
	} else if !strings.Contains(page, "fumehood_log_errors_total 1\n") {
		t.Errorf("the error is not counted:\n%s", own(page))
	}
}

func TestHandler(t *testing.T) {
	draining := DrainingStatus
	failing, recovered, old := newMetrics(), newMetrics(), newMetrics()
	for _, m := range []*Metrics{failing, recovered, old} {
		m.Started(time.Second, fmt.Errorf("cannot start: %w", &proposal.StopError{Code: "sandbox.start", Message: "secret"}))
	}
	recovered.Started(time.Second, nil)
	old.failed = old.failed.Add(-2 * troubleTime)
	for _, tt := range []struct {
		m            *Metrics
		status       func() Status
		method, path string
		code         int
		body         string
	}{
		{newMetrics(), ready, "GET", HealthPath, 200, `{"status":"ready"}`},
		{newMetrics(), ready, "HEAD", HealthPath, 200, `{"status":"ready"}`},
		{newMetrics(), draining, "GET", HealthPath, 503, `{"status":"draining","reason":"the server is shutting down"}`},
		{failing, ready, "GET", HealthPath, 503, `{"status":"not ready","reason":"the last sandbox did not start: sandbox.start"}`},
		{failing, draining, "GET", HealthPath, 503, `{"status":"draining","reason":"the server is shutting down"}`},
		{recovered, ready, "GET", HealthPath, 200, `{"status":"ready"}`},
		{old, ready, "GET", HealthPath, 200, `{"status":"ready"}`},
		{newMetrics(), ready, "POST", HealthPath, 405, "Method Not Allowed"},
		{newMetrics(), ready, "POST", MetricsPath, 405, "Method Not Allowed"},
		{newMetrics(), ready, "GET", "/metrics/x", 404, "404 page not found"},
	} {
		if code, body := get(t, tt.m.Handler(tt.status), tt.method, tt.path); code != tt.code || strings.TrimSpace(body) != tt.body {
			t.Errorf("%s %s: %d %s, want %d %s", tt.method, tt.path, code, body, tt.code, tt.body)
		}
	}
}

// What another process has written to its log counts as what this one writes.
func TestCount(t *testing.T) {
	written, read := newMetrics(), newMetrics()
	log := written.Log(&paper{})
	for kind, v := range map[string]any{"decision": journal.Decision{Decision: proposal.Decision{Effect: proposal.Allow}}, "end": journal.End{},
		"result": journal.Result{Result: proposal.Result{Status: proposal.Exited}}, "start": journal.Start{ID: "a"}} {
		if _, err := log.Append(kind, v); err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		e, err := journal.Entry{Kind: kind, Body: body}.Decode()
		if err != nil {
			t.Fatal(err)
		}
		read.CountLogEvent(e)
	}
	written.Started(time.Second, nil)
	read.CountStartedElsewhere()
	_, want := get(t, written.Handler(ready), http.MethodGet, MetricsPath)
	_, got := get(t, read.Handler(ready), http.MethodGet, MetricsPath)
	for _, line := range []string{`fumehood_decisions_total{effect="allow"} 1`, `fumehood_runs_total{outcome="completed"} 1`, `fumehood_commands_total{outcome="succeeded"} 1`, "fumehood_sandboxes 1"} {
		if !strings.Contains(want, line+"\n") || !strings.Contains(got, line+"\n") {
			t.Errorf("no %s in one of %s\n%s", line, own(want), own(got))
		}
	}
}
