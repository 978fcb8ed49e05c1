// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// trialRules are a denial, a question and a limit with a mode, and a denial without one.
func trialRules(mode string) string {
	return `package fumehood.command

# METADATA
# title: T
# custom: {rule: o.tail` + mode + `}
deny contains {"rule": "o.tail", "message": "m", "suggestion": "s"} if input.command.program == "tail"

# METADATA
# title: T
# custom: {rule: o.head` + mode + `}
ask contains {"rule": "o.head", "message": "m", "suggestion": "s"} if input.command.program == "head"

# METADATA
# title: T
# custom: {rule: o.less` + mode + `}
limits contains {"rule": "o.less", "wall_ms": 5000} if input.command.program == "head"

deny contains {"rule": "o.sort", "message": "m", "suggestion": "s"} if input.command.program == "sort"
`
}

var trialDay = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func engineAt(t *testing.T, now time.Time, layers ...policy.Layer) *policy.Engine {
	t.Helper()
	e, err := policy.New(t.Context(), policy.Options{Layers: layers, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// An observed rule of a layer with any role has no effect, is recorded with its revision, and enforces
// from its date on; the rules beside it count.
func TestObservedRules(t *testing.T) {
	const mode = ", mode: observe, until: 2026-12-31"
	for role := policy.Restricts; role <= policy.Allows; role++ {
		layers := layersOf(t, role, folder(t, "a.rego", trialRules(mode)))
		e, later := engineAt(t, trialDay, layers...), engineAt(t, trialDay.AddDate(0, 0, 30), layers...)
		for text, want := range map[string][2][]string{
			"tail x": {{"deny (o.tail)"}, {"deny o.tail"}},
			"head x": {{"ask (o.head)", "allow (o.less)"}, {"ask o.head"}},
			"sort x": {{"deny o.sort"}, {"deny o.sort"}},
			"curl x": {{"deny network.client"}, {"deny network.client"}},
		} {
			d := decide(t, e, text)
			if diff := cmp.Diff(want[0], spoken(d)); diff != "" {
				t.Errorf("%v, %q: %s", role, text, diff)
			}
			for _, r := range d.Reasons {
				if r.Observed != strings.HasPrefix(r.Revision, "sha256:") {
					t.Errorf("%v, %q: %+v", role, text, r)
				}
			}
			if diff := cmp.Diff(want[1], spoken(decide(t, later, text))); diff != "" {
				t.Errorf("%v, %q, later: %s", role, text, diff)
			}
		}
		if e.Digest() == later.Digest() {
			t.Errorf("%v: one digest before and after the date", role)
		}
	}
}

// The later of the clock and of the run's start decides whether a trial is over: neither a slow clock nor an old
// context prolongs it.
func TestPolicyTime(t *testing.T) {
	day := func(n int) time.Time { return time.Now().AddDate(0, 0, n).UTC() }
	for _, c := range []struct {
		until, started int
		want           string
	}{{2, 0, "deny (o.tail)"}, {2, 1, "deny (o.tail)"}, {2, 3, "deny o.tail"}, {-1, -3, "deny o.tail"}} {
		layers := layersOf(t, policy.Allows, folder(t, "a.rego", trialRules(", mode: observe, until: "+day(c.until).Format(time.DateOnly))))
		o := policy.Options{Layers: layers, Context: proposal.Context{Started: points.FormatStarted(day(c.started))}}
		e, err := policy.New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if got := spoken(decide(t, e, "tail x")); got[0] != c.want {
			t.Errorf("until day %d, started on day %d: %q, want %q", c.until, c.started, got, c.want)
		}
		if digest, err := o.Digest(); err != nil || digest != e.Digest() {
			t.Errorf("until day %d, started on day %d: another digest (%v)", c.until, c.started, err)
		}
	}
}

// The revision is that of the rule's text, whatever else changes.
func TestRevisions(t *testing.T) {
	revision := func(text string) string {
		e := engineAt(t, trialDay, layersOf(t, policy.Allows, folder(t, "a.rego", text))...)
		return decide(t, e, "tail x").Reasons[0].Revision
	}
	const mode = ", mode: observe, until: 2026-12-31"
	plain := revision(trialRules(mode))
	if other := revision(trialRules(", mode: observe, until: 2026-12-30") + "\n# x\n"); other != plain {
		t.Errorf("%q and %q", plain, other)
	}
	if other := revision(strings.Replace(trialRules(mode), `== "tail"`, `in {"tail"}`, 1)); other == plain {
		t.Errorf("two texts of %q", other)
	}
}

// A package that is observed has no effect: its grants do not apply without its denials.
func TestObservedPackages(t *testing.T) {
	const above = "# METADATA\n# title: P\n# custom: {mode: observe, until: 2026-12-31}\n"
	files := []string{"a.rego", above + `package fumehood.command

allow contains {"rule": "o.new"} if input.command.program == "mytool"

deny contains {"rule": "o.tail", "message": "m", "suggestion": "s"} if input.command.program == "tail"
`, "b.rego", `package fumehood.command

deny contains {"rule": "o.head", "message": "m", "suggestion": "s"} if count(deny) > 5

deny contains {"rule": "o.cat", "message": "m", "suggestion": "s"} if input.command.program == "cat"
`, "n.rego", above + "package fumehood.proposal\n\nnetwork contains {\"rule\": \"o.h\", \"host\": \"a.example\"} if true\n"}
	files[3] = strings.Replace(files[3], "if count(deny) > 5", "if input.command.program == \"nosuch\"", 1)
	e := engineAt(t, trialDay, layersOf(t, policy.Allows, folder(t, files...))...)
	for text, want := range map[string][]string{
		"mytool": {"deny default.no-rule"}, "tail x": {"deny (o.tail)"}, "cat x": {"deny (o.cat)"},
	} {
		if diff := cmp.Diff(want, spoken(decide(t, e, text))); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
	d, err := e.Decide(t.Context(), proposal.Proposal{ID: "t", Argv: []string{"cat", "x"}, Network: []string{"a.example"}}, proposal.Analysis{})
	if err != nil || d.Effect != proposal.Deny {
		t.Errorf("an observed grant: %+v, %v", d, err)
	}
}

// Rules are observed at every decision point that can refuse, and no kept answer forgets it.
func TestObservedPoints(t *testing.T) {
	rule := func(point, condition string) string {
		return "package fumehood." + point + "\n\n# METADATA\n# title: T\n# custom: {rule: o." + point +
			", mode: observe, until: 2026-12-31}\ndeny contains {\"rule\": \"o." + point + "\", \"message\": \"m\", \"suggestion\": \"s\"} if " + condition + "\n"
	}
	dir := folder(t, "p.rego", rule("proposal", "true"), "c.rego", rule("command", "true"), "s.rego", rule("snippet", "true"),
		"x.rego", rule("exec", `input.argv[1] == "x"`), "e.rego", rule("egress", "true"), "o.rego", rule("output", "true"), "t.rego", rule("trigger", "true"))
	for role := policy.Restricts; role <= policy.Allows; role++ {
		e := engineAt(t, trialDay, layersOf(t, role, dir)...)
		if diff := cmp.Diff([]string{"deny (o.proposal)", "deny (o.command)", "deny (o.snippet)"}, spoken(decide(t, e, "python3 -c 'print(1)'"))); diff != "" {
			t.Error(diff)
		}
		x := plainExec()
		x.Argv = append([]string{"git", "x"}, x.Argv...)
		d, err := e.Exec(t.Context(), x)
		if err != nil || d.Effect != proposal.Allow || !d.Observed || d.Reason.Rule != "o.exec" || d.Reason.Revision == "" || d.Cacheable {
			t.Errorf("exec: %+v, %v", d, err)
		}
		g, err := e.Egress(t.Context(), proposal.Egress{Command: "t", Phase: proposal.PhaseRun, Kind: points.EgressLookup, Name: "go.example", Type: "A", Grants: []string{"go.example"}})
		if err != nil || g.Effect != proposal.Allow || !g.Observed || g.Reason.Rule != "o.egress" {
			t.Errorf("egress: %+v, %v", g, err)
		}
		o, err := e.Output(t.Context(), points.Outgoing{Command: "t", Kind: points.OutgoingStdout})
		if err != nil || o.Effect != proposal.Allow || !o.Observed || o.Reason.Rule != "o.output" {
			t.Errorf("output: %+v, %v", o, err)
		}
		if diff := cmp.Diff([]string{"deny (o.trigger)"}, spoken(trigger(t, e, usual()))); diff != "" {
			t.Error(diff)
		}
	}
}

// A mode that is not clear refuses the policy, and none weakens the shipped rules or those of another
// layer.
func TestModesFailClosed(t *testing.T) {
	for mode, want := range map[string]string{
		", mode: observ, until: 2026-12-31":                     "invalid custom.mode",
		", mode: Observe, until: 2026-12-31":                    "invalid custom.mode",
		", mode: [observe], until: 2026-12-31":                  "invalid custom.mode",
		", mode: observe":                                       "needs until",
		", mode: observe, until: soon":                          "needs until",
		", mode: observe, until: 2026-13-01":                    "needs until",
		", mode: observe, until: 0001-01-01":                    "needs until",
		", mode: enforce, until: 2026-12-31":                    "has no end",
		", until: 2026-12-31":                                   "without custom.mode",
		", mode: observe, until: '2026-12-31T00:00:00Z'":        "needs until",
		", mode: observe, until: 2026-12-31\n# scope: document": "not about a scope",
	} {
		text := strings.Replace(trialRules(""), "# custom: {rule: o.tail}", strings.Replace("# custom: {rule: o.tail"+mode+"}", "\n# scope: document}", "}\n# scope: document", 1), 1)
		_, err := policy.New(t.Context(), policy.Options{Layers: layersOf(t, policy.Allows, folder(t, "a.rego", text))})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "a.rego:") || codeOf(err) != "policy.mode" {
			t.Errorf("%s: %v", mode, err)
		}
	}
	const above = "# METADATA\n# title: T\n# custom: {%s mode: observe, until: 2026-12-31}\n"
	for name, c := range map[string]struct {
		role policy.Role
		text string
	}{
		"a grant":                          {policy.Allows, "package fumehood.command\n\n" + fmt.Sprintf(above, "rule: o.a,") + "allow contains {\"rule\": \"o.a\"} if true\n"},
		"a helper":                         {policy.Allows, "package fumehood.command\n\n" + strings.TrimPrefix(denyHead, "package fumehood.command\n\n") + "f\n\n" + fmt.Sprintf(above, "") + "f if true\n"},
		"a library":                        {policy.Allows, fmt.Sprintf(above, "rule: o.a,") + "package fumehood.lib\n\nf := 1\n"},
		"a rule above package":             {policy.Allows, fmt.Sprintf(above, "rule: o.a,") + denyHead + "true\n"},
		"a package of the granting policy": {policy.Grants, fmt.Sprintf(above, "") + "package fumehood.command\n\nallow contains {\"rule\": \"o.a\"} if true\n"},
	} {
		if _, err := policy.New(t.Context(), policy.Options{Layers: layersOf(t, c.role, folder(t, "a.rego", c.text))}); codeOf(err) != "policy.mode" {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Another layer's rule with the id of one that is observed, or of a shipped one, counts.
	const id = "package fumehood.command\n\n# METADATA\n# title: T\n# custom: {rule: network.client, mode: observe, until: 2026-12-31}\ndeny contains {\"rule\": \"network.client\", \"message\": \"m\", \"suggestion\": \"s\"} if input.command.program in {\"curl\", \"tail\"}\n"
	other := "package fumehood.command\n\ndeny contains {\"rule\": \"network.client\", \"message\": \"m\", \"suggestion\": \"s\"} if input.command.program == \"tail\"\n"
	layers := append(layersOf(t, policy.Allows, folder(t, "a.rego", id)), layersOf(t, policy.Restricts, folder(t, "b.rego", other))...)
	e := engineAt(t, trialDay, layers...)
	for _, text := range []string{"curl x", "tail x"} {
		if d := decide(t, e, text); d.Effect != proposal.Deny {
			t.Errorf("%q: %v", text, spoken(d))
		}
	}
	if _, err := policy.New(t.Context(), policy.Options{Layers: layersOf(t, policy.Allows, folder(t, "a.rego", trialRules(""))), Observe: true}); codeOf(err) != "policy.mode" {
		t.Errorf("--observe without a policy on trial: %v", err)
	}
}
