// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/author/trial"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/shell/parse"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const denyX = `package fumehood.command

# METADATA
# title: X
# custom: {rule: a.x, match: [x]}
deny contains {"rule": "a.x", "message": "m", "suggestion": "s"} if input.command.program == "x"
`

// layer is one of name, content pairs.
func layer(files ...string) policy.Layer {
	l := policy.Layer{Name: "acme"}
	for i := 0; i < len(files); i += 2 {
		l.Files = append(l.Files, policy.File{Name: files[i], Content: []byte(files[i+1])})
	}
	return l
}

func try(t testing.TB, o trial.Options) trial.Report {
	t.Helper()
	o.Analyse, o.Cases = parse.Analyze, plan.DecodeCases
	r, err := trial.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// statuses are the tests' names and what became of them.
func statuses(r trial.Report) map[string]trial.Status {
	all := map[string]trial.Status{}
	for _, one := range r.Tests {
		all[one.Name] = one.Status
	}
	return all
}

// Each point has examples and cases laid over an ordinary input; an undecided thing is no
// pass.
func TestEveryPointIsTried(t *testing.T) {
	lanetest.SkipShort(t)
	const cases = `schema: fumehood.cases/v1
cases:
  - {name: exec, exec: {path: /usr/bin/curl}, want: deny, rule: exec.network}
  - {name: egress, egress: {name: evil.example}, want: deny, rule: egress.host}
  - {name: event, event: {kind: connect, address: "tcp 169.254.169.254:80"}, rule: event.metadata}
  - {name: output, output: {binary: true, masked: 1}, want: deny}
  - {name: trigger, trigger: {actor: {type: Bot}}, want: deny, rule: trigger.bot}
  - {name: same repository, pr: same-repository, want: allow, rule: trigger.writer}
  - {name: hosts, argv: [curl, "https://api.example.com"], network: [api.example.com], want: deny, rule: network.none}
  - {name: code, code: print(1), language: python, want: allow}
  - {name: cwd, run: ls, cwd: pkg, want: allow}
  - {name: a rule that is none, run: ls, want: allow, rule: text.raed}
  - {name: a rule that must not, run: ls, not_rule: text.}
  - {name: who comes before what, run: ls, actor: none, want: allow}
`
	got := statuses(try(t, trial.Options{Tried: []policy.Layer{layer("a.rego", denyX, "cases.yaml", cases)}}))
	want := map[string]trial.Status{
		"a.x match x": trial.Passed, "exec": trial.Passed, "egress": trial.Passed, "event": trial.Passed, "output": trial.Passed, "trigger": trial.Passed,
		"same repository": trial.Passed, "hosts": trial.Passed, "code": trial.Passed, "cwd": trial.Passed,
		"a rule that is none": trial.Failed, "a rule that must not": trial.Failed, "who comes before what": trial.Failed,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A rule that gives something is not named in a decision: its examples look whether it held.
func TestExamplesOfWhatIsGiven(t *testing.T) {
	lanetest.SkipShort(t)
	l := layer("a.rego", `package fumehood.proposal

# METADATA
# title: Hosts in set-up
# custom:
#   rule: acme.hosts
#   match: [{run: npm ci, phase: setup, network: [a.example]}]
#   not_match: [{run: npm ci, network: [a.example]}, ls, {run: npm ci, phase: setup, network: [b.example]}]
network contains {"rule": "acme.hosts", "host": "a.example"} if {
	input.proposal.phase == "setup"
	"a.example" in input.proposal.network
}

# METADATA
# title: Little memory for pytest
# custom: {rule: acme.memory, match: ["ls"]}
limits contains {"rule": "acme.memory", "memory_bytes": 1048576} if "pytest" in input.proposal.programs
`)
	l.Role = policy.Opens
	r := try(t, trial.Options{Tried: []policy.Layer{l}})
	if r.Passed != 4 || r.Failed != 1 || r.Tests[4].Status != trial.Failed {
		t.Errorf("%+v", statuses(r))
	}
	if len(r.Rules) != 2 || r.Rules[0].Tests != 1 || r.Rules[1].Tests != 0 || r.Coverage() != 50 {
		t.Errorf("rules %+v", r.Rules)
	}
}

func TestBuiltinsOfTests(t *testing.T) {
	const rego = `package fumehood.command_test

import data.fumehood.command

test_every_field_is_there if {
	doc := fumehood.parse("x a | y")
	doc.command.operands[0].value == "a"
	doc.proposal.phase == "run"
	doc.workspace == "/workspace"
}

test_second if fumehood.parse("x a | y", {"command": 1}).command.program == "y"

test_proposal if fumehood.parse("x", {"command": -1, "phase": "setup"}).proposal.phase == "setup"

test_code if fumehood.parse("x", {"language": "bash"}).proposal.form == "code"

