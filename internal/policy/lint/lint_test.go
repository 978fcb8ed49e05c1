// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/policy"
)

// The shipped policy is held to what others are held to.
func TestShippedPolicyHasNoProblems(t *testing.T) {
	lanetest.SkipShort(t)
	r, err := policy.Check(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Problems {
		t.Errorf("%s: %s %s: %s (%s)", p.Place(), p.Severity, p.Code, p.Message, p.Hint)
	}
}

// TestLints: each lint finds the bad rule and lets the good one be.
func TestLints(t *testing.T) {
	lanetest.SkipShort(t)
	titled := func(set, id string) string {
		return "# METADATA\n# title: T " + id + "\n# custom: {rule: " + id + ", match: [x]}\n" + set + ` contains {"rule": "` + id + `", "message": "m", "suggestion": "s"} if `
	}
	deny := titled("deny", "a.d")
	allow := "# METADATA\n# title: T\n# custom: {rule: a.a, match: [x]}\nallow contains {\"rule\": \"a.a\"} if "
	about := `input.command.program`
	for name, c := range map[string]struct{ code, bad, good string }{
		"unanchored":         {"lint.regex", allow + "regex.match(`go`, " + about + ")", allow + "regex.match(`^go$`, " + about + ")"},
		"half anchored":      {"lint.regex", allow + "regex.match(`^go`, " + about + ")", allow + "regex.match(`^go.*`, " + about + ")"},
		"one alternative":    {"lint.regex", allow + "regex.match(`^go|make$`, " + about + ")", allow + "regex.match(`^(go|make)$`, " + about + ")"},
		"below not":          {"lint.regex", deny + "not regex.match(`go`, " + about + ")", deny + "regex.match(`go`, " + about + ")"},
		"through a function": {"lint.regex", allow + "f(" + about + ")\n\nf(x) if regex.match(`go`, x)", deny + "f(" + about + ")\n\nf(x) if regex.match(`go`, x)"},
		"through a constant": {"lint.regex", allow + "regex.match(p, " + about + ")\n\np := `go`", allow + "regex.match(p, " + about + ")\n\np := `^go$`"},
		"in a comprehension": {"lint.regex", allow + "count([x | some x in input.command.argv; regex.match(`go`, x)]) == 1", allow + "count([x | some x in input.command.argv; regex.match(`^go$`, x)]) == 1"},
		"beginning":          {"lint.boundary", allow + `startswith(` + about + `, "/x")`, allow + `startswith(` + about + `, "/x/")`},
		"end":                {"lint.boundary", allow + `endswith(` + about + `, "example.com")`, allow + `endswith(` + about + `, ".example.com")`},
		"part":               {"lint.boundary", allow + `contains(` + about + `, "example")`, allow + `contains(` + about + `, "=")`},
		"not of a missing":   {"lint.missing", allow + `not input.command.argv[0] == "x"`, allow + `not "x" in input.command.argv`},
		"unequal to missing": {"lint.missing", deny + `input.command.argv[0] != "x"`, deny + `not input.command.argv[0] == "x"`},
		"false":              {"lint.never", deny + "false", deny + "true"},
		"unlike constants":   {"lint.never", deny + `"a" == "b"`, deny + `"a" == "a"`},
		"two values":         {"lint.never", deny + "{ " + about + ` == "a"; ` + about + ` == "b" }`, deny + about + ` in {"a", "b"}`},
		"in a text":          {"lint.never", deny + `"generate" in input.command.sub`, deny + `"generate" in input.command.argv`},
		"not in a text":      {"lint.never", deny + `not "generate" in input.command.sub`, deny + `{ some o in input.command.options; "x" in o.values }`},
		"in a text of many":  {"lint.never", deny + `{ some i; "x" in input.command.options[i].name }`, deny + `{ some i; "x" in input.command.options[i].values }`},
		"no id":              {"lint.id", "# METADATA\n# title: T\n" + `deny contains {"message": "m", "suggestion": "s"}`, deny + "true"},
		"id without dot":     {"lint.id", "# METADATA\n# title: T\n# custom: {match: [x]}\n" + `deny contains {"rule": "x", "message": "m", "suggestion": "s"}`, deny + "true"},
		"two titles":         {"lint.id", deny + "true\n\n" + strings.Replace(deny, "# title: T", "# title: U", 1) + "true", deny + "true\n\n" + deny + "false == false"},
		"another id":         {"lint.id", strings.Replace(deny, "rule: a.d", "rule: a.e", 1) + "true", deny + "true"},
		"no title":           {"lint.title", `deny contains {"rule": "a.d", "message": "m", "suggestion": "s"}`, deny + "true"},
		"no suggestion":      {"lint.suggestion", strings.Replace(deny, `, "suggestion": "s"`, "", 1) + "true", deny + "true"},
		"no object":          {"lint.shape", "# METADATA\n# title: T\n# custom: {rule: a.d, match: [x]}\n" + `deny contains "no"`, deny + "true"},
		"no such key":        {"lint.shape", strings.Replace(deny, `"message"`, `"reason"`, 1) + "true", strings.Replace(deny, `"message"`, `"text": "t", "message"`, 1) + "true"},
		"number as text":     {"lint.shape", `limits contains {"rule": "a.l", "memory_bytes": "2G"} if ` + about + ` == "x"`, `limits contains {"rule": "a.l", "memory_bytes": 2000000000} if ` + about + ` == "x"`},
		"number below one":   {"lint.shape", `limits contains {"pids": 0.5} if ` + about + ` == "x"`, `limits contains {"cpus": 0.5} if ` + about + ` == "x"`},
		"unknown limit":      {"lint.shape", `limits contains {"rule": "a.l", "memory": 5} if ` + about + ` == "x"`, `limits contains {"rule": "a.l", "files": 5} if ` + about + ` == "x"`},
		"limits of nothing":  {"lint.shape", `limits contains {"rule": "a.l"} if ` + about + ` == "x"`, `limits contains {"wall_ms": 5} if ` + about + ` == "x"`},
		"text as number":     {"lint.shape", strings.Replace(deny, `"message": "m"`, `"message": 5`, 1) + "true", deny + "true"},
		"no examples":        {"lint.examples", strings.Replace(deny, ", match: [x]", "", 1) + "true", deny + "true"},
		"a denied program":   {"lint.start", deny + about + ` == "x"`, strings.Replace(deny, "match:", "text_only: true, match:", 1) + about + ` == "x"`},
		"through a helper":   {"lint.start", deny + "f\n\nf if " + about + ` == "x"`, deny + "f\n\nf if input.command.static"},
		"unused":             {"lint.unused", deny + "true\n\nhelper := 1", deny + "helper == 1\n\nhelper := 1"},
		"iteration":          {"lint.iteration", deny + `{ some x in {"a", "b"}; ` + about + ` == x }`, deny + `{ some x in {"a", "b"}; x in input.command.argv }`},
		"print":              {"lint.print", deny + `print("x")`, deny + "true"},
		"ignored":            {"lint.ignored", allow + "true", deny + "true"},
		"unknown severity":   {"lint.metadata", strings.Replace(deny, "match:", "severity: bad, match:", 1) + "true", strings.Replace(deny, "match:", "severity: high, match:", 1) + "true"},
		"severity of no id":  {"lint.metadata", strings.Replace(deny, "rule: a.d,", "severity: high,", 1) + "true", deny + "true"},
		"two categories":     {"lint.metadata", strings.Replace(deny, "match:", "category: [a, b], match:", 1) + "true", strings.Replace(deny, "match:", "category: a-b, match:", 1) + "true"},
		"misspelt severity":  {"lint.metadata", strings.Replace(deny, "match:", "severty: high, match:", 1) + "true", strings.Replace(deny, "match:", "owner: a, match:", 1) + "true"},
		"METADATA twice":     {"lint.metadata", deny + "true", deny + "true"},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "METADATA twice" {
				codes(t, c.code, true, c.bad)
				codes(t, c.code, false, c.good)
				return
			}
			above := "# METADATA\n# title: P\n"
			if found := reviewed(t, above+"package fumehood.command\n\n"+c.bad, above+"package fumehood.command\n\n"+deny+"true"); !slices.Contains(found, c.code) {
				t.Errorf("found %q", found)
			}
		})
	}
}

