// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/policies"
)

// launchers are the programs by which one is started that no text names.
var launchers = []struct{ text, parent string }{
	{"git ls-files | xargs ./canary", "/usr/bin/xargs"},
	{"find . -exec ./canary {} +", "/usr/bin/find"},
	{"make test", "/usr/bin/make"},
	{"npm test", "/usr/bin/node"},
	{"python3 -c 'import subprocess; subprocess.run([\"./canary\"])'", "/usr/bin/python3.11"},
	{"env ./canary", "/usr/bin/env"},
	{"timeout 5 ./canary", "/usr/bin/timeout"},
	{"./canary.sh", "/usr/bin/bash"},
	{"go test ./...", "/tmp/go-build1/b001/x.test"},
	{"cargo test", "/workspace/target/debug/deps/x-0123456789abcdef"},
}

// TestLaunchersDoNotMatter holds that no launcher gets a refused program begun, and
// that who starts a program changes nothing about it.
func TestLaunchersDoNotMatter(t *testing.T) {
	e := shipped(t)
	for _, canary := range []struct {
		x    proposal.Exec
		rule string
	}{
		{proposal.Exec{Path: "/usr/bin/curl", Layer: proposal.LayerRootfs, Argv: []string{"curl", "x"}}, "exec.network"},
		{proposal.Exec{Path: "/usr/bin/sudo", Layer: proposal.LayerRootfs, Argv: []string{"sudo", "id"}}, "exec.privilege"},
		{proposal.Exec{Path: "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", Layer: proposal.LayerRootfs, Argv: []string{"ld.so", "/usr/bin/id"}}, "exec.loader"},
		{proposal.Exec{Path: "/workspace/copy", Layer: proposal.LayerWritten, Same: []string{"/usr/bin/curl"}}, "exec.network"},
		{proposal.Exec{Path: "/tmp/renamed", Layer: proposal.LayerWritten, Same: []string{"/usr/sbin/chroot"}}, "exec.privilege"},
		{proposal.Exec{Path: "/memfd:x (deleted)", Layer: proposal.LayerMemory}, "exec.memory"},
		{proposal.Exec{Path: "/mnt/bound", Layer: proposal.LayerOther}, "exec.place"},
		{proposal.Exec{Path: "/usr/bin/busybox", Layer: proposal.LayerRootfs, Argv: []string{"/tmp/link/wget", "x"}}, "exec.network"},
		{proposal.Exec{Path: "/tmp/tool", Layer: proposal.LayerWritten, Same: []string{"/bin/busybox"}, Argv: []string{"/tmp/nc", "-h"}}, "exec.network"},
		{proposal.Exec{Path: "/tmp/tool", Layer: proposal.LayerWritten, Same: []string{"/bin/[", "/bin/toybox"}, Argv: []string{"tool", "wget"}}, "exec.network"},
		{proposal.Exec{Path: "/bin/sh", Layer: proposal.LayerRootfs, Same: []string{"/bin/[", "/bin/busybox", "/bin/chroot"}, Argv: []string{"nc", "-h"}}, "exec.network"},
		{proposal.Exec{Path: "/workspace/busybox2", Layer: proposal.LayerWorkspace, Argv: []string{"busybox2", "su"}}, "exec.privilege"},
		{proposal.Exec{Path: "/usr/bin/ls", Layer: proposal.LayerRootfs, Env: []string{"LD_PRELOAD"}}, "exec.preload"},
	} {
		for _, l := range launchers {
			x := canary.x
			x.Command, x.ParentPath, x.Grants = "t", l.parent, []string{"built"}
			if d := judge(t, e, x); d.Effect != proposal.Deny || d.Reason == nil || d.Reason.Rule != canary.rule {
				t.Errorf("%s by %s: %+v, want %s", x.Path, l.parent, d, canary.rule)
			}
		}
	}
}

