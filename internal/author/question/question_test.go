// SPDX-License-Identifier: Apache-2.0

package question

import (
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/explain"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func TestCommand(t *testing.T) {
	for name, c := range map[string]Command{"phase": {Text: "ls", Phase: "later"}, "env": {Text: "ls", Env: []string{"A=1", "B"}}} {
		if s, err := c.Subject(); err == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
	s, err := Command{Text: "ls", Phase: "setup", Env: []string{"A=1=2"}}.Subject()
	if err != nil || len(s.Proposals) != 1 || s.Proposals[0].Run != "ls" || s.Proposals[0].Env["A"] != "1=2" {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestInputs(t *testing.T) {
	for _, text := range []string{"exec", "exec=x", `exec={"nosuch": 1}`, "nosuch={}"} {
		if s, err := ParseInputs([]string{text}); err == nil {
			t.Errorf("%q: %+v", text, s)
		}
	}
	if s, err := ParseInputs([]string{`exec={"path": "/usr/bin/curl"}`, "fumehood.egress={}"}); err != nil || len(s.Inputs) != 2 {
		t.Errorf("%+v, %v", s, err)
	}
}

// What is asked about is decided, and shown as rules see it.
func TestSubject(t *testing.T) {
	engine, err := policy.New(t.Context(), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Command{Text: "git status"}.Subject()
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Explain(t.Context(), explain.NewAdviser(engine, order.AnalyzeProposal), false)
	if err != nil || len(all) != 1 || all[0].Decision.Effect != proposal.Allow {
		t.Errorf("%+v, %v", all, err)
	}
	for point, want := range map[string]int{"command": 1, "fumehood.command": 1, "exec": -1, "nosuch": -1} {
		docs, err := s.Documents(engine, point)
		if (err != nil) != (want < 0) || err == nil && len(docs) != want {
			t.Errorf("%s: %d documents, %v", point, len(docs), err)
		}
	}
}

// Arguments that contradict each other are refused, in the words of the flags.
func TestArguments(t *testing.T) {
	for want, a := range map[string]Arguments{
		"":                          {Command: "ls", Cwd: "x"},
		"name one thing":            {},
		"name one thing to decide":  {Command: "ls", Plan: "p"},
		"--id goes with --plan":     {Command: "ls", ID: "a"},
		"--code needs --language":   {Code: "f"},
		"--language goes with":      {Command: "ls", Language: "python"},
		"go with a command":         {Over: []string{"exec={}"}, Phase: "run"},
		"set them in the plan":      {Plan: "p", Network: []string{"x"}},
		"--argv needs a program":    {IsArgv: true},
		"go with a command, not wi": {Trigger: "f", Env: []string{"A=1"}},
	} {
		if err := a.Check(); (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", a, err, want)
		}
	}
}

func TestArgumentsSubject(t *testing.T) {
	files := map[string]string{"code": "print(1)", "pr": `{"actor": {"permission": "read"}}`, "large": strings.Repeat("x", plan.MaxDocument+1)}
	read := func(name string) ([]byte, error) { return []byte(files[name]), nil }
	if s, err := (Arguments{Code: "code", Language: "python"}).Subject(read); err != nil || s.Proposals[0].Code != "print(1)" {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := (Arguments{Trigger: "pr", Over: []string{"exec={}"}}).Subject(read); err != nil || len(s.Inputs) != 2 {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := (Arguments{Code: "large", Language: "sh"}).Subject(read); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Errorf("%v", err)
	}
	p := proposal.Plan{Proposals: []proposal.Proposal{{ID: "a"}, {ID: "b"}}}
	if s, err := OfPlan(p, "b"); err != nil || len(s.Proposals) != 1 || s.Proposals[0].ID != "b" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := OfPlan(p, "c"); err == nil {
		t.Error("a proposal that the plan lacks was found")
	}
}
