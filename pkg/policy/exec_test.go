// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"path"
	"slices"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// plainExec is what the shipped policy lets begin without any grant: git, from the
// root file system.
func plainExec() proposal.Exec {
	return proposal.Exec{
		Command: "t", Path: "/usr/bin/git", Argv: []string{"git", "status"}, Cwd: "/workspace", Pid: 7, Parent: 5,
		ParentPath: "/usr/bin/bash", Digest: "sha256:00", Layer: proposal.LayerRootfs,
	}
}

func judge(t testing.TB, e *policy.Engine, x proposal.Exec) proposal.ExecDecision {
	t.Helper()
	d, err := e.Exec(t.Context(), x)
	if err != nil {
		t.Fatalf("cannot decide %+v: %v", x, err)
	}
	return d
}

func isExec(a *ast.Annotations) bool { return path.Dir(a.Location.File) == "exec" }

// TestExecExamples runs the examples of the rules about programs that begin: each is
// laid over a plain exec.
func TestExecExamples(t *testing.T) {
	e := shipped(t)
	rules := 0
	for _, a := range annotations(t) {
		rule, _ := a.Custom["rule"].(string)
		if rule == "" || !isExec(a) {
			continue
		}
		rules++
		match, not := execs(t, a, "match"), execs(t, a, "not_match")
		if a.Title == "" || len(match) == 0 || len(not) == 0 {
			t.Errorf("%s lacks a title or examples", rule)
		}
		for _, x := range match {
			if d := judge(t, e, x); !slices.Contains(d.Rules, rule) {
				t.Errorf("%s does not match %+v: %v", rule, x, d.Rules)
			}
		}
		for _, x := range not {
			if d := judge(t, e, x); slices.Contains(d.Rules, rule) {
				t.Errorf("%s matches %+v", rule, x)
			}
		}
	}
	if rules != 11 {
		t.Errorf("%d rules carry examples, want 11", rules)
	}
}

func execs(t *testing.T, a *ast.Annotations, key string) []proposal.Exec {
	t.Helper()
	list, _ := a.Custom[key].([]any)
	var all []proposal.Exec
	for _, item := range list {
		text, err := json.Marshal(item)
		if err != nil {
			t.Fatal(err)
		}
		x := plainExec()
		if err := json.Unmarshal(text, &x); err != nil {
			t.Fatalf("%v: %s: %v", a.Custom["rule"], text, err)
		}
		all = append(all, x)
	}
	return all
}

// TestGrantExamples runs the grants and not_grants examples of the rules that give
// kinds of programs.
func TestGrantExamples(t *testing.T) {
	e := shipped(t)
	given := func(text string) []string {
		d := decide(t, e, text)
		if d.Effect != proposal.Allow || d.Grant == nil {
			t.Fatalf("%q is not allowed: %v", text, d.Rules)
		}
		return d.Grant.Exec
	}
	found := 0
	for _, a := range annotations(t) {
		for _, text := range examples(t, a, "grants") {
			found++
			if kinds := given(text); !slices.Contains(kinds, "built") {
				t.Errorf("%q grants %v, want built", text, kinds)
			}
		}
		for _, text := range examples(t, a, "not_grants") {
			if kinds := given(text); len(kinds) > 0 {
				t.Errorf("%q grants %v, want nothing", text, kinds)
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d examples", found)
	}
}