// TestManyToolsInOne lets a copy of busybox be the tools that are not refused.
func TestManyToolsInOne(t *testing.T) {
	e := shipped(t)
	for _, argv := range [][]string{{"/tmp/ls", "nc"}, {"tool", "ls"}, {"tool"}, {"busybox", "sort"}, {}} {
		x := proposal.Exec{Command: "t", Path: "/tmp/tool", Layer: proposal.LayerWritten, Same: []string{"/bin/busybox"}, Argv: argv, Grants: []string{"built"}}
		if d := judge(t, e, x); d.Effect != proposal.Allow {
			t.Errorf("%q: %+v", argv, d)
		}
		x.Path, x.Layer, x.Same = "/bin/sh", proposal.LayerRootfs, []string{"/bin/[", "/bin/busybox", "/bin/chroot", "/bin/nc"}
		if d := judge(t, e, x); d.Effect != proposal.Allow {
			t.Errorf("%q: %+v", argv, d)
		}
	}
}

// TestPlainCommandsStartNoProgramsOfThePullRequest holds for commands that read and
// print, however they are led to start one.
func TestPlainCommandsStartNoProgramsOfThePullRequest(t *testing.T) {
	e := shipped(t)
	for _, text := range []string{"grep -r x .", "git log --oneline", "sort -u go.mod", "ls | xargs cat", "awk '{print}' go.mod", "tar czf /tmp/x.tgz pkg", "gofmt -l .", "bash -c 'ls | wc -l'", "find . -name '*.go' -exec wc -l {} +"} {
		d := decide(t, e, text)
		if d.Effect != proposal.Allow {
			t.Fatalf("%q: %v", text, d.Rules)
		}
		for _, x := range []proposal.Exec{{Path: "/workspace/canary", Layer: proposal.LayerWorkspace}, {Path: "/tmp/canary", Layer: proposal.LayerWritten}} {
			x.Command, x.Grants = "t", d.Grant.Exec
			if got := judge(t, e, x); got.Effect != proposal.Deny || got.Reason.Rule != "exec.grant" {
				t.Errorf("%q may start %s: %+v", text, x.Path, got)
			}
		}
	}
}

// TestBothRefuse holds the two judgements together: what may begin nowhere may not be
// named in a text either, and a text that may not name a program says why.
func TestBothRefuse(t *testing.T) {
	e := shipped(t)
	names := 0
	for name, kind := range refusedNames(t) {
		names++
		if name == "." {
			continue // a builtin of the shell, and no file
		}
		x := proposal.Exec{Command: "t", Path: "/usr/bin/" + name, Argv: []string{name, "x"}, Layer: proposal.LayerRootfs, Grants: []string{"built"}}
		refused := judge(t, e, x).Effect != proposal.Allow
		if want := slices.Contains([]string{"network", "privilege", "debugger"}, kind) || strings.Contains(name, ".so"); refused != want {
			t.Errorf("%s (%s) refused to begin: %v, want %v", name, kind, refused, want)
		}
		p := proposal.Proposal{ID: "t", Argv: []string{name, "x"}}
		d, err := e.Decide(t.Context(), p, analysis(p))
		if err != nil || d.Effect == proposal.Allow || len(d.Reasons) == 0 {
			t.Errorf("the text %q: %v %v", name, d.Effect, err)
		}
	}
	if names < 250 {
		t.Errorf("only %d names", names)
	}
}

// refusedNames reads the shipped table.
func refusedNames(t *testing.T) map[string]string {
	t.Helper()
	content, err := policies.FS.ReadFile("lib/refused.rego")
	if err != nil {
		t.Fatal(err)
	}
	m, err := ast.ParseModuleWithOpts("refused.rego", string(content), ast.ParserOptions{RegoVersion: ast.RegoV1})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, r := range m.Rules {
		if object, ok := r.Head.Value.Value.(ast.Object); ok && string(r.Head.Name) == "refused" {
			object.Foreach(func(k, v *ast.Term) { names[string(k.Value.(ast.String))] = string(v.Value.(ast.String)) })
		}
	}
	return names
}

