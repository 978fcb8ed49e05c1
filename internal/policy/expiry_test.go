// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const exceptionMetadata = `
# METADATA
# title: An exception
# custom:
#   rule: acme.exception
#   owner: build team
#   reason: the old tool is needed until the move
#   ticket: ACME-7
#   expires: 2026-06-30
`

const denyUnlessExcepted = `
# METADATA
# title: Nothing old
# custom: {rule: acme.old}
deny contains {"rule": "acme.old", "message": "m", "suggestion": "s"} if {
	input.command.program == "acmetool"
	not excepted
}

# METADATA
# title: The tool
# custom: {rule: acme.tool}
allow contains {"rule": "acme.tool"} if input.command.program == "acmetool"
`

func organization(rego string) policy.Layer {
	return policy.Layer{Name: "org", Role: policy.Allows, Files: []policy.File{{Name: "a.rego", Content: []byte("package fumehood.command\n" + rego)}}}
}

// TestExceptionsExpire: an exception applies before its date and not from its first moment
// in UTC on, whatever the form of the rule, and a warning says so from 14 days before.
func TestExceptionsExpire(t *testing.T) {
	forms := map[string]string{
		"an allow":       exceptionMetadata + `allow contains {"rule": "acme.exception"} if input.command.program == "acmetool"`,
		"without a body": exceptionMetadata + `allow contains {"rule": "acme.exception"}`,
		"negated":        denyUnlessExcepted + exceptionMetadata + `excepted if input.command.program == "acmetool"`,
		"two bodies":     denyUnlessExcepted + exceptionMetadata + "excepted if {\n\tinput.command.index == 7\n} {\n\tinput.command.program == \"acmetool\"\n}",
		"quoted date":    denyUnlessExcepted + strings.Replace(exceptionMetadata, "2026-06-30", `"2026-06-30"`, 1) + `excepted if true`,
		"in braces":      denyUnlessExcepted + "\n# METADATA\n# custom: {\"expires\": 2026-06-30}\n" + `excepted if true`,
	}
	for name, rego := range forms {
		for at, want := range map[string]proposal.Effect{"2026-06-15T23:59:59Z": proposal.Allow, "2026-06-16T00:00:00Z": proposal.Allow, "2026-06-29T23:59:59Z": proposal.Allow,
			"2026-06-30T01:59:59+02:00": proposal.Allow, "2026-06-30T00:00:00Z": proposal.Deny, "2030-01-01T00:00:00Z": proposal.Deny} {
			now, err := time.Parse(time.RFC3339, at)
			if err != nil {
				t.Fatal(err)
			}
			e, err := policy.New(t.Context(), policy.Options{Layers: []policy.Layer{organization(rego)}, Now: now})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			p := proposal.Proposal{ID: "t", Run: "acmetool x"}
			d, err := e.Decide(t.Context(), p, analysis(p))
			if err != nil || d.Effect != want {
				t.Errorf("%s at %s: %v, want %v, %v %v", name, at, d.Effect, want, d.Reasons, err)
			}
			warned := slices.ContainsFunc(e.Warnings(), func(w string) bool { return strings.HasPrefix(w, "policy.expires: ") })
			if warned != (at != "2026-06-15T23:59:59Z") {
				t.Errorf("%s at %s: %q", name, at, e.Warnings())
			}
		}
	}
}

// TestExceptionsRefused: a date whose end would not be what its author expects stops the
// policy from being loaded, long before it.
func TestExceptionsRefused(t *testing.T) {
	exception := func(from, to string) string { return strings.Replace(exceptionMetadata, from, to, 1) }
	plain := `allow contains {"rule": "acme.exception"} if input.command.program == "acmetool"`
	for name, c := range map[string]struct{ rego, want string }{
		"no date":        {exception("2026-06-30", "soon") + plain, "custom.expires is not a date"},
		"a time":         {exception("2026-06-30", "2026-06-30T10:00:00Z") + plain, "custom.expires is not a date"},
		"a number":       {exception("2026-06-30", "20260630") + plain, "custom.expires is not a date"},
		"another name":   {exception("expires", "Expiry") + plain, `unknown key "Expiry"`},
		"a scope":        {exception("# title", "# scope: document\n# title") + plain, "applies to one rule"},
		"a denial":       {exceptionMetadata + `deny contains {"rule": "acme.exception", "message": "m", "suggestion": "s"} if input.command.program == "acmetool"`, "a rule that restricts"},
		"below a denial": {exceptionMetadata + "old if input.command.program == \"acmetool\"\n" + strings.Replace(denyUnlessExcepted, "not excepted", "old", 1), "a rule that restricts"},
		"in its message": {exceptionMetadata + "old := \"m\"\n" + strings.Replace(denyUnlessExcepted, `"m"`, "old", 1) + "\nexcepted if input.command.index == 7", "a rule that restricts"},
		"both":           {denyUnlessExcepted + exceptionMetadata + "excepted if input.command.index == 0\nask contains {\"rule\": \"acme.ask\", \"message\": \"m\", \"suggestion\": \"s\"} if excepted", "a rule that restricts"},
		"an else":        {denyUnlessExcepted + exceptionMetadata + "excepted if input.command.index == 7 else := true", "must not be a default or have an else"},
		"a default":      {denyUnlessExcepted + exceptionMetadata + "default excepted := true\n\nexcepted if input.command.index == 7", "must not be a default"},
		"a limit":        {strings.Replace(exceptionMetadata, "acme.exception", "acme.limit", 1) + `limits contains {"rule": "acme.limit", "wall_ms": 1}`, "a rule that restricts"},
	} {
		_, err := policy.New(t.Context(), policy.Options{Layers: []policy.Layer{organization(c.rego)}, Now: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)})
		if err == nil || !strings.Contains(err.Error()+proposal.FailureOf(err).Message, c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
