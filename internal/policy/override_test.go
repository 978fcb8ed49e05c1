// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// overrideOf is a policy with an override of judged.verb for terraform plan, and a rule that allows it.
func overrideOf(effect, digest string) string {
	return `package fumehood.command

# METADATA
# title: Plans are shown
# custom: {rule: judged.verb, owner: platform, reason: a look at the plan, ticket: ACME-9, expires: 2026-12-31, digest: "` + digest + `"}
override contains {"rule": "judged.verb", "effect": "` + effect + `"} if {
	input.command.tool == "terraform"
	input.command.sub == "plan"
}

# METADATA
# title: T
# custom: {rule: o.plan}
allow contains {"rule": "o.plan"} if input.command.program == "terraform"
`
}

// digestOf is the digest of judged.verb that policy check asks for.
func digestOf(t *testing.T) string {
	t.Helper()
	_, err := policy.New(t.Context(), policy.Options{Layers: layersOf(t, policy.Allows, folder(t, "a.rego", overrideOf("ask", "")))})
	found := regexp.MustCompile(`sha256:[0-9a-f]{12}`).FindString(hintOf(err))
	if found == "" {
		t.Fatalf("no digest in %v, %q", err, hintOf(err))
	}
	return found
}

func hintOf(err error) string { return proposal.FailureOf(err).Hint }

// An override takes the effect from the shipped rule that it names, or asks in its place, only where its
// conditions hold, only until its date, and only while the shipped rule is the one for which it was written.
func TestOverrides(t *testing.T) {
	digest := digestOf(t)
	for _, c := range []struct {
		effect, digest string
		days           int
		plan, line     string
	}{
		{"ask", digest, 0, "ask judged.verb", "until 2026-12-31 in the policy organisation: judged.verb asks in place of denying"},
		{"allow", digest, 29, "deny (judged.verb)", "until 2026-12-31"},
		{"allow", digest, 30, "deny judged.verb", "without effect since 2026-12-31"},
		{"allow", "sha256:0123456789ab", 0, "deny judged.verb", "without effect, since the rule has changed"},
	} {
		e := engineAt(t, trialDay.AddDate(0, 0, c.days), layersOf(t, policy.Allows, folder(t, "a.rego", overrideOf(c.effect, c.digest)))...)
		for text, want := range map[string]string{"terraform plan": c.plan, "terraform init": "deny judged.verb", "jupyter notebook": "deny judged.verb"} {
			d := decide(t, e, text)
			if diff := cmp.Diff([]string{want}, spoken(d)); diff != "" {
				t.Errorf("%v, %q: %s", c, text, diff)
			}
			for _, r := range d.Reasons {
				if overridden := want != "deny judged.verb"; overridden != strings.Contains(r.Message, "(override until 2026-12-31, owner platform, ticket ACME-9) ") || r.Layer != "default" || r.Effect == proposal.Ask && r.Retry != proposal.RetryApproval {
					t.Errorf("%v, %q: %+v", c, text, r)
				}
			}
		}
		if lines := e.Overrides(); len(lines) != 1 || !strings.Contains(lines[0], c.line) || !strings.Contains(lines[0], "a.rego:6, owner platform, ticket ACME-9): a look at the plan") {
			t.Errorf("%v: %q", c, lines)
		}
		warned := slices.ContainsFunc(e.Warnings(), func(w string) bool {
			return strings.HasPrefix(w, "policy.override: ") || strings.HasPrefix(w, "policy.expires: ")
		})
		if warned != (c.days > 0 || c.digest != digest) {
			t.Errorf("%v: %q", c, e.Warnings())
		}
	}
}