test_denied if {
	d := fumehood.decide("x", {"network": ["a.example"]})
	d.effect == "deny"
	{"a.x", "network.none"} & {r | some r in d.rules} == {"a.x", "network.none"}
}

test_in_a_loop if every text in ["x", "x a", "ls | x"] { fumehood.decide(text).effect == "deny" }

test_rule if {
	some d in command.deny with input as fumehood.parse("x")
	d.rule == "a.x"
}

test_error_none if fumehood.parse("") != {}

test_error_range if fumehood.parse("x", {"command": 1}) != {}

test_error_type if fumehood.parse("x", {"command": "first"}) != {}

test_error_field if fumehood.parse("x", {"pahse": "setup"}) != {}

test_error_negated if not to_number("x") == 3

test_error_twice if fumehood.parse("x", {"run": "y"}) != {}
`
	r := try(t, trial.Options{Tried: []policy.Layer{layer("a.rego", denyX, "a_test.rego", rego)}, Only: regexp.MustCompile("test_")})
	for name, status := range statuses(r) {
		want := trial.Passed
		if strings.Contains(name, "test_error") {
			want = trial.Erred
		}
		if status != want {
			t.Errorf("%s: %s", name, status)
		}
	}
	if len(r.Tests) != 13 {
		t.Errorf("%d tests", len(r.Tests))
	}
	for _, one := range r.Tests {
		if one.Status != trial.Passed && !strings.Contains(one.Name, "test_error") {
			t.Errorf("%+v", one)
		}
	}
}

// A test file that does not compile is reported with its line, and the layer's other kinds
// of tests still run.
func TestBrokenTestFile(t *testing.T) {
	lanetest.SkipShort(t)
	for name, c := range map[string]struct{ rego, says string }{
		"syntax":           {"package x\n\ntest_x if {", "unexpected"},
		"undefined":        {"package fumehood.command\n\ntest_x if denny[1]", "denny"},
		"removed built-in": {"package fumehood.command\n\ntest_x if rand.intn(\"x\", 3) == 1", "rand.intn"},
		"deep":             {"package fumehood.command\n\ntest_x if " + strings.Repeat("[", 100000), "deeper"},
		"no UTF-8":         {"package fumehood.command\n\ntest_x if \"\xff\" == 1", "utf-8"},
		"adds":             {"package fumehood.command\n\ndeny contains 1\n\ntest_x if true", "adds to fumehood.command.deny"},
		"adds below":       {"package fumehood.command.deny\n\ntest_x if true", "adds to fumehood.command.deny.test_x"},
		"adds a set":       {"package fumehood.trigger\n\nallow contains {\"rule\": \"x.y\"}\n\ntest_x if true", "adds to fumehood.trigger.allow"},
		"a default":        {"package fumehood.command\n\ndefault deny := set()\n\ntest_x if true", "adds to fumehood.command.deny"},
		"all of it":        {"package fumehood\n\ncommand := {}\n\ntest_x if true", "adds to fumehood.command"},
	} {
		t.Run(name, func(t *testing.T) {
			r := try(t, trial.Options{Tried: []policy.Layer{layer("a.rego", denyX, "a_test.rego", c.rego)}})
			all := ""
			for _, one := range r.Tests {
				all += fmt.Sprintf("%s:%d %s\n", one.File, one.Line, one.Message)
			}
			if r.Passed != 1 || r.Failed == 0 || !strings.Contains(all, c.says) || !strings.Contains(all, "a_test.rego:") {
				t.Errorf("%d passed, %d failed, want one and %q:\n%s", r.Passed, r.Failed, c.says, all)
			}
		})
	}
}

// What loops or eats memory is named, and what comes after it still runs.
func TestTestsAreBounded(t *testing.T) {
	lanetest.SkipShort(t)
	const rego = `package fumehood.command

test_a_loop if {
	some a in numbers.range(1, 100000)
	some b in numbers.range(1, 100000)
	a * b == -1
}

test_b_memory if count([x | some a in numbers.range(1, 3000); some b in numbers.range(1, 3000); x := sprintf("%s%d%d", ["xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", a, b])]) == 1

test_c_prints if {
	some a in numbers.range(1, 2000)
	print("a line that is long enough to fill the buffer after some thousand of them", a)
	a == -1
}

