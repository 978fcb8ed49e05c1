// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/internal/shell/parse"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func about(t *testing.T, e *policy.Engine, c proposal.Context) *policy.Engine {
	t.Helper()
	e, err := e.WithContext(c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestContextIsEverywhere holds that the input of every decision point has the same context, and
// that each of its fields is there when nothing is known.
func TestContextIsEverywhere(t *testing.T) {
	plain := shipped(t)
	known := about(t, plain, proposal.Context{Known: true, Repository: "acme/shop", Labels: []string{"b", "a"}})
	p := proposal.Proposal{ID: "t", Run: "python3 -c 1"}
	analysis := parse.Analyze(p)
	analysis.Snippets = []proposal.Snippet{{Language: "python"}}
	for _, e := range []*policy.Engine{plain, known} {
		docs, seen := e.Inputs(p, analysis), map[string]bool{}
		for _, v := range []any{&points.Trigger{}, &proposal.Exec{}, &proposal.Egress{}, &proposal.Event{}, &points.Outgoing{}} {
			doc, _ := e.InputOf(v)
			docs = append(docs, doc)
		}
		want, err := json.Marshal(e.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range docs {
			data, err := doc.JSON()
			if err != nil {
				t.Fatal(err)
			}
			var got struct{ Context json.RawMessage }
			var a, b any
			_, _, _ = json.Unmarshal(data, &got), json.Unmarshal(got.Context, &a), json.Unmarshal(want, &b)
			if diff := cmp.Diff(b, a); diff != "" || a == nil {
				t.Errorf("%s: %s", doc.Point, diff)
			}
			seen[doc.Point] = true
		}
		if len(seen) != len(module.Points()) {
			t.Errorf("only %v", seen)
		}
	}
	if diff := cmp.Diff([]string{"a", "b"}, known.Context().Labels); diff != "" {
		t.Error(diff)
	}
	if _, err := plain.WithContext(proposal.Context{Started: "today"}); codeOf(err) != "policy.context" {
		t.Error(err)
	}
}

// TestContextDecides holds that rules decide by the context, and that one that is not known fails closed.
func TestContextDecides(t *testing.T) {
	e := with(t, folder(t, "a.rego", `package fumehood.command

deny contains {"rule": "mine.home", "message": "only in acme/shop", "suggestion": "ask the owners of acme/shop"} if {
	input.command.program == "make"
	input.context.repository != "acme/shop"
}

deny contains {"rule": "mine.files", "message": "the pull request may change its Makefile", "suggestion": "run make by hand"} if {
	input.command.program == "make"
	not unchanged
}

unchanged if {
	input.context.changed.complete
	not "Makefile" in input.context.changed.paths
}
`))
	for _, c := range []struct {
		context proposal.Context
		want    []string
	}{
		{proposal.Context{}, []string{"mine.files", "mine.home"}},
		{proposal.Context{Repository: "acme/shop"}, []string{"mine.files"}},
		{proposal.Context{Repository: "acme/shop", Changed: proposal.ContextChanged{Complete: true}}, nil},
		{proposal.Context{Repository: "acme/other", Changed: proposal.ContextChanged{Complete: true}}, []string{"mine.home"}},
		{proposal.Context{Repository: "acme/shop", Changed: proposal.ContextChanged{Paths: []string{"a", "Makefile"}, Complete: true}}, []string{"mine.files"}},
	} {
		d := judged(t, about(t, e, c.context), proposal.Proposal{Run: "make test"})
		var got []string
		for _, r := range d.Reasons {
			got = append(got, r.Rule)
		}
		slices.Sort(got)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%+v: %s", c.context, diff)
		}
	}
}

// TestContextExample holds what the rules of policies/examples/context refuse and grant.
func TestContextExample(t *testing.T) {
	l, err := policy.ReadDirectory("../../policies/examples/context")
	if err != nil {
		t.Fatal(err)
	}
	l.Role = policy.Opens
	e, err := policy.New(t.Context(), policy.Options{Layers: []policy.Layer{l}})
	if err != nil {
		t.Fatal(err)
	}
	none := proposal.Context{}
	shop := proposal.Context{Known: true, Repository: "acme/shop", Association: "MEMBER", Started: "2027-03-01T09:30:00Z",
		Changed: proposal.ContextChanged{Complete: true, Paths: []string{"main.go"}}}
	change := func(do func(*proposal.Context)) proposal.Context {
		c := shop
		do(&c)
		return c
	}
	api := []string{"api.internal.example"}
	for _, c := range []struct {
		name    string
		context proposal.Context
		p       proposal.Proposal
		want    string // the first rule that refuses or asks; "" allows
	}{
		{"a member", shop, proposal.Proposal{Run: "make test"}, ""},
		{"nothing is known", none, proposal.Proposal{Run: "make test"}, "org.makefile"},
		{"nothing is known, and nothing runs", none, proposal.Proposal{Run: "git log"}, ""},
		{"a newcomer", change(func(c *proposal.Context) { c.Association = "FIRST_TIME_CONTRIBUTOR" }), proposal.Proposal{Run: "go test ./..."}, "org.newcomer"},
		{"a newcomer with the label", change(func(c *proposal.Context) { c.Association, c.Labels = "NONE", []string{"safe to test"} }), proposal.Proposal{Run: "go test ./..."}, ""},
		{"a changed Makefile", change(func(c *proposal.Context) { c.Changed.Paths = []string{"a/Makefile"} }), proposal.Proposal{Run: "make test"}, "org.makefile"},
		{"too many files", change(func(c *proposal.Context) { c.Changed.Complete = false }), proposal.Proposal{Run: "make test"}, "org.makefile"},
		{"in the morning", shop, proposal.Proposal{Run: "make integration"}, ""},
		{"at night", change(func(c *proposal.Context) { c.Started = "2027-03-01T03:30:00Z" }), proposal.Proposal{Run: "make integration"}, "org.hours"},
		{"on Sunday", change(func(c *proposal.Context) { c.Started = "2027-03-07T09:30:00Z" }), proposal.Proposal{Run: "make integration"}, "org.hours"},
		{"at an unknown time", change(func(c *proposal.Context) { c.Started = "" }), proposal.Proposal{Run: "make integration"}, "org.hours"},
		{"the API", shop, proposal.Proposal{Run: "curl -sSf https://api.internal.example/", Network: api}, ""},
		{"the API for another program", shop, proposal.Proposal{Run: "go test ./...", Network: api}, "network.none"},
		{"the API from another repository", change(func(c *proposal.Context) { c.Repository = "acme/other" }), proposal.Proposal{Run: "curl -sSf https://api.internal.example/", Network: api}, "network.none"},
		{"the API from a fork", change(func(c *proposal.Context) { c.Fork = true }), proposal.Proposal{Run: "curl -sSf https://api.internal.example/", Network: api}, "network.none"},
	} {
		d := judged(t, about(t, e, c.context), c.p)
		var got []string
		for _, r := range d.Reasons {
			got = append(got, r.Rule)
		}
		if refused := d.Effect != proposal.Allow; refused != (c.want != "") || refused && !slices.Contains(got, c.want) {
			t.Errorf("%s: %v %v, want %q", c.name, d.Effect, got, c.want)
		}
	}
}

// TestCompanyExample holds what the rules of policies/examples/company do: docs/TUTORIAL.md goes through them.
func TestCompanyExample(t *testing.T) {
	l, err := policy.ReadDirectory("../../policies/examples/company")
	if err != nil {
		t.Fatal(err)
	}
	l.Role = policy.Allows
	e, err := policy.New(t.Context(), policy.Options{Layers: []policy.Layer{l}})
	if err != nil {
		t.Fatal(err)
	}
	if lines := e.Overrides(); len(lines) != 2 || strings.Contains(strings.Join(lines, ""), "without effect") {
		t.Errorf("a rule of the default policy has changed: read it, and write the digest that fumehood policy check "+
			"--organization policies/examples/company prints: %q", lines)
	}
	for _, c := range []struct {
		text   string
		effect proposal.Effect
		rule   string // one that refuses, asks or is observed
	}{
		{"docker ps", proposal.Deny, "acme.docker"},
		{"ls; podman run x", proposal.Deny, "acme.docker"},
		{"terraform plan", proposal.Ask, "judged.verb"},
		{"terraform apply", proposal.Deny, "judged.verb"},
		{"terraform plan; terraform apply", proposal.Deny, "judged.verb"},
		{"npm install left-pad", proposal.Ask, "code.package"},
		{"npm publish", proposal.Deny, "code.publish"},
		{"npm ci", proposal.Allow, ""},
		{"go test -bench=. ./...", proposal.Allow, "acme.bench"},
		{"go test ./...", proposal.Allow, ""},
		{"oldbuild all", proposal.Allow, ""},
	} {
		d := judged(t, e, proposal.Proposal{Run: c.text})
		var got []string
		for _, r := range d.Reasons {
			got = append(got, r.Rule)
		}
		if d.Effect != c.effect || c.rule != "" && !slices.Contains(got, c.rule) {
			t.Errorf("%s: %v by %q, want %v by %s", c.text, d.Effect, got, c.effect, c.rule)
		}
	}
	for text, want := range map[string]proposal.Bytes{"pytest -q": proposal.GiB, "python3 -m pytest": proposal.GiB, "go test ./...": 4 * proposal.GiB} {
		if d := judged(t, e, proposal.Proposal{Run: text}); d.Grant == nil || d.Grant.Limits.Memory != want {
			t.Errorf("%s: %+v", text, d.Grant)
		}
	}
	for path, want := range map[string]string{"/usr/bin/docker": "acme.docker", "/workspace/node_modules/.bin/jest": "",
		"/workspace/node_modules/.bin/evil": "acme.bin"} {
		x := proposal.Exec{Asked: path, Path: strings.Replace(path, ".bin", "x", 1), Argv: []string{path}}
		d, err := e.Exec(t.Context(), x)
		own := slices.DeleteFunc(slices.Clone(d.Rules), func(r string) bool { return !strings.HasPrefix(r, "acme.") })
		if err != nil || strings.Join(own, " ") != want {
			t.Errorf("%s: %+v, %v", path, d, err)
		}
	}
}

// TestImageExample holds that the rule of policies/examples/image needs the image and its signer.
func TestImageExample(t *testing.T) {
	e := with(t, "../../policies/examples/image")
	signer := "https://github.com/acme/images/.github/workflows/release.yml@refs/heads/main"
	for _, c := range []struct {
		name, signer string
		want         proposal.Effect
	}{
		{"registry.acme.example/ci", signer, proposal.Allow}, {"registry.acme.example/ci", signer + "x", proposal.Deny},
		{"registry.acme.example/ci", "", proposal.Deny}, {"registry.acme.example/other", signer, proposal.Deny}, {"", signer, proposal.Deny},
	} {
		image := proposal.ContextImage{Name: c.name, Digest: "sha256:0", Signers: []string{c.signer}}
		if d := judged(t, about(t, e, proposal.Context{Image: image}), proposal.Proposal{Run: "git log"}); d.Effect != c.want {
			t.Errorf("%+v: %v", c, d)
		}
	}
}

// TestReuseDigest holds that what is kept from run to run depends on what rules read of the context.
func TestReuseDigest(t *testing.T) {
	base := proposal.Context{Known: true, Repository: "acme/shop", Draft: true, Started: "2027-03-01T09:30:00Z"}
	other, later := base, base
	other.Repository = "acme/other"
	later.Started = "2027-03-01T09:31:00Z"
	for _, c := range []struct {
		name, text               string
		byRepository, byAnything bool
	}{
		{"none", `deny contains d if input.command.program == "x"`, false, false},
		{"one field", `deny contains d if input.context.repository == "x"`, true, false},
		{"in a rule", `deny contains d if home
home if input["context"].repository == "x"`, true, false},
		{"imported", `import input.context as about
deny contains d if about.repository == "x"`, true, false},
		{"another field", `deny contains d if input.context.draft`, false, false},
		{"the whole", `deny contains d if count(input.context) == 0`, true, true},
		{"the whole input", `deny contains d if object.get(input, ["context", "started"], "") == ""`, true, true},
		{"a variable name", `deny contains d if input.context[_] == "x"`, true, true},
		{"a variable field", `deny contains d if { some name in ["context"]; input[name].repository == "x" }`, true, false},
		{"two variable names", `deny contains d if { some name in ["context"]; some part in ["draft"]; input[name][part] }`, true, true},
		{"another place of a rule", `deny contains d if { some i; [1][i] == count(input.context.labels) }`, false, false},
	} {
		e := with(t, folder(t, "a.rego", "package fumehood.command\n\n"+c.text+`

d := {"rule": "mine.x", "message": "m", "suggestion": "s"}
`))
		first := about(t, e, base).ReuseDigest()
		if got := about(t, e, other).ReuseDigest() != first; got != c.byRepository {
			t.Errorf("%s: it depends on the repository: %v", c.name, got)
		}
		if got := about(t, e, later).ReuseDigest() != first; got != c.byAnything {
			t.Errorf("%s: it depends on the time: %v", c.name, got)
		}
		if e.Digest() != about(t, e, other).Digest() {
			t.Errorf("%s: the policy is another", c.name)
		}
	}
}

// TestShippedPolicyReadsNoContext holds what compileLayer assumes.
func TestShippedPolicyReadsNoContext(t *testing.T) {
	l, err := policy.ShippedLayer()
	if err != nil {
		t.Fatal(err)
	}
	if e := shipped(t); l.ReadsContext("started") || e.ReuseDigest() != e.Digest() {
		t.Error("the shipped policy reads input.context: compileLayer must look, too")
	}
}