// An override has no effect on another layer's rule with the id, and where a policy replaces the shipped one.
func TestOverridesOfShippedRulesOnly(t *testing.T) {
	org := layersOf(t, policy.Allows, folder(t, "a.rego", overrideOf("allow", digestOf(t))))
	other := "package fumehood.command\n\ndeny contains {\"rule\": \"judged.verb\", \"message\": \"m\", \"suggestion\": \"s\"} if input.command.program == \"terraform\"\n"
	e := engineAt(t, trialDay, append(org, layersOf(t, policy.Restricts, folder(t, "b.rego", other))...)...)
	if diff := cmp.Diff([]string{"deny (judged.verb)", "deny judged.verb"}, spoken(decide(t, e, "terraform plan"))); diff != "" {
		t.Error(diff)
	}
	granting := layersOf(t, policy.Grants, folder(t, "g.rego", other))
	if e = engineAt(t, trialDay, append(granting, org...)...); !strings.Contains(fmt.Sprint(e.Overrides()), "without effect, since another policy replaces the default") {
		t.Errorf("%q", e.Overrides())
	}
}

// At each start of a program, an override with conditions on its words makes no answer reusable.
func TestOverridesOfStarts(t *testing.T) {
	text := strings.NewReplacer("fumehood.command", "fumehood.exec", "judged.verb", "exec.publish", `input.command.tool == "terraform"`, `input.tool == "npm"`, `input.command.sub == "plan"`, `input.argv[1] == "publish"`).
		Replace(strings.Split(overrideOf("allow", "sha256:0123456789ab"), "\n# METADATA\n# title: T\n")[0])
	_, err := policy.New(t.Context(), policy.Options{Layers: layersOf(t, policy.Allows, folder(t, "a.rego", strings.Replace(text, "sha256:", "", 1)))})
	text = strings.Replace(text, "sha256:0123456789ab", regexp.MustCompile(`sha256:[0-9a-f]{12}`).FindString(hintOf(err)), 1)
	e := engineAt(t, trialDay, layersOf(t, policy.Allows, folder(t, "a.rego", text))...)
	for word, want := range map[string]proposal.Effect{"publish": proposal.Allow, "login": proposal.Deny} {
		x := plainExec()
		x.Path, x.Argv = "/usr/bin/npm", []string{"npm", word}
		d, err := e.Exec(t.Context(), x)
		if err != nil || d.Effect != want || d.Cacheable || d.Reason == nil || d.Reason.Rule != "exec.publish" || d.Observed != (want == proposal.Allow) {
			t.Errorf("npm %s: %+v, %+v, %v", word, d, d.Reason, err)
		}
	}
}