// TestExecFloor holds for whatever a policy says.
func TestExecFloor(t *testing.T) {
	dir := folder(t, "a.rego", "package fumehood.exec\n\nallow contains {\"rule\": \"mine.all\"}\n")
	e := granting(t, dir)
	for name, change := range map[string]func(*proposal.Exec){
		"no layer":      func(x *proposal.Exec) { x.Layer = "" },
		"unknown layer": func(x *proposal.Exec) { x.Layer = "Rootfs" },
		"no path":       func(x *proposal.Exec) { x.Path = "" },
		"no command":    func(x *proposal.Exec) { x.Command = "" },
	} {
		x := plainExec()
		change(&x)
		if d := judge(t, e, x); d.Effect != proposal.Deny || d.Reason.Rule != "floor.exec" {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if d := judge(t, e, plainExec()); d.Effect != proposal.Allow {
		t.Errorf("%+v", d)
	}
}

// TestExecLayers holds the merging: only the granting layer allows, an ask denies, and
// what an observed layer says is recorded.
func TestExecLayers(t *testing.T) {
	deny := `package fumehood.exec

deny contains {"rule": "mine.git", "message": "m", "suggestion": "s"} if input.name == "git"
`
	ask := strings.ReplaceAll(deny, "deny contains", "ask contains")
	allow := "package fumehood.exec\n\nallow contains {\"rule\": \"mine.all\"}\n"
	for _, c := range []struct {
		name, text string
		observe    bool
		x          func(*proposal.Exec)
		want       proposal.ExecDecision
	}{
		{"deny", deny, false, nil, proposal.ExecDecision{Effect: proposal.Deny, Rules: []string{"exec.rootfs", "mine.git"}, Cacheable: true, Reason: &proposal.Reason{Rule: "mine.git", Effect: proposal.Deny}}},
		{"ask", ask, false, nil, proposal.ExecDecision{Effect: proposal.Deny, Rules: []string{"exec.rootfs", "mine.git"}, Cacheable: true, Reason: &proposal.Reason{Rule: "mine.git", Effect: proposal.Ask}}},
		{"observed", deny, true, nil, proposal.ExecDecision{Effect: proposal.Allow, Rules: []string{"exec.rootfs", "mine.git"}, Cacheable: true, Observed: true, Reason: &proposal.Reason{Rule: "mine.git", Effect: proposal.Deny, Observed: true}}},
		{"another's allow", allow, false, func(x *proposal.Exec) { x.Layer = proposal.LayerWritten }, proposal.ExecDecision{Effect: proposal.Deny, Rules: []string{"exec.grant"}, Cacheable: true, Reason: &proposal.Reason{Rule: "exec.grant", Effect: proposal.Deny}}},
	} {
		e, err := policy.New(t.Context(), policy.Options{Layers: layersOf(t, policy.Restricts, folder(t, "a.rego", c.text)), Observe: c.observe})
		if err != nil {
			t.Fatal(err)
		}
		x := plainExec()
		if c.x != nil {
			c.x(&x)
		}
		got := judge(t, e, x)
		if got.Reason != nil {
			got.Reason = &proposal.Reason{Rule: got.Reason.Rule, Effect: got.Reason.Effect, Observed: got.Reason.Observed}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c.name, diff)
		}
	}
}

// TestExecWithoutRules holds that a granting layer that says nothing about programs
// lets none begin.
func TestExecWithoutRules(t *testing.T) {
	e := granting(t, folder(t, "a.rego", "package fumehood.command\n\nallow contains {\"rule\": \"mine.all\"}\n"))
	d := judge(t, e, plainExec())
	if d.Effect != proposal.Deny || d.Reason.Rule != "exec.no-rule" || !strings.Contains(d.Reason.Suggestion, "fumehood.exec") {
		t.Errorf("%+v", d)
	}
	if warnings := unlinted(e); len(warnings) != 1 || !strings.HasPrefix(warnings[0], "policy.no-exec") {
		t.Errorf("warnings: %q", warnings)
	}
	if warnings := shipped(t).Warnings(); len(warnings) > 0 {
		t.Errorf("warnings: %q", warnings)
	}
}
