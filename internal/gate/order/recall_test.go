// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const testKey = "abababababababababababababababababababababababababababababababab"

// memory is a Results that has a result of the proposals in has.
type memory struct {
	w   *world
	has map[string]*proposal.Result
}

func (m memory) Find(_ context.Context, r proposal.Record, _ sandbox.Options) (string, *proposal.Result) {
	_ = m.w.do("find " + r.Proposal.ID)
	return testKey, m.has[r.Proposal.ID]
}

func (m memory) Keep(r proposal.Record, _ int64) { _ = m.w.do("keep " + r.Proposal.ID) }

// remembering is w as a policy that grants cache.
type remembering struct{ *world }

func (w remembering) Decide(ctx context.Context, p proposal.Proposal, a proposal.Analysis) (proposal.Decision, error) {
	d, err := w.world.Decide(ctx, p, a)
	if d.Grant != nil {
		d.Grant.Cache, d.Grant.Phase, d.Grant.Fresh = p.Cache, proposal.PhaseRun, p.Fresh
	}
	return d, err
}

func computed() proposal.Result {
	empty := proposal.Stream{SHA256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}
	return proposal.Result{Status: proposal.Exited, Stdout: empty, Stderr: empty, Outputs: []proposal.Output{}, Changes: proposal.Changes{Files: []proposal.Change{}},
		Observations: &proposal.Observations{Complete: true}}
}

// recalled returns what happened to the last of a plan's proposals: what was looked up, ran and
// was kept.
func recalled(t *testing.T, w *world, has map[string]*proposal.Result, plan proposal.Plan) ([]string, proposal.Report) {
	t.Helper()
	h := w.stages()
	h.Policy, h.Results = remembering{w}, memory{w, has}
	report, err := h.Run(t.Context(), plan, proposal.Run{})
	if err != nil {
		t.Fatal(err)
	}
	last := plan.Proposals[len(plan.Proposals)-1].ID
	var did []string
	for _, what := range w.did {
		for _, kind := range []string{"find " + last, "log start " + last, "keep " + last, "log cached"} {
			if what == kind {
				did = append(did, kind)
			}
		}
	}
	return did, report
}

// A kept result is used in place of a start, and only where nothing before it can matter.
func TestRecall(t *testing.T) {
	kept := computed()
	kept.Cached, kept.CacheKey = &proposal.Cached{Run: "r"}, testKey
	changes := computed()
	changes.Changes.Files = []proposal.Change{{Path: "a", Kind: "added", Type: "file"}}
	failing := computed()
	failing.ExitCode = 1
	lookUp := []string{"find b", "log start b", "keep b"}
	for name, test := range map[string]struct {
		first proposal.Result
		plan  func(a, b *proposal.Proposal)
		has   bool
		want  []string
	}{
		"kept":                  {computed(), func(a, b *proposal.Proposal) {}, true, []string{"find b", "log cached"}},
		"not kept yet":          {computed(), func(a, b *proposal.Proposal) {}, false, lookUp},
		"not requested":         {computed(), func(a, b *proposal.Proposal) { b.Cache = false }, true, []string{"log start b"}},
		"after a change":        {changes, func(a, b *proposal.Proposal) {}, true, []string{"log start b"}},
		"after a failure":       {failing, func(a, b *proposal.Proposal) {}, false, lookUp},
		"after any command":     {computed(), func(a, b *proposal.Proposal) { a.Cache = false }, true, []string{"log start b"}},
		"in a new sandbox":      {changes, func(a, b *proposal.Proposal) { b.Fresh = true }, true, []string{"find b", "log cached"}},
		"beside a service":      {computed(), func(a, b *proposal.Proposal) { a.Origin, b.Fresh = proposal.OriginService, true }, true, []string{"log start b"}},
		"outputs":               {computed(), func(a, b *proposal.Proposal) { b.Outputs = []string{"x"} }, true, []string{"log start b"}},
		"after one that is not": {computed(), func(a, b *proposal.Proposal) { a.ID = "denied" }, true, []string{"find b", "log cached"}},
	} {
		w := &world{decide: map[string]proposal.Effect{"a": proposal.Allow, "b": proposal.Allow}, results: map[string]proposal.Result{"a": test.first, "b": computed()}}
		plan := planOf("a", "b")
		for i := range plan.Proposals {
			plan.Proposals[i].Cache = true
		}
		test.plan(&plan.Proposals[0], &plan.Proposals[1])
		has := map[string]*proposal.Result{}
		if one := kept; test.has {
			has["b"] = &one
		}
		did, report := recalled(t, w, has, plan)
		cached := slices.Contains(did, "log cached")
		if !slices.Equal(did, test.want) || (report.Totals.Cached == 1) != cached {
			t.Errorf("%s: %q, %+v", name, did, report.Totals)
		}
	}
}

// A kept result's proof is checked when a report is compared with its log.
func TestVerifyCached(t *testing.T) {
	lanetest.SkipShort(t)
	r := proposal.Record{Proposal: proposal.Proposal{ID: "b"}, Entry: 1, Result: new(computed())}
	r.Result.CacheKey = testKey
	log, err := audit.Create(t.TempDir()+"/audit.jsonl", audit.Options{Origin: "fumehood/r", Now: func() time.Time { return time.Unix(0, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	n, err := log.Append("result", journal.NewResult(r))
	if err != nil {
		t.Fatal(err)
	}
	prove := func() string {
		f, err := audit.OpenFile(log.Path())
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		proof, err := audit.Prove(f, audit.Trust{Key: log.Key()}, n)
		if err != nil {
			t.Fatal(err)
		}
		return string(proof)
	}
	r.Result.Observations = nil
	r.Result.Cached = &proposal.Cached{Run: "r", Log: "fumehood/r", Key: log.Key(), Entry: n, Proof: prove()}
	if VerifyCached(*r.Result) == nil {
		t.Error("a proof of a log that was not sealed is enough")
	}
	if _, err := log.Seal(); err != nil {
		t.Fatal(err)
	}
	r.Result.Cached.Proof = prove()
	if err := VerifyCached(*r.Result); err != nil {
		t.Error(err)
	}
	doubted := func(result proposal.Result) bool {
		r.Result = &result
		return slices.Contains(CompareLog(proposal.Report{Records: []proposal.Record{{}, r}}, nil), "the kept result of command 2 is not proved")
	}
	if doubted(*r.Result) {
		t.Error("a kept result that is proved is doubted")
	}
	for name, change := range map[string]func(*proposal.Result, *proposal.Cached){
		"run":    func(_ *proposal.Result, c *proposal.Cached) { c.Run = "s" },
		"log":    func(_ *proposal.Result, c *proposal.Cached) { c.Log = "fumehood/s" },
		"entry":  func(_ *proposal.Result, c *proposal.Cached) { c.Entry++ },
		"proof":  func(_ *proposal.Result, c *proposal.Cached) { c.Proof += "\n" },
		"key":    func(r *proposal.Result, _ *proposal.Cached) { r.CacheKey = "cd" + testKey[2:] },
		"output": func(r *proposal.Result, _ *proposal.Cached) { r.Stdout.Bytes++ },
		"wall":   func(r *proposal.Result, _ *proposal.Cached) { r.WallMS++ },
	} {
		result, cached := *r.Result, *r.Result.Cached
		result.Cached = &cached
		if change(&result, &cached); VerifyCached(result) == nil || !doubted(result) {
			t.Errorf("a kept result with another %s is verified", name)
		}
	}
}