// What is not clear, or not allowed, refuses the policy.
func TestOverridesFailClosed(t *testing.T) {
	text := overrideOf("ask", digestOf(t))
	change := func(from, to string) string {
		if !strings.Contains(text, from) {
			t.Fatalf("no %q", from)
		}
		return strings.ReplaceAll(text, from, to)
	}
	for name, c := range map[string]struct {
		text, message, hint string
	}{
		"a typo":                       {change("judged.verb", "judged.verbs"), `has no rule "judged.verbs"`, "judged.verb"},
		"a prefix":                     {change("judged.verb", "judged."), `has no rule "judged."`, ""},
		"the floor of the engine":      {change("judged.verb", "default.no-rule"), `has no rule "default.no-rule"`, ""},
		"another point":                {change("judged.verb", "exec.publish"), "is not in fumehood.command", "fumehood.exec"},
		"the loader":                   {change("judged.verb", "loader.program"), "of the floor", ""},
		"credentials":                  {change("judged.verb", "read.secret"), "of the floor", ""},
		"an own denial":                {change("judged.verb", "o.plan"), `has no rule "o.plan"`, ""},
		"no owner":                     {change("owner: platform, ", ""), "needs METADATA", "owner"},
		"an empty ticket":              {change("ACME-9", `" "`), "needs METADATA", "ticket"},
		"no date":                      {change("expires: 2026-12-31, ", ""), "needs METADATA", "custom: expires: " + trialDay.AddDate(0, 3, 0).Format(time.DateOnly)},
		"no METADATA":                  {text[:25] + text[strings.Index(text, "\noverride"):], "needs METADATA", "owner, reason, ticket, expires"},
		"a digest of another kind":     {change("sha256:", "md5:"), "needs METADATA", "digest: sha256:"},
		"another effect":               {change(`"effect": "ask"`, `"effect": "deny"`), "as constants", ""},
		"an id that is computed":       {change(`{"rule": "judged.verb",`, `{"rule": input.command.program,`), "as constants", ""},
		"a third key":                  {change(`"effect": "ask"}`, `"effect": "ask", "at": "a.rego:6"}`), "as constants", ""},
		"an object of a variable":      {change(`contains {"rule": "judged.verb", "effect": "ask"} if {`, "contains x if {\n\tx := {\"rule\": \"judged.verb\", \"effect\": \"ask\"}"), "as constants", ""},
		"a second body":                {change("\"plan\"\n}\n", "\"plan\"\n} {\n\tinput.command.sub == \"apply\"\n}\n"), "needs METADATA", ""},
		"a question at a start":        {strings.NewReplacer("judged.verb", "exec.publish", "fumehood.command", "fumehood.exec").Replace(strings.Split(text, " if {\n\tinput")[0]) + " if input.tool == \"npm\"\n", "no person can be asked", ""},
		"a mode":                       {change("owner:", "mode: observe, until: 2026-12-31, owner:"), "custom.mode is for rules", ""},
		"below a denial":               {text + "\ndeny contains {\"rule\": \"o.d\", \"message\": \"m\", \"suggestion\": \"s\"} if count(override) > 0\n", "a rule that restricts", ""},
		"a point that is of the floor": {strings.Replace(text, "fumehood.command", "fumehood.output", 1), "no meaning", ""},
	} {
		_, err := policy.New(t.Context(), policy.Options{Layers: layersOf(t, policy.Allows, folder(t, "a.rego", c.text)), Now: trialDay})
		if err == nil || !strings.Contains(err.Error(), c.message) || !strings.Contains(hintOf(err), c.hint) || !strings.Contains(err.Error(), "a.rego:") {
			t.Errorf("%s: %v, hint %q", name, err, hintOf(err))
		}
	}
	for _, role := range []policy.Role{policy.Restricts, policy.Opens, policy.Grants} {
		if _, err := policy.New(t.Context(), policy.Options{Layers: layersOf(t, role, folder(t, "a.rego", text))}); codeOf(err) != "policy.override" || !strings.Contains(err.Error(), "only the policy of an organization") {
			t.Errorf("%v: %v", role, err)
		}
	}
}

// Nothing overrides what protects the loader, privileges, credentials, the way out and approvals.
func TestOverridesFloor(t *testing.T) {
	text := overrideOf("allow", "sha256:0123456789ab")
	for id, point := range map[string]string{"loader.program": "command", "env.steering": "command", "privilege.none": "command", "read.credential": "command",
		"read.secret": "command", "read.process": "command", "files.mode": "command", "git.place": "command", "exec.loader": "exec", "exec.preload": "exec", "exec.privilege": "exec",
		"exec.memory": "exec", "env.encoded": "proposal", "env.name": "proposal", "parse.unknown": "proposal", "limits.too-much": "proposal"} {
		_, err := policy.New(t.Context(), policy.Options{Layers: layersOf(t, policy.Allows, folder(t, "a.rego",
			strings.NewReplacer("judged.verb", id, "fumehood.command", "fumehood."+point, "input.command.tool == \"terraform\"\n\tinput.command.sub == \"plan\"", "true", "allow contains", "x contains").Replace(text)))})
		if err == nil || !strings.Contains(err.Error(), "it is of the floor") {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// The example of docs/policy/rules.md is valid. Its digest is of no rule, so that it has no effect when it is copied unread.
func TestOverridesOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/policy/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "## Overrides\n")
	_, rest, _ = strings.Cut(rest, "```rego\n")
	text, _, _ := strings.Cut(rest, "```\n")
	e := engineAt(t, trialDay, layersOf(t, policy.Allows, folder(t, "a.rego", text))...)
	if diff := cmp.Diff([]string{"deny judged.verb"}, spoken(decide(t, e, "terraform plan"))); diff != "" || len(e.Overrides()) != 1 {
		t.Errorf("%s%q", diff, e.Overrides())
	}
}
