// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A world fakes every stage and records the calls, in order.
type world struct {
	Runner  // what no test needs of it is missing
	did     []string
	decide  map[string]proposal.Effect
	results map[string]proposal.Result
	fail    map[string]error // by call, "log start a", "run a", "decide a"
	now     time.Time
	took    time.Duration // of each command
	slow    time.Duration // of the log entry "start"
	cancel  func()        // called when a command runs
	during  func(context.Context)
}

func (w *world) do(what string) error {
	w.did = append(w.did, what)
	return w.fail[what]
}

func (w *world) Decide(_ context.Context, p proposal.Proposal, _ proposal.Analysis) (proposal.Decision, error) {
	d := proposal.Decision{Effect: w.decide[p.ID]}
	if d.Effect != proposal.Deny {
		d.Grant = &proposal.Grant{Limits: proposal.Limits{Wall: proposal.Duration(time.Minute), CPUs: 1, Memory: 1, Pids: 1, Disk: 1, Files: 1, Output: 1}}
	}
	return d, w.do("decide " + p.ID)
}

func (w *world) Write(kind string, v any) (int64, error) { return w.Append(kind, v) }

func (w *world) Append(kind string, v any) (int64, error) {
	id := ""
	switch e := v.(type) {
	case journal.Decision:
		id = " " + e.ID
	case journal.Start:
		id = " " + e.ID
		w.now = w.now.Add(w.slow)
	case journal.Result:
		id = " " + e.ID
	}
	err := w.do("log " + kind + id)
	return int64(len(w.did)), err
}

func (w *world) Start(ctx context.Context, x sandbox.Execution) (sandbox.Process, error) {
	result, err := w.Run(ctx, x)
	return afterRun{result, err}, nil
}

func (w *world) Prepare(sandbox.Execution, bool) {}

func (w *world) Run(ctx context.Context, x sandbox.Execution) (proposal.Result, error) {
	if x.Grant.Limits.Wall <= 0 {
		return proposal.Result{}, errors.New("no time limit") // as the real one
	}
	w.now = w.now.Add(w.took)
	if w.cancel != nil {
		w.cancel()
	}
	if w.during != nil {
		w.during(ctx)
	}
	r, ok := w.results[x.ID]
	if !ok {
		r = proposal.Result{Status: proposal.Exited}
	}
	return r, w.do("run " + x.ID + ": " + strings.TrimSpace(x.Text) + strings.Join(x.Argv, "|"))
}

func (w *world) moved(what, path string) (proposal.Result, error) {
	return proposal.Result{Outputs: []proposal.Output{{Path: path}}}, w.do(what + " " + path)
}

func (w *world) Put(_ context.Context, path string, _ []byte) (proposal.Result, error) {
	r, err := w.moved("put", path)
	r.Changes.Files = []proposal.Change{{Path: path, Kind: "added", Type: "file"}}
	return r, err
}

func (w *world) PutPart(_ context.Context, path string, _ []byte) (proposal.Result, error) {
	return w.moved("put part", path)
}

func (w *world) TakePart(_ context.Context, name, path string, _, _ int64) (proposal.Result, error) {
	return w.moved("take part "+name, path)
}

func (w *world) Take(_ context.Context, name, path string) (proposal.Result, error) {
	return w.moved("take "+name, path)
}

func (w *world) List(_ context.Context, pattern string) (proposal.Result, error) {
	return w.moved("list", pattern)
}

func (w *world) Save(context.Context) (*sandbox.Saved, error) { return nil, nil }

func (w *world) Begin(context.Context) error { return nil }

func (w *world) AddChanges(sandbox.Process, *proposal.Result) error { return nil }

func (w *world) ListChanges(context.Context) (proposal.Result, error) {
	return w.moved("list changes", "x")
}

func (w *world) Diff(_ context.Context, name string, paths []string) (proposal.Diff, error) {
	return proposal.Diff{Files: []proposal.FileDiff{{Path: paths[0], New: &proposal.FileState{Output: proposal.Output{Path: paths[0]}, Type: "symlink", Target: "x"}}}}, w.do("diff " + name + " " + strings.Join(paths, " "))
}

func (w *world) Close() error { return w.do("close sandbox") }

func (w *world) stages() *Stages {
	return &Stages{
		Checker: Checker{Policy: w}, Log: w, Redactor: redacting(), Lineage: programs(), Observer: observing(w),
		Start: func(o sandbox.Options) (Runner, error) {
			if o.Exec == nil || o.Event == nil || o.Limits.Open() {
				panic("the sandbox is not complete")
			}
			return w, w.do("open sandbox")
		},
		Now: func() time.Time { return w.now },
	}
}

