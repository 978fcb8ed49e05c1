// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/shell/parse"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const strict = `package fumehood.command

deny contains {"rule": "mine.tail", "message": "m", "suggestion": "s"} if input.command.program == "tail"

ask contains {"rule": "mine.head", "message": "m", "suggestion": "s"} if input.command.program == "head"
`

const strictLimits = `package fumehood.proposal

limits contains {"rule": "mine.limits", "wall_ms": 1000, "memory_bytes": 999999999999999} if true
`

const strictTrigger = `package fumehood.trigger

deny contains {"rule": "mine.nobody", "message": "m", "suggestion": "s"} if true
`

func observing(t *testing.T, dir string) *policy.Engine {
	t.Helper()
	e, err := policy.New(t.Context(), policy.Options{Layers: layersOf(t, policy.Restricts, dir), Observe: true})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// spoken are the rules of d's reasons, those that are only observed in brackets.
func spoken(d proposal.Decision) []string {
	var all []string
	for _, r := range d.Reasons {
		if r.Observed {
			all = append(all, r.Effect.String()+" ("+r.Rule+")")
		} else {
			all = append(all, r.Effect.String()+" "+r.Rule)
		}
	}
	return all
}

// TestObserve holds that an observed layer changes nothing but what is recorded.
func TestObserve(t *testing.T) {
	dir := folder(t, "a.rego", strict, "p.rego", strictLimits, "t.rego", strictTrigger)
	e, plain := observing(t, dir), shipped(t)
	for text, want := range map[string][]string{
		"cat x":             {"allow (mine.limits)"},
		"tail x":            {"deny (mine.tail)", "allow (mine.limits)"},
		"head x":            {"ask (mine.head)", "allow (mine.limits)"},
		"curl x | tail":     {"deny network.client", "deny (mine.tail)", "allow (mine.limits)"},
		"./x; nosuch; head": {"deny default.no-rule", "ask (mine.head)", "allow (mine.limits)"},
	} {
		got, alone := decide(t, e, text), decide(t, plain, text)
		if diff := cmp.Diff(want, spoken(got)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
		if got.Effect != alone.Effect || !cmp.Equal(got.Grant, alone.Grant) {
			t.Errorf("%q: %v %+v, and without the layer %v %+v", text, got.Effect, got.Grant, alone.Effect, alone.Grant)
		}
		for _, r := range got.Reasons {
			if r.Message == "" || r.Suggestion == "" {
				t.Errorf("a reason is silent: %+v", r)
			}
		}
	}
	if held := with(t, dir); held.Digest() == e.Digest() {
		t.Error("an observed policy has the digest of one that holds")
	}
	d := trigger(t, e, usual())
	if diff := cmp.Diff([]string{"deny (mine.nobody)"}, spoken(d)); diff != "" || d.Effect != proposal.Allow {
		t.Errorf("trigger: %v, %s", d.Effect, diff)
	}
	in := usual()
	in.Actor.Permission = "read"
	if d := trigger(t, e, in); d.Effect != proposal.Deny {
		t.Errorf("a reader's trigger: %v by %v", d.Effect, d.Rules)
	}
}

// TestObserveKeepsTheFloor holds that nothing hostile passes because a layer is only
// observed, and that a layer with a defect still stops.
func TestObserveKeepsTheFloor(t *testing.T) {
	lanetest.SkipShort(t)
	e := observing(t, folder(t, "a.rego", `package fumehood.command

allow contains {"rule": "mine.all"} if true

