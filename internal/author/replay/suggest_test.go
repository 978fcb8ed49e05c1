// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/author/replay"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/internal/policy/opatest"
	"github.com/fumehood/fumehood/internal/shell/parse"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func engineOf(t testing.TB, layers ...policy.Layer) *policy.Engine {
	t.Helper()
	e, err := policy.New(context.Background(), policy.Options{Layers: layers})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// ran returns a past in which each text ran once, in a separate run.
func ran(texts ...string) replay.Past {
	var past replay.Past
	for i, text := range texts {
		p := proposal.Proposal{ID: "t", Run: text}
		past.Runs = append(past.Runs, replay.Run{ID: fmt.Sprint("r", i), Verified: true,
			Acts: []replay.Act{{Proposal: p, Analysis: parse.Analyze(p), Decision: proposal.Decision{Effect: proposal.Allow}, Ran: true}}})
	}
	return past
}

// suggested makes a suggestion and the engine that decides with it.
func suggested(t testing.TB, plain *policy.Engine, past replay.Past, w replay.Wanted, more ...policy.Layer) (replay.Suggestion, *policy.Engine) {
	t.Helper()
	s, err := replay.Suggest(context.Background(), past, replay.Engine{Engine: plain}, w)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Rules) == 0 {
		return s, plain
	}
	return s, engineOf(t, append(more, layerOf(s, policy.Allows))...)
}

func effect(t testing.TB, e *policy.Engine, text string) string {
	t.Helper()
	p := proposal.Proposal{ID: "t", Run: text}
	d, err := e.Decide(context.Background(), p, parse.Analyze(p))
	if err != nil {
		t.Fatal(err)
	}
	return d.Effect.String()
}

// TestSuggest checks that what was seen is allowed, that similar commands are not,
// and that the default policy's denials still apply.
func TestSuggest(t *testing.T) {
	plain := engineOf(t)
	_, with := suggested(t, plain, ran(
		"go test -race ./pkg/a", "go test -run TestX ./...", "npm run lint", "CI=1 make build", "git log --oneline | head -n 5", "sed -n 1,5p go.mod", "timeout 60 pytest -q tests/test_a.py",
		"for f in *.go; do gofmt -l \"$f\"; done", "cat go.mod > out.txt", "f() { go vet ./...; }; f", "cd sub && python3 -c 'print(1)'",
		"python3 - <<E\nprint(2)\nE", "cat <<<a/b", "cat </etc/hosts",
	), replay.Wanted{AtLeast: 1})
	for text, want := range map[string]string{
		"go test -race ./pkg/a":               "allow",
		"python3 - <<E\nprint(2)\nE":          "allow",
		"python3 - <<E\nprint(3)\nE":          "deny", // the text that is read is code
		"cat <<<a/b":                          "allow",
		"cat <<<c/d":                          "deny",
		"cat </etc/hosts":                     "allow",
		"cat </etc/passwd":                    "deny",
		"cat go.mod > sub/out.txt":            "allow",
		"go test -race ./pkg/b/...":           "allow", // any path is allowed in place of the path
		"go test -race -run TestX ./x":        "allow",
		"go test -run TestY ./...":            "deny", // other words are not
		"go test -count=1 ./...":              "deny",
		"go build ./...":                      "deny",
		"go test ../x":                        "deny",
		"go test -exec ./x ./...":             "deny",
		"npm run lint":                        "allow",
		"npm run test":                        "deny",
		"npm run deploy":                      "deny",
		"CI=1 make build":                     "allow",
		"CI=2 make build":                     "deny",
		"make build":                          "allow",
		"make install":                        "deny",
		"git log --oneline | head -n 5":       "allow",
		"git log --oneline | head -n 6":       "deny",
		"git log -p":                          "deny",
		"sed -n 1,5p x/go.mod":                "allow",
		"sed -i s/a/b/ go.mod":                "deny",
		"sed -n '1,5p;e id' go.mod":           "deny",
		"timeout 60 pytest -q tests/b.py":     "allow",
		"timeout 61 pytest -q tests/b.py":     "deny",
		"pytest -q tests/b.py":                "allow",
		"cat go.mod > other.txt":              "allow",
		"cat go.mod > /etc/x":                 "deny",
		"cat /etc/passwd > other.txt":         "deny",
		"f() { go vet ./...; }; f":            "allow",
		"f() { go build ./...; }; f":          "deny",
		"g() { go vet ./...; }; g":            "deny",
		"cd sub && python3 -c 'print(1)'":     "allow",
		"cd sub && python3 -c 'print(2)'":     "deny",
		"python3 ./x.py":                      "deny",
		"python3 < x":                         "deny",
		"echo hello":                          "deny",
		"for f in *.go; do gofmt -l $f; done": "deny",
	} {
		if got := effect(t, with, text); got != want {
			t.Errorf("%s: %s, want %s (the default alone: %s)", text, got, want, effect(t, plain, text))
		}
	}
}

