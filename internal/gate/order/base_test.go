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

// A fakeBase is the base of a world: its sandbox is another, and its commands have the ids that
// the world knows.
type fakeBase struct {
	*world
	openErr, sandboxErr error
}

func (b *fakeBase) Commit() string { return strings.Repeat("0b", 20) }
func (b *fakeBase) Open(context.Context) (string, error) {
	b.do("open base")
	return "base", b.openErr
}
func (b *fakeBase) Layers() SetupLayers { return nil }
func (b *fakeBase) Close() error        { return b.do("close base") }

// start starts the sandbox of the base, or of the pull request's code.
func (b *fakeBase) start(o sandbox.Options) (Runner, error) {
	if o.Workspace != "base" {
		return b.world, b.do("open sandbox")
	}
	return b.world, errors.Join(b.sandboxErr, b.do("open base's sandbox"))
}

func printing(code int, out string) proposal.Result {
	return proposal.Result{Status: proposal.Exited, ExitCode: code, Stdout: proposal.Stream{Head: []byte(out), Bytes: int64(len(out))}, Outputs: []proposal.Output{}, Changes: proposal.Changes{Files: []proposal.Change{}}}
}

// based is a world whose commands a, b and c are allowed on both sides.
func based(results map[string]proposal.Result) (*world, *fakeBase, *Stages, *keeper) {
	w := &world{decide: map[string]proposal.Effect{}, results: results}
	for _, id := range []string{"a", "b", "c", "a~base", "b~base", "c~base"} {
		w.decide[id] = proposal.Allow
	}
	base, k := &fakeBase{world: w}, &keeper{world: w}
	h := w.stages()
	h.Base, h.Log, h.Observer, h.Start = base, k, observing(k), base.start
	return w, base, h, k
}

func verdicts(r proposal.Report) map[string]string {
	got := map[string]string{}
	for _, rec := range r.Records {
		got[rec.Proposal.ID] = rec.Outcome().String()
		if rec.Base != nil {
			got[rec.Proposal.ID] += ": " + rec.Base.Verdict
		}
	}
	return got
}

// Only commands that failed run on the base, in order, in another sandbox, after the sandbox of the
// pull request's code has ended; each is decided and logged, and the log proves the report.
func TestBase(t *testing.T) {
	w, _, h, k := based(map[string]proposal.Result{
		"a": printing(1, "old\n"), "a~base": printing(1, "old\n"), "c": printing(1, "--- FAIL: TestNew (0s)\nFAIL\tp\t0s\n"), "c~base": printing(0, "ok\n")})
	report, err := h.Run(t.Context(), planOf("a", "b", "c"), proposal.Run{ID: "1"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "failed before: same", "b": "succeeded", "c": "failed: passes"}, verdicts(report)); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	want := []string{"decide a", "decide b", "decide c", "open sandbox", "run a: text of a", "run b: text of b", "run c: text of c", "close sandbox",
		"open base", "decide a~base", "decide c~base", "open base's sandbox", "run a~base: text of a", "run c~base: text of c", "close sandbox", "close base"}
	if diff := cmp.Diff(want, w.did); diff != "" {
		t.Errorf("what happened (-want +got):\n%s", diff)
	}
	if got := "run decision decision decision start result start result start result base decision decision start result start result end"; kinds(t, k) != got {
		t.Errorf("the log has %s", kinds(t, k))
	}
	if report.Totals != (proposal.Totals{Proposed: 3, Allowed: 3, Succeeded: 1, Failed: 1, FailedBefore: 1}) {
		t.Errorf("%+v", report.Totals)
	}
	if doubts := CompareLog(report, k.entries); len(doubts) > 0 {
		t.Errorf("doubts about our own log: %v", doubts)
	}
	if doubts, barred, err := h.RedecidePlan(t.Context(), planOf("a", "b", "c"), report); len(doubts) > 0 || barred > 0 || err != nil {
		t.Errorf("doubts about our own decisions: %v, %d, %v", doubts, barred, err)
	}
}

// A log without the runs on the base does not prove a report that has them, and the reverse.
func TestBaseIsProved(t *testing.T) {
	_, _, h, k := based(map[string]proposal.Result{"a": printing(1, "old\n"), "a~base": printing(1, "old\n")})
	report, err := h.Run(t.Context(), planOf("a"), proposal.Run{ID: "1"})
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range k.entries {
		if i < 4 || e.Kind == "end" {
			continue
		}
		without := append(append([]journal.Entry(nil), k.entries[:i]...), k.entries[i+1:]...)
		if len(CompareLog(report, without)) == 0 {
			t.Errorf("the log does not need its entry %d, %s", i, e.Kind)
		}
	}
	for name, change := range map[string]func(*proposal.Report){
		"no base":          func(r *proposal.Report) { r.Base = nil },
		"another commit":   func(r *proposal.Report) { b := *r.Base; b.Commit = strings.Repeat("0c", 20); r.Base = &b },
		"another result":   func(r *proposal.Report) { b := *r.Base; b.Records = []proposal.Record{r.Records[0]}; r.Base = &b },
		"without a record": func(r *proposal.Report) { b := *r.Base; b.Records = nil; r.Base = &b },
	} {
		changed := report
		change(&changed)
		if len(CompareLog(changed, k.entries)) == 0 {
			t.Errorf("%s: no doubt", name)
		}
	}
	forged := report
	b := *report.Base
	b.Records = append([]proposal.Record(nil), b.Records...)
	b.Records[0].Proposal.Run = "true"
	forged.Base = &b
	if doubts, _, err := h.RedecidePlan(t.Context(), planOf("a"), forged); len(doubts) == 0 || err != nil {
		t.Errorf("another command on the base is no doubt: %v", err)
	}
}