deny contains {"rule": "mine.none", "message": "m", "suggestion": "s"} if true
`))
	for _, c := range readEntries(t, "hostile")[:300] {
		p := proposal.Proposal{ID: "t", Run: c.text}
		if d, err := e.Decide(t.Context(), p, parse.Analyze(p)); err != nil || d.Effect == proposal.Allow {
			t.Errorf("%q: %v by %v, %v", c.text, d.Effect, d.Rules, err)
		}
	}
	broken := observing(t, folder(t, "a.rego", denyHead+"to_number(input.command.program) > 3"))
	p := proposal.Proposal{ID: "t", Run: "ls"}
	if d, err := broken.Decide(t.Context(), p, parse.Analyze(p)); codeOf(err) != "policy.eval" || d.Effect != proposal.Deny {
		t.Errorf("a broken layer: %v, %v", d.Effect, err)
	}
}

// TestAskCarriesTheGrant holds that an ask says what an approval would give, and a
// deny gives nothing.
func TestAskCarriesTheGrant(t *testing.T) {
	e := with(t, folder(t, "a.rego", strict, "p.rego", strictLimits))
	asked := decide(t, e, "head x")
	if asked.Effect != proposal.Ask || asked.Grant == nil || asked.Grant.Limits.Wall.Std() != time.Second || asked.Grant.Limits.Memory != 4*proposal.GiB {
		t.Errorf("ask: %+v", asked)
	}
	for _, text := range []string{"tail x", "head x | tail", "curl x"} {
		if d := decide(t, e, text); d.Effect != proposal.Deny || d.Grant != nil {
			t.Errorf("%q: %+v", text, d)
		}
	}
}

// TestLimitsAreLoweredInAnyOrder holds that a layer lowers although it speaks before
// the one that grants.
func TestLimitsAreLoweredInAnyOrder(t *testing.T) {
	low := layersOf(t, policy.Restricts, folder(t, "p.rego", strings.ReplaceAll(strictLimits, "999999999999999", "16777216")))
	grants := layersOf(t, policy.Grants, folder(t, "a.rego", "package fumehood.command\n\nallow contains {\"rule\": \"org.ls\"} if input.command.program == \"ls\"\n", "p.rego", `package fumehood.proposal

limits contains {"rule": "org.limits", "wall_ms": 5000, "cpus": 0.5, "memory_bytes": 33554432, "pids": 8, "disk_bytes": 1048576, "files": 10, "output_bytes": 1000}
`))
	for name, dirs := range map[string][]policy.Layer{"before": {low[0], grants[0]}, "after": {grants[0], low[0]}} {
		e, err := policy.New(t.Context(), policy.Options{Layers: dirs})
		if err != nil {
			t.Fatal(err)
		}
		if d := decide(t, e, "ls"); d.Effect != proposal.Allow || d.Grant.Limits.Wall.Std() != time.Second || d.Grant.Limits.Memory != 16*proposal.MiB {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// A limit with which nothing could start denies with a reason, also if it is computed, and not if the proposal
// requests it.
func TestLimitFloors(t *testing.T) {
	few := folder(t, "p.rego", "package fumehood.proposal\n\nlimits contains {\"rule\": \"o.l\", \"memory_bytes\": n} if n := count(input.proposal.programs) * 512\n")
	for role := policy.Restricts; role < policy.Grants; role++ {
		e, err := policy.New(t.Context(), policy.Options{Layers: layersOf(t, role, few)})
		if err != nil {
			t.Fatal(err)
		}
		d := decide(t, e, "ls")
		if diff := cmp.Diff([]string{"deny floor.limits"}, spoken(d)); diff != "" || d.Effect != proposal.Deny || d.Grant != nil {
			t.Errorf("%v: %v %s", role, d.Effect, diff)
		}
	}
	p := proposal.Proposal{ID: "t", Run: "ls", Limits: &proposal.Limits{Memory: 512}}
	if d, err := with(t, few).Decide(t.Context(), p, parse.Analyze(p)); err != nil || d.Effect != proposal.Allow {
		t.Errorf("requested: %+v, %v", d, err)
	}
	seen := observing(t, few)
	if diff := cmp.Diff([]string{"allow (o.l)"}, spoken(decide(t, seen, "ls"))); diff != "" {
		t.Error("observed: " + diff)
	}
}