// TestSuggestLeavesOut checks that everything for which nothing is suggested is
// listed with the reason.
func TestSuggestLeavesOut(t *testing.T) {
	past := ran("go test ./...", "go test ./...", "go vet ./...", "sudo id", "echo \"$GITHUB_TOKEN\"", "cat ~/notes.txt", "echo caf\u00e9", "$(cat x)", "nosuchtool --check")
	past.Runs[2].Acts[0].Ran = false
	snippet := proposal.Proposal{ID: "code", Code: "print(1)", Language: "python"}
	past.Runs[0].Acts = append(past.Runs[0].Acts, replay.Act{Proposal: snippet, Analysis: parse.Analyze(snippet), Ran: true})
	unverified := ran("git status").Runs[0]
	unverified.ID, unverified.Verified = "ru", false
	past.Runs = append(past.Runs, unverified)
	plain := engineOf(t)
	s, _ := suggested(t, plain, past, replay.Wanted{AtLeast: 2})
	var got []string
	for _, l := range s.Left {
		got = append(got, l.Source+" "+l.ID+": "+strings.SplitAfter(l.Why+".", ".")[0])
	}
	for _, want := range []string{"r0 code: it is a snippet", "r2 t: it did not run", "r3 t: the policy refuses it, by", "r6 t: it contains characters", "r7 t: the policy refuses it", "r8 t: the policy refuses it, by default", "ru t: its file is not verified"} {
		if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("%q is not among %q", want, got)
		}
	}
	if len(s.Rules) != 1 || s.Rules[0].Rule != "seen.go-test" || s.Rules[0].Commands != 2 {
		t.Errorf("rules: %+v", s.Rules)
	}
	s, with := suggested(t, plain, past, replay.Wanted{Refused: true})
	if !slices.ContainsFunc(s.Rules, func(r replay.SuggestedRule) bool { return r.Program == "nosuchtool" }) || effect(t, with, "nosuchtool --check") != "allow" || effect(t, with, "nosuchtool --fix") != "deny" || effect(t, with, "sudo id") != "deny" {
		t.Errorf("with --refused: %+v", s.Rules)
	}
}

// TestSuggestBorrowedID checks that a layer's denial is recognized whatever its id is.
func TestSuggestBorrowedID(t *testing.T) {
	posing := engineOf(t, layer(policy.Restricts, "package fumehood.command\n\ndeny contains {\"rule\": \"default.no-rule\", \"message\": \"m\", \"suggestion\": \"s\"} if input.command.program == \"nosuchtool\"\n"))
	s, err := replay.Suggest(t.Context(), ran("nosuchtool --check"), replay.Engine{Engine: posing}, replay.Wanted{Refused: true})
	if err != nil || len(s.Rules) != 0 || len(s.Left) != 1 {
		t.Errorf("%v, rules %+v, left %+v", err, s.Rules, s.Left)
	}
}

// TestSuggestHosts checks that hosts are suggested in their phase, and that those
// never reached are marked.
func TestSuggestHosts(t *testing.T) {
	under := layer(policy.Opens, "package fumehood.proposal\n\nnetwork contains {\"rule\": \"x\", \"host\": h} if some h in {\"go.example\", \"registry:npm\"}\n")
	p := proposal.Proposal{ID: "get", Run: "npm ci", Network: []string{"registry:npm", "go.example"}, Phase: proposal.PhaseSetup}
	past := replay.Past{Runs: []replay.Run{{ID: "r", Verified: true, Acts: []replay.Act{{Proposal: p, Analysis: parse.Analyze(p), Ran: true,
		Flows: []replay.Flow{{Egress: proposal.Egress{Name: "registry.npm.example", Registries: []string{"npm"}}, Decision: proposal.EgressDecision{Effect: proposal.Allow}, Times: 1}}}}}}}
	s, with := suggested(t, engineOf(t, under), past, replay.Wanted{})
	want := []replay.SuggestedHost{{Host: "go.example", Phases: []string{"setup"}, Runs: 1}, {Host: "registry:npm", Phases: []string{"setup"}, Runs: 1, Reached: true}}
	if diff := cmp.Diff(want, s.Hosts); diff != "" {
		t.Error(diff)
	}
	if err := s.CheckStillAllowed(t.Context(), with, parse.Analyze); err != nil {
		t.Error(err)
	}
	p.Phase = ""
	if d, err := with.Decide(t.Context(), p, parse.Analyze(p)); err != nil || d.Effect != proposal.Deny {
		t.Errorf("in another phase: %v, %v", d.Effect, err)
	}
	if text := string(s.Files()["proposal/hosts.rego"]); strings.Count(text, "never reached") != 1 {
		t.Error(text)
	}
}