func planOf(ids ...string) proposal.Plan {
	var p proposal.Plan
	for _, id := range ids {
		p.Proposals = append(p.Proposals, proposal.Proposal{ID: id, Run: "text of " + id})
	}
	return p
}

func statuses(r proposal.Report) map[string]string {
	got := map[string]string{}
	for _, record := range r.Records {
		got[record.Proposal.ID] = record.Decision.Effect.String()
		if record.Result != nil {
			got[record.Proposal.ID] = record.Result.Status.String() + " " + record.Result.Detail
		}
	}
	return got
}

func TestOrder(t *testing.T) {
	w := &world{decide: map[string]proposal.Effect{"a": proposal.Allow, "c": proposal.Allow}}
	report, err := w.stages().Run(t.Context(), planOf("a", "b", "c"), proposal.Run{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"log run", "decide a", "decide b", "decide c",
		"log decision a", "log decision b", "log decision c",
		"open sandbox",
		"log start a", "run a: text of a", "log result a",
		"log start c", "run c: text of c", "log result c",
		"close sandbox", "log end",
	}
	if diff := cmp.Diff(want, w.did); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if want := (proposal.Totals{Proposed: 3, Allowed: 2, Denied: 1, Succeeded: 2}); report.Totals != want {
		t.Errorf("totals %+v, want %+v", report.Totals, want)
	}
}

// If anything fails before a command, neither the command nor a later one runs.
func TestFailClosed(t *testing.T) {
	stopped := &proposal.StopError{Code: "test.stop", Message: "no"}
	for _, test := range []struct {
		fails string
		ran   []string
	}{
		{"log run", nil},
		{"decide a", nil},
		{"decide b", nil},
		{"log decision a", nil},
		{"log decision b", nil},
		{"open sandbox", nil},
		{"log start a", nil},
		{"run a: text of a", []string{"run a: text of a"}},
		{"log result a", []string{"run a: text of a"}},
		{"log start b", []string{"run a: text of a"}},
	} {
		t.Run(test.fails, func(t *testing.T) {
			w := &world{decide: map[string]proposal.Effect{"a": proposal.Allow, "b": proposal.Allow}, fail: map[string]error{test.fails: stopped}}
			report, err := w.stages().Run(t.Context(), planOf("a", "b"), proposal.Run{})
			if !errors.Is(err, stopped) {
				t.Errorf("error %v, want the stop", err)
			}
			if report.Error == nil || report.Error.Code != "test.stop" {
				t.Errorf("report's error %+v", report.Error)
			}
			var ran []string
			for _, what := range w.did {
				if strings.HasPrefix(what, "run ") {
					ran = append(ran, what)
				}
			}
			if diff := cmp.Diff(test.ran, ran); diff != "" {
				t.Errorf("ran (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNothingRunsThatCannotBeAnalysed(t *testing.T) {
	w := &world{decide: map[string]proposal.Effect{"a": proposal.Allow}}
	h := w.stages()
	plan := planOf("a")
	plan.Proposals[0].Run = `eval "$x"`
	report, err := h.Run(t.Context(), plan, proposal.Run{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": "not run policy allowed it without a grant or a command"}
	if diff := cmp.Diff(want, statuses(report)); diff != "" {
		t.Error(diff)
	}
}

func TestNeeds(t *testing.T) {
	w := &world{
		decide:  map[string]proposal.Effect{"a": proposal.Allow, "b": proposal.Allow, "c": proposal.Allow, "d": proposal.Allow},
		results: map[string]proposal.Result{"a": {Status: proposal.Exited, ExitCode: 1}},
	}
	plan := planOf("a", "b", "c", "d")
	plan.Proposals[1].Needs = []string{"a"}
	plan.Proposals[2].Needs = []string{"b"}
	report, err := w.stages().Run(t.Context(), plan, proposal.Run{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"a": "exited ", "b": `not run it needs "a", which did not succeed`,
		"c": `not run it needs "b", which did not succeed`, "d": "exited ",
	}
	if diff := cmp.Diff(want, statuses(report)); diff != "" {
		t.Error(diff)
	}
}

// What fails as expected has succeeded, and what succeeds against expectation has not.
func TestNeedsExpected(t *testing.T) {
	w := &world{
		decide:  map[string]proposal.Effect{"a": proposal.Allow, "b": proposal.Allow, "c": proposal.Allow, "d": proposal.Allow},
		results: map[string]proposal.Result{"a": {Status: proposal.Exited, ExitCode: 1}},
	}
	plan := planOf("a", "b", "c", "d")
	plan.Proposals[0].Expect, plan.Proposals[1].Needs = "fails", []string{"a"}
	plan.Proposals[2].Expect, plan.Proposals[3].Needs = "fails", []string{"c"}
	report, err := w.stages().Run(t.Context(), plan, proposal.Run{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": "exited ", "b": "exited ", "c": "exited ", "d": `not run it needs "c", which did not succeed`}
	if diff := cmp.Diff(want, statuses(report)); diff != "" {
		t.Error(diff)
	}
}

func TestBudget(t *testing.T) {
	w := &world{decide: map[string]proposal.Effect{"a": proposal.Allow, "b": proposal.Allow}, took: 2 * time.Minute}
	h := w.stages()
	h.Budget = time.Minute
	report, err := h.Run(t.Context(), planOf("a", "b"), proposal.Run{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": "exited ", "b": "not run the run's time budget of 1m0s is used up"}
	if diff := cmp.Diff(want, statuses(report)); diff != "" {
		t.Error(diff)
	}
}

// A log that outlasts the time for all commands leaves the command some time, not none.
func TestBudgetEndsWhileTheLogIsWritten(t *testing.T) {
	w := &world{decide: map[string]proposal.Effect{"a": proposal.Allow}, slow: 2 * time.Minute, results: map[string]proposal.Result{"a": {Status: proposal.TimedOut}}}
	h := w.stages()
	h.Budget = time.Minute
	report, err := h.Run(t.Context(), planOf("a"), proposal.Run{})
	if err != nil {
		t.Fatal(err)
	}
	if got := report.Records[0].Result.Ended(); got != "budget" {
		t.Errorf("ended by %s", got)
	}
}

func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := &world{decide: map[string]proposal.Effect{"a": proposal.Allow, "b": proposal.Allow}, cancel: cancel}
	report, err := w.stages().Run(ctx, planOf("a", "b"), proposal.Run{})
	if proposal.FailureOf(err).Code != "run.cancelled" {
		t.Errorf("error %v, want run.cancelled", err)
	}
	want := map[string]string{"a": "exited ", "b": "not run the run was interrupted"}
	if diff := cmp.Diff(want, statuses(report)); diff != "" {
		t.Error(diff)
	}
	if last := w.did[len(w.did)-1]; last != "log end" {
		t.Errorf("last done: %q, want the log's end", last)
	}
}

// A missing stage is an error; no stage is skipped.
func TestIncomplete(t *testing.T) {
	for name, remove := range map[string]func(*Stages){
		"policy": func(st *Stages) { st.Policy = nil }, "clock": func(st *Stages) { st.Now = nil }, "sandbox": func(st *Stages) { st.Start = nil },
		"log": func(st *Stages) { st.Log = nil }, "observer": func(st *Stages) { st.Observer = nil }, "redactor": func(st *Stages) { st.Redactor = nil },
		"lineage": func(st *Stages) { st.Lineage = nil },
	} {
		w := &world{decide: map[string]proposal.Effect{"a": proposal.Allow}}
		st := w.stages()
		remove(st)
		r, err := st.Run(t.Context(), planOf("a"), proposal.Run{})
		if err == nil || proposal.FailureOf(err).Code != "hood.incomplete" || r.Error == nil || len(w.did) > 0 {
			t.Errorf("without %s: %v, did %q", name, err, w.did)
		}
		if s, err := st.Open(proposal.Run{}, bounds); s != nil || err == nil {
			t.Errorf("without %s a session opens", name)
		}
	}
	records, err := Checker{}.Check(t.Context(), planOf("a"))
	if err == nil || len(records) != 1 || records[0].Decision.Effect != proposal.Deny {
		t.Errorf("without a policy: %+v, %v", records, err)
	}
}

// An invalid proposal is denied without asking policy, whatever else it has, and what needs
// it does not run. The others run.
func TestInvalid(t *testing.T) {
	w := &world{decide: map[string]proposal.Effect{"a": proposal.Allow, "b": proposal.Allow, "c": proposal.Allow}}
	plan := planOf("a", "b", "c")
	plan.Proposals[0].Invalid = &proposal.Invalid{Problems: []proposal.Problem{{Path: "proposals[0].run", Line: 1, Col: 2, Message: "is empty"}}, Text: "run: "}
	plan.Proposals[1].Needs = []string{"a"}
	report, err := w.stages().Run(t.Context(), plan, proposal.Run{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"log run", "decide b", "decide c",
		"log decision a", "log decision b", "log decision c",
		"open sandbox", "log start c", "run c: text of c", "log result c", "close sandbox", "log end",
	}
	if diff := cmp.Diff(want, w.did); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	states := map[string]string{"a": "deny", "b": `not run it needs "a", which did not succeed`, "c": "exited "}
	if diff := cmp.Diff(states, statuses(report)); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	reason := report.Records[0].Decision.Reasons[0]
	if reason.Rule != "plan.proposal" || reason.Message != "proposals[0].run (line 1, column 2): is empty" {
		t.Errorf("reason %+v", reason)
	}
}