test_d_fine if true
`
	r := try(t, trial.Options{Tried: []policy.Layer{layer("a.rego", denyX, "a_test.rego", rego)}, Only: regexp.MustCompile("test_"), Deadline: 400 * time.Millisecond})
	want := map[string]trial.Status{
		"fumehood.command.test_a_loop": trial.Endless, "fumehood.command.test_b_memory": trial.Endless,
		"fumehood.command.test_c_prints": trial.Failed, "fumehood.command.test_d_fine": trial.Passed,
	}
	if diff := cmp.Diff(want, statuses(r)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if printed := len(r.Tests[2].Print); printed < 60<<10 {
		t.Errorf("only %d bytes of prints are kept", printed)
	}
	for _, one := range r.Tests {
		if len(one.Print) > 70<<10 {
			t.Errorf("%s: %d bytes of prints are kept", one.Name, len(one.Print))
		}
	}
}

func TestRunFails(t *testing.T) {
	_, err := trial.Run(t.Context(), trial.Options{Tried: []policy.Layer{layer("a.rego", "package fumehood.command\n\ndeny contains {")}})
	var stop *proposal.StopError
	if !errors.As(err, &stop) || stop.Code != "policy.compile" {
		t.Errorf("a policy that does not compile: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := trial.Run(ctx, trial.Options{Tried: []policy.Layer{layer("a.rego", denyX)}, Analyse: parse.Analyze}); err == nil {
		t.Error("a run that was broken off has a report")
	}
}

// JSON has every list, and what JUnit says agrees with it whatever the texts hold.
func TestFormats(t *testing.T) {
	hostile := "\x00\x1b[31m\u202e]]><x a=\"&\ufffe\xff"
	r := trial.Report{Schema: trial.Schema, Tests: []trial.Result{
		{Name: hostile, Layer: hostile, File: hostile, Status: trial.Failed, Message: hostile, Subject: hostile, Print: hostile, Failure: &trial.Expression{File: hostile, Text: hostile}},
		{Name: "b", Layer: "l", File: "f", Status: trial.Endless, Kind: trial.KindRego, Parts: []trial.Part{{Name: hostile, Status: trial.Failed, Failure: &trial.Expression{Text: hostile}}}},
		{Name: "c", Layer: "l", File: "f", Status: trial.Passed}, {Name: "d", Layer: "l", File: "f", Status: trial.Skipped},
	}}
	var b bytes.Buffer
	if err := r.JUnit(&b); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for d := xml.NewDecoder(&b); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok {
			count[start.Name.Local]++
		}
		if text, ok := token.(xml.CharData); ok && bytes.ContainsAny(text, "\x00\x1b\u202e") {
			t.Errorf("%q", text)
		}
	}
	want := map[string]int{"testsuites": 1, "testsuite": 2, "testcase": 4, "failure": 1, "error": 1, "skipped": 1, "system-out": 1}
	if diff := cmp.Diff(want, count); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	text, err := json.Marshal(trial.Report{})
	if err != nil || strings.Contains(string(text), "null") {
		t.Errorf("%s, %v", text, err)
	}
}

func BenchmarkShipped(b *testing.B) {
	l, err := policy.ShippedLayer()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if r := try(b, trial.Options{Tried: []policy.Layer{l}}); r.Passed < 1000 {
			b.Fatal(r.Passed)
		}
	}
}

func BenchmarkManyTests(b *testing.B) {
	var rego, cases strings.Builder
	rego.WriteString("package fumehood.command\n\n")
	cases.WriteString("schema: fumehood.cases/v1\ncases:\n")
	for i := range 1000 {
		fmt.Fprintf(&rego, "test_%d if count(deny) == 1 with input as fumehood.parse(\"x %d\")\n\n", i, i)
		fmt.Fprintf(&cases, "  - {name: case %d, run: x %d, want: deny, rule: a.x}\n", i, i)
	}
	l := layer("a.rego", denyX, "a_test.rego", rego.String(), "cases.yaml", cases.String())
	for b.Loop() {
		if r := try(b, trial.Options{Tried: []policy.Layer{l}}); r.Passed != 2001 {
			b.Fatal(r.Passed, r.Failed)
		}
	}
}

// An example that does not hold fails, and one whose rule must not speak fails when it does.
func TestExamplesFail(t *testing.T) {
	lanetest.SkipShort(t)
	r := try(t, trial.Options{Tried: []policy.Layer{layer("a.rego", `package fumehood.command

# METADATA
# title: X
# custom: {rule: a.x, match: [x, y], not_match: [y, x], grants: ["go test ./...", ls], not_grants: [ls, make], reaches: ["curl https://api.example.com", "sudo x"], not_reaches: ["sudo x", ls]}
deny contains {"rule": "a.x", "message": "m", "suggestion": "s"} if input.command.program == "x"
`)}})
	want := map[string]trial.Status{
		"a.x match x": trial.Passed, "a.x match y": trial.Failed, "a.x not_match y": trial.Passed, "a.x not_match x": trial.Failed,
		"a.x grants go test ./...": trial.Passed, "a.x grants ls": trial.Failed, "a.x not_grants ls": trial.Passed, "a.x not_grants make": trial.Failed,
		"a.x reaches curl https://api.example.com": trial.Passed, "a.x reaches sudo x": trial.Failed, "a.x not_reaches sudo x": trial.Passed, "a.x not_reaches ls": trial.Failed,
	}
	if diff := cmp.Diff(want, statuses(r)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