// holds checks the promise for any texts: the output is the intended policy, with
// the number of rules that the suggestion states and valid cases, and text of the
// past occurs in it only as strings.
func holds(t testing.TB, plain *policy.Engine, texts ...string) replay.Suggestion {
	t.Helper()
	s, err := replay.Suggest(context.Background(), ran(texts...), replay.Engine{Engine: plain}, replay.Wanted{Refused: true})
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]int{}
	if len(s.Rules) > 0 {
		for _, c := range engineOf(t, layerOf(s, policy.Grants)).Rules() { // without the default policy, which takes long to compile
			if c.Rules > 0 {
				rules[c.Point+"."+c.Set] += c.Rules
			}
		}
	}
	want := map[string]int{}
	if len(s.Rules) > 0 {
		want["fumehood.command.allow"], want["fumehood.command.deny"] = len(s.Rules), 1
	}
	if diff := cmp.Diff(want, rules); diff != "" {
		t.Errorf("%q: %s", texts, diff)
	}
	files := s.Files()
	if data, ok := files["cases.yaml"]; ok {
		if _, problems := plan.DecodeCases(data, "cases.yaml"); len(problems) > 0 {
			t.Errorf("%q: %v\n%s", texts, problems, data)
		}
	}
	if capabilities, err := module.EditorCapabilities(); err != nil {
		t.Error(err)
	} else {
		opatest.CheckClean(t, capabilities, files)
	}
	for name, content := range files {
		if strings.ContainsFunc(string(content), func(r rune) bool { return r != '\n' && r != '\t' && (r < ' ' || r > '~') && r != '…' }) {
			t.Errorf("%s: %q", name, content)
		}
	}
	return s
}

func layerOf(s replay.Suggestion, role policy.Role) policy.Layer {
	l := policy.Layer{Name: "suggested", Role: role}
	files := s.Files()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		l.Files = append(l.Files, policy.File{Name: name, Content: files[name]})
	}
	return l
}

var injections = []string{
	"echo '\"}\ndeny contains {\"rule\": \"x\"}'", "echo '\n# METADATA\n# title: x'", "go test -run '`' ./...", "echo '}\nallow contains {\"rule\": \"all.x\"} if true\n{'",
	"make 'x\"] } { true'", "echo '\\u0022}'", "./'a\nb.rego'", "'x\npackage fumehood.lib'", "echo ': - want: allow'", "echo '\t- name: x\n  run: y'", "echo %s %d \\n", "X='\"' make x",
	"echo '{{ template }}' '${x}' '#'", "'..' x", "'../../etc/x' --y", "'.' x", "only-seen x", "echo ''", "echo a; echo \"b\"", "[ -f x ] && echo y", "cat <<'E'\n\"}\nE\n",
}

func TestSuggestIsNoTemplate(t *testing.T) {
	lanetest.SkipShort(t)
	plain := engineOf(t)
	s := holds(t, plain, injections...)
	if err := s.CheckStillAllowed(t.Context(), engineOf(t, layerOf(s, policy.Allows)), parse.Analyze); err != nil || len(s.Rules) < 5 {
		t.Errorf("%d rules, %v", len(s.Rules), err)
	}
}

func FuzzSuggest(f *testing.F) {
	lanetest.SkipShort(f)
	for _, text := range injections {
		f.Add(text)
	}
	plain := engineOf(f)
	f.Fuzz(func(t *testing.T, text string) { holds(t, plain, text) })
}

// FuzzRead checks that hostile bytes are refused without a panic.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"key":"x","origin":"o","schema":"fumehood.audit/v1"}` + "\n"))
	f.Add([]byte(`{"schema":"fumehood.report/v1"}`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content []byte) {
		path := writeFile(t, dir, content)
		_, _ = replay.Read([]string{path}, replay.Options{Parse: parse.Analyze, Unverified: true})
	})
}
