// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// shelf is a Layers that records its calls among a world's.
type shelf struct {
	*world
	has    *proposal.Layer
	record bool
}

func idsOf(setup []proposal.Record) string {
	var ids []string
	for _, r := range setup {
		ids = append(ids, r.Proposal.ID)
	}
	return strings.Join(ids, " ")
}

func (s shelf) Find(_ context.Context, setup []proposal.Record, _ sandbox.Options) FoundSetupLayer {
	_ = s.do("find " + idsOf(setup))
	return FoundSetupLayer{Layer: s.has, Record: s.record}
}

func (s shelf) Keep(_ context.Context, _ Runner, setup []proposal.Record) *proposal.Layer {
	_ = s.do("keep " + idsOf(setup))
	return &proposal.Layer{Key: "new", Run: "this"}
}

// withSetUp is a plan whose first two commands are set-up.
func withSetUp() proposal.Plan {
	p := planOf("s", "t", "a")
	p.Proposals[0].Origin, p.Proposals[1].Origin = proposal.OriginSetup, proposal.OriginSetup
	return p
}

var allowed = map[string]proposal.Effect{"s": proposal.Allow, "t": proposal.Allow, "a": proposal.Allow}

// does returns the calls that are not about deciding.
func (w *world) does() []string {
	return slices.DeleteFunc(slices.Clone(w.did), func(call string) bool { return strings.Contains(call, "decide") || strings.Contains(call, "decision") })
}