// Whatever is wrong with the base, the outcome is that without it, and one line says why.
func TestBaseThatCannotBeHad(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*world, *fakeBase, *Stages)
		why    string
	}{
		"cannot be checked out": {func(_ *world, b *fakeBase, _ *Stages) {
			b.openErr = &proposal.StopError{Code: "checkout.local", Message: "no such commit"}
		}, "it cannot be checked out: no such commit"},
		"no sandbox": {func(_ *world, b *fakeBase, _ *Stages) {
			b.sandboxErr = &proposal.StopError{Code: "sandbox.start", Message: "no memory"}
		}, "it cannot run: no memory"},
		"policy cannot answer": {func(w *world, _ *fakeBase, _ *Stages) {
			w.fail = map[string]error{"decide a~base": &proposal.StopError{Code: "policy.error", Message: "no answer"}}
		}, "it cannot run: no answer"},
		"policy denies": {func(w *world, _ *fakeBase, _ *Stages) { w.decide["a~base"] = proposal.Deny }, "policy does not allow it there"},
		"policy asks":   {func(w *world, _ *fakeBase, _ *Stages) { w.decide["a~base"] = proposal.Ask }, "policy does not allow it there"},
		"no time left":  {func(w *world, _ *fakeBase, h *Stages) { w.took, h.Budget = time.Hour, time.Minute }, "the run's time is used up"},
		"the command is lost": {func(w *world, _ *fakeBase, _ *Stages) {
			w.fail = map[string]error{"run a~base: text of a": errors.New("lost")}
		}, "it cannot run: lost"},
	} {
		w, base, h, k := based(map[string]proposal.Result{"a": printing(1, "old\n"), "a~base": printing(1, "old\n")})
		test.change(w, base, h)
		report, err := h.Run(t.Context(), planOf("a"), proposal.Run{ID: "1"})
		if err != nil || report.Error != nil {
			t.Errorf("%s: the run stops: %v", name, err)
			continue
		}
		if r := report.Records[0]; r.Outcome() != proposal.OutcomeFailed || r.Base == nil || r.Base.Verdict != proposal.BaseUnknown || r.Base.Why != test.why {
			t.Errorf("%s: %s, %+v", name, r.Outcome(), r.Base)
		}
		if doubts := CompareLog(report, k.entries); len(doubts) > 0 {
			t.Errorf("%s: %v", name, doubts)
		}
	}
}

// What is not worth a run on the base, or must not have one.
func TestNotOnBase(t *testing.T) {
	for name, change := range map[string]func(*world, *proposal.Plan){
		"succeeded":        func(w *world, _ *proposal.Plan) { w.results["a"] = printing(0, "") },
		"expected to fail": func(_ *world, p *proposal.Plan) { p.Proposals[0].Expect = "fails" },
		"timed out":        func(w *world, _ *proposal.Plan) { r := w.results["a"]; r.Limit = "wall 1s"; w.results["a"] = r },
		"denied":           func(w *world, _ *proposal.Plan) { w.decide["a"] = proposal.Deny },
		"asked":            func(w *world, _ *proposal.Plan) { w.decide["a"] = proposal.Ask },
	} {
		w, _, h, _ := based(map[string]proposal.Result{"a": printing(1, "old\n")})
		plan := planOf("a")
		change(w, &plan)
		report, err := h.Run(t.Context(), plan, proposal.Run{ID: "1"})
		if err != nil || report.Base != nil || strings.Contains(strings.Join(w.did, " "), "base") {
			t.Errorf("%s: %v, %v", name, err, w.did)
		}
		if b := report.Records[0].Base; (b != nil) != (name == "timed out") || b != nil && b.Why != "it reached a limit" {
			t.Errorf("%s: the comparison is %+v", name, b)
		}
	}
}

