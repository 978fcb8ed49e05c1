// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/shell/parse"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// onTrial would grant less than the shipped default, and more.
const onTrial = `package fumehood.command

allow contains {"rule": "new.ls"} if input.command.program == "ls"

allow contains {"rule": "new.curl"} if input.command.program == "curl"

deny contains {"rule": "new.secret", "message": "m", "suggestion": "s"} if "x" in input.command.argv
`

const onTrialLimits = `package fumehood.proposal

limits contains {"rule": "new.limits", "wall_ms": 5000, "cpus": 8, "memory_bytes": 999999999999, "pids": 9999, "disk_bytes": 999999999999, "files": 99999, "output_bytes": 99999999999}

network contains {"rule": "new.host", "host": "go.example"} if true

env contains {"rule": "new.env", "name": "LD_PRELOAD"} if true
`

func onTrialEngine(t *testing.T, more ...policy.Layer) *policy.Engine {
	t.Helper()
	l := layersOf(t, policy.Grants, folder(t, "c.rego", onTrial, "p.rego", onTrialLimits, "e.rego", "package fumehood.exec\n\nallow contains {\"rule\": \"new.exec\"} if input.name == \"ls\"\n"))
	e, err := policy.New(t.Context(), policy.Options{Layers: append(more, l...), Observe: true})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestCandidate holds that a granting layer that is observed changes nothing, grants
// nothing, and that each thing which it would refuse is recorded.
func TestCandidate(t *testing.T) {
	plain, e := shipped(t), onTrialEngine(t)
	for text, want := range map[string][]string{
		"ls":                 {"allow (limits)"},
		"ls x":               {"deny (new.secret)", "allow (limits)"},
		"cat y":              {"deny (default.no-rule)", "allow (limits)"},
		"go test ./...":      {"deny (default.no-rule)", "allow (exec.built)", "allow (limits)"},
		"ls | sort":          {"deny (default.no-rule)", "allow (limits)"},
		"curl x":             {"deny network.client", "deny (new.secret)", "allow (limits)"},
		"curl":               {"deny network.client", "allow (limits)"},
		"nosuch":             {"deny default.no-rule", "allow (limits)"},
		"$(cat y)":           {"deny floor.unknown"},
		"cat /root/.ssh/x y": {"deny read.secret", "deny (default.no-rule)", "allow (limits)"},
	} {
		got, alone := decide(t, e, text), decide(t, plain, text)
		if text != "$(cat y)" {
			if diff := cmp.Diff(want, spoken(got)); diff != "" {
				t.Errorf("%q: %s", text, diff)
			}
		}
		if got.Effect != alone.Effect || !cmp.Equal(got.Grant, alone.Grant) {
			t.Errorf("%q: %v %+v, and without the layer %v %+v", text, got.Effect, got.Grant, alone.Effect, alone.Grant)
		}
	}
	for _, p := range []proposal.Proposal{
		{ID: "t", Run: "ls", Network: []string{"go.example"}},
		{ID: "t", Run: "ls", Env: map[string]string{"LD_PRELOAD": "x"}},
	} {
		if d, err := e.Decide(t.Context(), p, parse.Analyze(p)); err != nil || d.Effect != proposal.Deny {
			t.Errorf("%+v: %v by %v, %v", p, d.Effect, d.Rules, err)
		}
	}
	p := proposal.Proposal{ID: "t", Run: "ls", Env: map[string]string{"CI": "true"}}
	d, err := e.Decide(t.Context(), p, parse.Analyze(p))
	if diff := cmp.Diff([]string{"deny (env.name)", "allow (limits)"}, spoken(d)); err != nil || diff != "" || d.Effect != proposal.Allow {
		t.Errorf("env: %v %v %s", d.Effect, err, diff)
	}
	if held := with(t, folder(t, "c.rego", onTrial)); held.Digest() == e.Digest() {
		t.Error("one digest for two policies")
	}
}

// TestCandidateHosts holds that what another layer grants is not missed in the
// candidate, and what no other layer grants is.
func TestCandidateHosts(t *testing.T) {
	p := proposal.Proposal{ID: "t", Run: "ls", Network: []string{"go.example"}}
	hosts := layersOf(t, policy.Opens, folder(t, "h.rego", "package fumehood.proposal\n\nnetwork contains {\"rule\": \"x\", \"host\": \"go.example\"} if true\n"))
	d, err := onTrialEngine(t, hosts...).Decide(t.Context(), p, parse.Analyze(p))
	if diff := cmp.Diff([]string{"allow (limits)"}, spoken(d)); err != nil || d.Effect != proposal.Allow || diff != "" {
		t.Errorf("%v, %v: %s", d.Effect, err, diff)
	}
}

// TestCandidateElsewhere holds the same of programs, connections and triggers.
func TestCandidateElsewhere(t *testing.T) {
	e := onTrialEngine(t)
	x := plainExec()
	d, err := e.Exec(t.Context(), x)
	if err != nil || d.Effect != proposal.Allow || !d.Observed || d.Reason == nil || d.Reason.Rule != "exec.no-rule" {
		t.Errorf("git: %+v, %v", d, err)
	}
	x.Path, x.Argv = "/usr/bin/ls", []string{"ls"}
	if d, err := e.Exec(t.Context(), x); err != nil || d.Effect != proposal.Allow || d.Observed {
		t.Errorf("ls: %+v, %v", d, err)
	}
	x.Path = "/usr/bin/sudo"
	if d, err := e.Exec(t.Context(), x); err != nil || d.Effect != proposal.Deny || d.Observed {
		t.Errorf("sudo: %+v, %v", d, err)
	}
	g, err := e.Egress(t.Context(), proposal.Egress{Command: "t", Phase: proposal.PhaseRun, Kind: points.EgressLookup, Name: "go.example", Type: "A", Grants: []string{"go.example"}})
	if err != nil || g.Effect != proposal.Allow || !g.Observed || g.Reason.Rule != "egress.no-rule" {
		t.Errorf("egress: %+v, %v", g, err)
	}
	w := trigger(t, e, usual())
	if diff := cmp.Diff([]string{"deny (trigger.no-rule)"}, spoken(w)); diff != "" || w.Effect != proposal.Allow {
		t.Errorf("trigger: %v, %s", w.Effect, diff)
	}
}

// TestCandidateKeepsTheFloor holds that nothing hostile passes beside a candidate that
// would allow everything.
func TestCandidateKeepsTheFloor(t *testing.T) {
	lanetest.SkipShort(t)
	l := layersOf(t, policy.Grants, folder(t, "c.rego", "package fumehood.command\n\nallow contains {\"rule\": \"new.all\"} if true\n"))
	e, err := policy.New(t.Context(), policy.Options{Layers: l, Observe: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range readEntries(t, "hostile")[:300] {
		p := proposal.Proposal{ID: "t", Run: c.text}
		if d, err := e.Decide(t.Context(), p, parse.Analyze(p)); err != nil || d.Effect == proposal.Allow {
			t.Errorf("%q: %v by %v, %v", c.text, d.Effect, d.Rules, err)
		}
	}
}