// A denial of a program in commands is not doubtful beside one of its starts.
func TestDeniedStart(t *testing.T) {
	const about = "# METADATA\n# title: T\n# custom: {rule: a.d, match: [x], not_match: [y]}\n"
	const member = "deny contains {\"rule\": \"a.d\", \"message\": \"m\", \"suggestion\": \"s\"} if "
	command := "package fumehood.command\n\n" + about + member + "input.command.program == \"x\"\n"
	if found := reviewed(t, command); !slices.Contains(found, "lint.start") {
		t.Errorf("alone: %q", found)
	}
	exec := "package fumehood.exec\n\n" + strings.Replace(about, ", match: [x], not_match: [y]", "", 1) + member + "input.tool == \"x\"\n"
	if found := reviewed(t, command, exec); len(found) > 0 {
		t.Errorf("with its start: %q", found)
	}
}

// codes complains unless rules have the problem, or have it not.
func codes(t *testing.T, code string, want bool, rules string) {
	t.Helper()
	found := reviewed(t, "package fumehood.command\n\n"+rules+"\n")
	if slices.Contains(found, code) != want || slices.Contains(found, "policy.compile") {
		t.Errorf("found %q in\n%s", found, rules)
	}
}

// reviewed are the codes of what is wrong with a layer that may allow; one that has
// only restricting rules, or an ignored allow, is checked as what may not.
func reviewed(t *testing.T, files ...string) []string {
	t.Helper()
	l := policy.Layer{Name: "l", Role: policy.Grants}
	if strings.HasSuffix(t.Name(), "ignored") {
		l.Role = policy.Restricts
	}
	for i, f := range files {
		l.Files = append(l.Files, policy.File{Name: string(rune('a'+i)) + ".rego", Content: []byte(f)})
	}
	r, err := policy.Check(t.Context(), []policy.Layer{l})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, p := range r.Problems {
		if p.Layer == "l" {
			found = append(found, p.Code)
		}
	}
	return found
}