// What set-up left is kept after its last command and before any other. It is in that
// command's result.
func TestLayerIsKept(t *testing.T) {
	w := &world{decide: allowed}
	h := w.stages()
	h.Layers = shelf{world: w}
	report, err := h.Run(t.Context(), withSetUp(), proposal.Run{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"log run", "find s t", "open sandbox", "log start s", "run s: text of s", "log result s", "log start t", "run t: text of t", "keep s t", "log result t",
		"log start a", "run a: text of a", "log result a", "close sandbox", "log end"}
	if diff := cmp.Diff(want, w.does()); diff != "" {
		t.Error(diff)
	}
	if l := report.Records[1].Result.Layer; l == nil || !l.Kept || report.Records[0].Result.Layer != nil || report.Records[2].Result.Layer != nil {
		t.Errorf("%+v", l)
	}
}

// A layer replaces set-up and nothing else: nothing of it starts, and the log agrees with the
// report.
func TestLayerReplacesSetUp(t *testing.T) {
	w, log := &world{decide: allowed}, &entries{}
	h := w.stages()
	h.Layers, h.Log = shelf{world: w, has: &proposal.Layer{Key: "k", Digest: "d", Run: "other"}}, log
	report, err := h.Run(t.Context(), withSetUp(), proposal.Run{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"find s t", "open sandbox", "run a: text of a", "close sandbox"}
	if diff := cmp.Diff(want, w.does()); diff != "" {
		t.Error(diff)
	}
	for i, from := range []bool{true, true, false} {
		if r := report.Records[i].Result; !r.Succeeded() || r.FromLayer() != from {
			t.Errorf("%d: %+v", i, r)
		}
	}
	if doubts := CompareLog(report, log.list); len(doubts) > 0 {
		t.Errorf("%q", doubts)
	}
	report.Records[0].Result.Layer.Digest = "another"
	if doubts := CompareLog(report, log.list); len(doubts) == 0 {
		t.Error("another layer in the report agrees with the log")
	}
}

// A command before set-up runs first. Set-up then begins in a new sandbox, so that nothing of the command
// steers it or is in its layer. The log has them in this order.
func TestCommandsBeforeSetUp(t *testing.T) {
	for _, record := range []bool{true, false} {
		w, log := &world{decide: allowed}, &entries{}
		h, plan := w.stages(), withSetUp()
		plan.Proposals = []proposal.Proposal{plan.Proposals[2], plan.Proposals[0], plan.Proposals[1]}
		h.Layers, h.Log = shelf{world: w, record: record}, log
		start, fresh := h.Start, []string{}
		h.Start = func(o sandbox.Options) (Runner, error) {
			r, err := start(o)
			return watchedRunner{r, &fresh}, err
		}
		report, err := h.Run(t.Context(), plan, proposal.Run{})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"find s t", "open sandbox", "run a: text of a", "run s: text of s", "run t: text of t", "keep s t", "close sandbox"}
		if diff := cmp.Diff(want, w.does()); diff != "" {
			t.Error(diff)
		}
		if got := strings.Join(fresh, " "); got != "s" {
			t.Errorf("record %v: %q began in a new sandbox", record, got)
		}
		if doubts := CompareLog(report, log.list); len(doubts) > 0 {
			t.Errorf("%q", doubts)
		}
	}
}

// No layer is made of a session's set-up if a command came between its commands, although it only reads, or
// if one that may write came before them.
func TestLayerOfSession(t *testing.T) {
	for order, want := range map[string]bool{"s t": true, "a s t": true, "s a t": false, "b s t": false} {
		w := &world{decide: map[string]proposal.Effect{"s": proposal.Allow, "t": proposal.Allow, "a": proposal.Allow, "b": proposal.Allow}}
		h := w.stages()
		h.Layers = shelf{world: w, record: true}
		s := openSession(t, h)
		plan := withSetUp()
		texts := map[string]proposal.Proposal{"s": plan.Proposals[0], "t": plan.Proposals[1], "a": {ID: "a", Run: "cat a"}, "b": {ID: "b", Run: "make"}}
		if _, err := s.Prepare(t.Context(), plan.Proposals[:2]); err != nil {
			t.Fatal(err)
		}
		for id := range strings.FieldsSeq(order) {
			if _, err := s.Do(t.Context(), texts[id]); err != nil {
				t.Fatal(err)
			}
		}
		if kept := slices.Contains(w.did, "keep s t"); kept != want {
			t.Errorf("%s: kept %v", order, kept)
		}
		if _, err := s.Close(nil); err != nil {
			t.Fatal(err)
		}
	}
}

// watchedRunner notes which commands must begin in a new sandbox.
type watchedRunner struct {
	Runner
	fresh *[]string
}

func (r watchedRunner) Run(ctx context.Context, x sandbox.Execution) (proposal.Result, error) {
	if x.Grant.Fresh {
		*r.fresh = append(*r.fresh, x.ID)
	}
	return r.Runner.Run(ctx, x)
}

// entries is a log in memory.
type entries struct{ list []journal.Entry }

func (l *entries) Write(kind string, v any) (int64, error) { return l.Append(kind, v) }

func (l *entries) Append(kind string, v any) (int64, error) {
	body, err := json.Marshal(v)
	l.list = append(l.list, journal.Entry{Kind: kind, Body: body})
	return int64(len(l.list) - 1), err
}

// Nothing is kept unless all of set-up has succeeded in one sandbox.
func TestLayerIsNotKept(t *testing.T) {
	for name, w := range map[string]*world{
		"a failure":      {decide: allowed, results: map[string]proposal.Result{"s": {Status: proposal.Exited, ExitCode: 1}}},
		"the last fails": {decide: allowed, results: map[string]proposal.Result{"t": {Status: proposal.Exited, ExitCode: 1}}},
		"a new sandbox":  {decide: allowed, results: map[string]proposal.Result{"t": {Status: proposal.Exited, NewSandbox: true}}},
		"denied":         {decide: map[string]proposal.Effect{"s": proposal.Allow, "a": proposal.Allow}},
		"no set-up":      {decide: allowed},
	} {
		h, plan := w.stages(), withSetUp()
		h.Layers = shelf{world: w}
		if name == "no set-up" {
			plan = planOf("a")
		}
		if _, err := h.Run(t.Context(), plan, proposal.Run{}); err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(w.did, func(call string) bool { return strings.HasPrefix(call, "keep") }); i >= 0 {
			t.Errorf("%s: %s", name, w.did[i])
		}
	}
}
