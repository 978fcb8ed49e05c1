// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func outputEngine(t *testing.T, role policy.Role, rego string) *policy.Engine {
	t.Helper()
	e, err := policy.New(t.Context(), policy.Options{Layers: []policy.Layer{{Name: "org", Role: role, Files: []policy.File{{Name: "o.rego", Content: []byte(rego)}}}}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func leaving(t testing.TB, e *policy.Engine, x points.Outgoing) points.OutputDecision {
	t.Helper()
	d, err := e.Output(t.Context(), x)
	if err != nil {
		t.Fatalf("cannot judge %+v: %v", x, err)
	}
	return d
}

var twoFound = []proposal.Redaction{{Rule: "github-pat", Count: 1}, {Rule: "jwt", Count: 2}}

// What each role may say about what leaves, and what holds whatever it says.
func TestOutputLayers(t *testing.T) {
	const (
		allow     = "package fumehood.command\nallow contains {\"rule\": \"x\"} if input.command.program == \"x\"\n"
		keepJWT   = "package fumehood.output\nredact contains {\"rule\": \"org.redact\", \"secret\": \"github-pat\"}\n"
		denyAll   = "package fumehood.output\ndeny contains {\"rule\": \"org.none\", \"message\": \"m\", \"suggestion\": \"s\"} if input.kind == \"stdout\"\n"
		redactAll = "package fumehood.output\nredact contains {\"rule\": \"org.redact\"}\n"
	)
	unscanned := []proposal.Redaction{{Rule: "unscanned", Count: 1}}
	for _, c := range []struct {
		name   string
		role   policy.Role
		rego   string
		x      points.Outgoing
		effect proposal.Effect
		redact []string
		rule   string
	}{
		{"the default replaces all", policy.Restricts, allow, points.Outgoing{Secrets: twoFound}, proposal.Allow, []string{"github-pat", "jwt"}, "output.secret"},
		{"a layer that may not grant cannot keep one", policy.Allows, keepJWT, points.Outgoing{Secrets: twoFound}, proposal.Allow, []string{"github-pat", "jwt"}, "org.redact"},
		{"the granting layer may keep one", policy.Grants, keepJWT, points.Outgoing{Secrets: twoFound}, proposal.Allow, []string{"github-pat"}, "org.redact"},
		{"it may keep one in a binary", policy.Grants, keepJWT, points.Outgoing{Binary: true, Secrets: twoFound[1:]}, proposal.Allow, []string{}, "org.redact"},
		{"without rules there it keeps none", policy.Grants, allow, points.Outgoing{Secrets: twoFound}, proposal.Allow, []string{"github-pat", "jwt"}, ""},
		{"nor what could not be searched", policy.Grants, keepJWT, points.Outgoing{Secrets: unscanned}, proposal.Allow, []string{"unscanned"}, ""},
		{"nor in a binary", policy.Grants, keepJWT, points.Outgoing{Binary: true, Secrets: unscanned}, proposal.Deny, []string{"unscanned"}, "output.unscanned"},
		{"nor a masked value in a binary", policy.Grants, keepJWT, points.Outgoing{Binary: true, Masked: 1}, proposal.Deny, []string{}, "output.masked"},
		{"any layer denies", policy.Restricts, denyAll, points.Outgoing{Kind: "stdout"}, proposal.Deny, []string{}, "org.none"},
		{"only what it names", policy.Restricts, denyAll, points.Outgoing{Kind: "stderr"}, proposal.Allow, []string{}, ""},
		{"all at once", policy.Grants, redactAll, points.Outgoing{Secrets: twoFound}, proposal.Allow, []string{"github-pat", "jwt"}, "org.redact"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := leaving(t, outputEngine(t, c.role, c.rego), c.x)
			if d.Effect != c.effect || !cmp.Equal(d.Redact, c.redact) || c.rule != "" && !slices.Contains(d.Rules, c.rule) {
				t.Errorf("got %+v", d)
			}
			if (d.Effect == proposal.Deny) != (d.Reason != nil) {
				t.Errorf("reason %+v beside %v", d.Reason, d.Effect)
			}
		})
	}
}

// What observes changes nothing, and says so.
func TestOutputObserved(t *testing.T) {
	e, err := policy.New(t.Context(), policy.Options{Observe: true, Layers: []policy.Layer{{Name: "repo", Files: []policy.File{{Name: "o.rego",
		Content: []byte("package fumehood.output\ndeny contains {\"rule\": \"r\", \"message\": \"m\", \"suggestion\": \"s\"}\n")}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if d := leaving(t, e, points.Outgoing{}); d.Effect != proposal.Allow || !d.Observed || d.Reason == nil {
		t.Errorf("got %+v", d)
	}
}

// An answer with a key that means nothing where it stands denies.
func TestOutputUnknownKeys(t *testing.T) {
	for point, rego := range map[string]string{
		"egress": "package fumehood.egress\nredact contains {\"rule\": \"r\", \"secret\": \"x\"}\n",
		"output": "package fumehood.output\nredact contains {\"rule\": \"r\", \"detector\": \"x\"}\n",
	} {
		e := outputEngine(t, policy.Opens, rego)
		var effect proposal.Effect
		var rules []string
		var err error
		if point == "egress" {
			var d proposal.EgressDecision
			d, err = e.Egress(t.Context(), proposal.Egress{Kind: points.EgressLookup, Name: "x"})
			effect, rules = d.Effect, d.Rules
		} else {
			var d points.OutputDecision
			d, err = e.Output(t.Context(), points.Outgoing{})
			effect, rules = d.Effect, d.Rules
		}
		if failure(err, rules) != "policy.malformed" || effect != proposal.Deny {
			t.Errorf("%s: %v by %v, %v", point, effect, rules, err)
		}
	}
}

func BenchmarkOutput(b *testing.B) {
	e := shipped(b)
	x := points.Outgoing{Command: "unit", Kind: "stdout", Size: 1 << 20, Secrets: twoFound}
	for b.Loop() {
		leaving(b, e, x)
	}
}
