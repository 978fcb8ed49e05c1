// SPDX-License-Identifier: Apache-2.0

package difference_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/author/difference"
	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/plan"
)

// layerOf is a policy of one file.
func layerOf(name string, role policy.Role, rego string) policy.Layer {
	if rego == "" {
		return policy.Layer{}
	}
	return policy.Layer{Name: name, Role: role, Files: []policy.File{{Name: "a.rego", Content: []byte(rego)}}}
}

func compare(t *testing.T, role policy.Role, before, after string) difference.Difference {
	t.Helper()
	d, err := difference.Compare(t.Context(), difference.Options{Old: layerOf("old", role, before), New: layerOf("new", role, after),
		Analyze: order.AnalyzeProposal, Cases: plan.DecodeCases})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const (
	command = "package fumehood.command\n\n"
	member  = `"message": "m", "suggestion": "s"} if `
	sortIt  = `deny contains {"rule": "o.sort", ` + member + `input.command.program == "sort"` + "\n\n"
	budget  = "package fumehood.egress\n\nbudget contains {\"rule\": \"o.b\", \"bytes\": "
	tail    = `deny contains {"rule": "o.tail", ` + member + `input.command.program in {"tail", "head"}` + "\n\n"
)

// excepted is a denial with an exception that ends.
func excepted(end string) string {
	return command + strings.TrimSpace(strings.Replace(sortIt, "if ", "if {\n\tnot excepted\n\t", 1)) + "\n}\n\n# METADATA\n# title: T\n# custom: {rule: o.e, owner: a, reason: b, ticket: c, expires: " + end +
		"}\nexcepted if input.command.program == \"sort\"\n"
}

// overriding is an override of a shipped rule. That its digest is an old one is no matter for what it may do.
func overriding(effect string) string {
	return `# METADATA
# title: T
# custom: {rule: judged.verb, owner: a, reason: b, ticket: c, expires: 2999-01-01, digest: "sha256:0123456789ab"}
override contains {"rule": "judged.verb", "effect": "` + effect + `"} if input.command.tool == "terraform"

`
}

// TestChanges: what ten changes allow, deny, ask and grant is seen, and what nothing newly allows is proved or said to be
// unknown.
func TestChanges(t *testing.T) {
	lanetest.SkipShort(t)
	for name, c := range map[string]struct {
		role          policy.Role
		before, after string
		changes       []string // some of them
		looser        bool
		proof         string // a part
	}{
		"nothing, but a comment and another order": {policy.Restricts, command + sortIt + tail, command + tail + "# x\n" + sortIt, nil, false, "no rule changed"},
		"a denial more":                   {policy.Restricts, command + sortIt, command + sortIt + tail, []string{"proposal allow deny tail"}, false, "only added"},
		"no policy any more":              {policy.Restricts, command + sortIt, "", []string{"proposal deny allow sort"}, true, ""},
		"a word less in a set":            {policy.Restricts, command + tail, command + strings.Replace(tail, `, "head"`, "", 1), []string{"proposal deny allow head"}, true, ""},
		"a question in place of a denial": {policy.Restricts, command + sortIt, command + strings.Replace(sortIt, "deny", "ask", 1), []string{"proposal deny ask sort"}, true, ""},
		"an allow more":                   {policy.Allows, command + sortIt, command + sortIt + `allow contains {"rule": "o.a"} if input.command.program == "mytool"`, []string{"proposal deny allow mytool"}, true, ""},
		"a rule in observe mode": {policy.Restricts, command + sortIt, command + "# METADATA\n# title: T\n# custom: {rule: o.sort, mode: observe, until: 2999-01-01}\n" + sortIt,
			[]string{"proposal deny allow sort"}, true, ""},
		"a condition of a helper": {policy.Restricts, command + sortIt + "deny contains {\"rule\": \"o.f\", " + member + "f\n\nf if input.command.program == \"uniq\"\n",
			command + sortIt + "deny contains {\"rule\": \"o.f\", " + member + "f\n\nf if {\n\tinput.command.program == \"uniq\"\n\tinput.command.argv[0] == \"-c\"\n}\n", []string{"proposal deny allow uniq"}, true, ""},
		"a repository": {policy.Restricts, command + `deny contains {"rule": "o.r", ` + member + "{\n\tinput.command.program == \"sort\"\n\tinput.context.repository != \"acme/shop\"\n}",
			command + `deny contains {"rule": "o.r", ` + member + "{\n\tinput.command.program == \"sort\"\n\tinput.context.repository != \"acme/store\"\n}",
			[]string{"proposal deny allow sort", "proposal allow deny sort"}, true, ""},
		"a later end of an exception": {policy.Restricts, excepted("2020-01-01"), excepted("2999-01-01"), []string{"proposal deny allow sort"}, true, ""},
		"an id that becomes about texts alone": {policy.Restricts, command + sortIt, command + sortIt + "# METADATA\n# title: T\n# custom: {rule: o.sort, text_only: true}\n" +
			strings.Replace(sortIt, `"sort"`, `"tail"`, 1), nil, false, ""},
		"a host": {policy.Opens, "package fumehood.proposal\n\nnetwork contains {\"rule\": \"o.h\", \"host\": \"a.example\"} if true\n",
			"package fumehood.proposal\n\nnetwork contains {\"rule\": \"o.h\", \"host\": h} if some h in {\"a.example\", \"b.example\"}\n", []string{"proposal deny allow ls"}, true, ""},
		"a limit": {policy.Restricts, "package fumehood.command\n\nlimits contains {\"rule\": \"o.l\", \"wall_ms\": 5000} if input.command.program == \"sort\"\n",
			"package fumehood.command\n\nlimits contains {\"rule\": \"o.l\", \"wall_ms\": 9000} if input.command.program == \"sort\"\n", []string{"grant allow allow sort"}, true, ""},
		"private addresses": {policy.Opens, "package fumehood.egress\n\ndeny contains {\"rule\": \"o.p\", " + member + "input.name == \"b.example\"\n",
			"package fumehood.egress\n\nprivate contains {\"rule\": \"o.p\"} if input.name == \"a.example\"\n\ndeny contains {\"rule\": \"o.p\", " + member + "input.name == \"b.example\"\n", []string{"grant allow allow lookup a.example"}, true, ""},
		"a program at its start": {policy.Restricts, "package fumehood.exec\n\ndeny contains {\"rule\": \"o.x\", " + member + "input.path == \"/usr/bin/sort\"\n",
			"package fumehood.exec\n\ndeny contains {\"rule\": \"o.x\", " + member + "{\n\tinput.path == \"/usr/bin/sort\"\n\tinput.argv[1] == \"-o\"\n}\n", []string{"exec deny allow sort"}, true, ""},
		"enumerated fields, stricter": {policy.Restricts, "package fumehood.exec\n\ndeny contains {\"rule\": \"o.x\", " + member + "input.layer == \"memory\"\n",
			"package fumehood.exec\n\ndeny contains {\"rule\": \"o.x\", " + member + "not input.layer in {\"\", \"rootfs\", \"workspace\"}\n", nil, false, "compare only input.layer with constants, and none of all 6 combinations"},
		"enumerated fields, looser": {policy.Restricts, "package fumehood.exec\n\ndeny contains {\"rule\": \"o.x\", " + member + "input.layer in {\"memory\", \"written\"}\n",
			"package fumehood.exec\n\ndeny contains {\"rule\": \"o.x\", " + member + "input.layer == \"memory\"\n", nil, true, ""},
		"an added and not reached denial": {policy.Restricts, command + sortIt, command + sortIt + `deny contains {"rule": "o.n", ` + member + "count(input.command.argv) == 77\n", nil, false, "only added"},
		"a question less beside an allow": {policy.Allows, command + overriding("ask") + overriding("allow"), command + overriding("allow"), nil, true, ""},
		"a raised budget":                 {policy.Restricts, budget + "5} if true\n", budget + "9} if true\n", nil, true, ""},
		"a removed and not reached one":   {policy.Restricts, command + sortIt + `deny contains {"rule": "o.n", ` + member + "count(input.command.argv) == 77\n", command + sortIt, nil, true, ""},
	} {
		d := compare(t, c.role, c.before, c.after)
		var seen []string
		for _, x := range d.Changes {
			seen = append(seen, strings.TrimSpace(strings.Join([]string{x.Kind, x.From.Effect, x.To.Effect, x.Text}, " ")))
		}
		for _, want := range c.changes {
			if !slices.ContainsFunc(seen, func(s string) bool { return strings.HasPrefix(s, want) }) {
				t.Errorf("%s: no %q in %q", name, want, seen)
			}
		}
		if d.IsLooser() != c.looser || c.changes == nil && seen != nil && c.proof != "" && c.looser || (c.proof == "") != (d.Proof == "") || !strings.Contains(d.Proof, c.proof) {
			t.Errorf("%s: looser %v, proof %q, %q, %+v", name, d.IsLooser(), d.Proof, seen, d.Rules)
		}
		for _, x := range d.Changes {
			if d.Proof != "" && !x.IsStricter() {
				t.Errorf("%s: proved, and %+v", name, x)
			}
		}
		var b strings.Builder
		if err := d.Write(&b); err != nil || testing.Verbose() {
			t.Logf("%s: %v\n%s", name, err, &b)
		}
	}
}