// A set-up command that fails runs on the base, too, even if no command failed: where it succeeds, the
// change broke it, and it counts as failed.
func TestSetupOnBase(t *testing.T) {
	for name, test := range map[string]struct {
		onBase, want string
		change       func(*proposal.Result)
	}{
		"succeeds there":      {"ok", "failed: passes", func(*proposal.Result) {}},
		"fails there":         {"", "could not run", func(*proposal.Result) {}},
		"a limit was reached": {"ok", "failed", func(r *proposal.Result) { r.Status, r.Limit = proposal.TimedOut, "wall 1s" }},
	} {
		head, there := printing(1, ""), printing(1, "")
		head.Stderr = proposal.Stream{Head: []byte("npm error Missing: a@1.0.0 from lock file\n"), Bytes: 42}
		if test.onBase != "" {
			there = printing(0, test.onBase)
		}
		test.change(&head)
		_, _, h, k := based(map[string]proposal.Result{"a": head, "a~base": there})
		plan := planOf("a", "b")
		plan.Proposals[0].Phase, plan.Proposals[0].Origin = proposal.PhaseSetup, proposal.OriginSetup
		report, err := h.Run(t.Context(), plan, proposal.Run{ID: "1"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"a": test.want, "b": "succeeded"}, verdicts(report)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if doubts := CompareLog(report, k.entries); len(doubts) > 0 {
			t.Errorf("%s: doubts about our own log: %v", name, doubts)
		}
	}
}

// A failure whose output is not complete is not compared, and its line says so.
func TestTooLongForBase(t *testing.T) {
	long := printing(1, "old\n")
	long.Stdout.Truncated, long.Stdout.Bytes = true, 1<<20
	w, _, h, k := based(map[string]proposal.Result{"a": long})
	report, err := h.Run(t.Context(), planOf("a"), proposal.Run{ID: "1"})
	if err != nil {
		t.Fatal(err)
	}
	if c := report.Records[0].Base; c == nil || c.Verdict != proposal.BaseUnknown || c.Why != "its output is too long" {
		t.Errorf("the comparison is %+v", c)
	}
	if got := "run decision start result base end"; kinds(t, k) != got || strings.Contains(strings.Join(w.did, " "), "open base") {
		t.Errorf("the log has %s, and done is %v", kinds(t, k), w.did)
	}
	if doubts := CompareLog(report, k.entries); len(doubts) > 0 {
		t.Errorf("doubts about our own log: %v", doubts)
	}
}

// A command runs on the base after what it needs, and after what changed the workspace before it. If
// that does not succeed there, nothing is known.
func TestBaseAfterOthers(t *testing.T) {
	changing := printing(0, "")
	changing.Changes.Files = []proposal.Change{{Path: "x", Kind: "added", Type: "file"}}
	results := map[string]proposal.Result{"a": changing, "a~base": printing(0, ""), "c": printing(1, "old\n"), "c~base": printing(1, "old\n")}
	w, _, h, _ := based(results)
	report, err := h.Run(t.Context(), planOf("a", "b", "c"), proposal.Run{ID: "1"})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(runs(w.did), " "); got != "run a: text of a run b: text of b run c: text of c run a~base: text of a run c~base: text of c" {
		t.Errorf("ran %s", got)
	}
	if diff := cmp.Diff(map[string]string{"a": "succeeded", "b": "succeeded", "c": "failed before: same"}, verdicts(report)); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	results["a~base"] = printing(1, "no\n")
	_, _, h, _ = based(results)
	if report, err = h.Run(t.Context(), planOf("a", "b", "c"), proposal.Run{ID: "1"}); err != nil {
		t.Fatal(err)
	}
	if r := report.Records[2]; r.Outcome() != proposal.OutcomeFailed || r.Base.Verdict != proposal.BaseUnknown || !strings.Contains(r.Base.Why, `needs the earlier command "a", which`) {
		t.Errorf("%s, %+v", r.Outcome(), r.Base)
	}
}

// A log that cannot be written, and an interruption, end the run on the base, too.
func TestBaseStops(t *testing.T) {
	_, _, h, k := based(map[string]proposal.Result{"a": printing(1, "old\n")})
	k.fails, k.err = "base", &proposal.StopError{Code: "audit.write", Message: "disk full"}
	if _, err := h.Run(t.Context(), planOf("a"), proposal.Run{ID: "1"}); err == nil || proposal.FailureOf(err).Code != "audit.write" {
		t.Errorf("error %v", err)
	}
	w, _, h, _ := based(map[string]proposal.Result{"a": printing(1, "old\n"), "a~base": printing(1, "old\n")})
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	w.cancel = func() {
		if n++; n == 2 {
			cancel()
		}
	}
	report, err := h.Run(ctx, planOf("a"), proposal.Run{ID: "1"})
	if err == nil || report.Error == nil || report.Error.Code != "run.cancelled" || !strings.Contains(report.Error.Message, "comparison with the base") {
		t.Errorf("error %v, report %+v", err, report.Error)
	}
	if r := report.Records[0]; r.Result == nil || r.Result.Status != proposal.Exited || string(r.Result.Stdout.Head) != "old\n" || r.Base == nil {
		t.Errorf("the result is %+v, compared: %+v", r.Result, r.Base)
	}
}
