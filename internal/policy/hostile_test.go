// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// attempts are repository policies that try to allow more than the organization does, each
// by one trick. loads says that New takes it; then it must change nothing towards allow.
var attempts = map[string]struct {
	files []string
	loads bool
}{
	"allow everything":           {[]string{"a.rego", "package fumehood.command\n\nallow contains {\"rule\": \"x.y\"}"}, true},
	"allow programs":             {[]string{"a.rego", "package fumehood.exec\n\nallow contains {\"rule\": \"x.y\"}"}, true},
	"grant hosts":                {[]string{"a.rego", "package fumehood.proposal\n\nnetwork contains {\"rule\": \"x.y\", \"host\": h} if some h in input.proposal.network"}, true},
	"grant variables":            {[]string{"a.rego", "package fumehood.proposal\n\nenv contains {\"rule\": \"x.y\", \"name\": e.name} if some e in input.proposal.env"}, true},
	"raise limits":               {[]string{"a.rego", "package fumehood.proposal\n\nlimits contains {\"rule\": \"x.y\", \"wall_ms\": 999999999, \"memory_bytes\": 999999999999, \"pids\": 99999, \"cpus\": 999, \"disk_bytes\": 99999999999999, \"files\": 999999, \"output_bytes\": 99999999999999}"}, true},
	"kinds of programs":          {[]string{"a.rego", "package fumehood.command\n\nexec contains {\"rule\": \"x.y\", \"kind\": \"built\"}"}, true},
	"start runs":                 {[]string{"a.rego", "package fumehood.trigger\n\nallow contains {\"rule\": \"x.y\"}"}, true},
	"library reopened":           {[]string{"l.rego", "package fumehood.lib\n\nreaders := {\"sudo\", \"curl\"}\n\nrefused := {}\n\nenv_ok(_, _)\n\nsteers(_) if false", "a.rego", denyHead + `input.command.program == "nothing"`}, true},
	"a function of the library":  {[]string{"l.rego", "package fumehood.lib\n\ndenial(rule, message, suggestion) := {}", "a.rego", denyHead + `input.command.program == "nothing"`}, true},
	"default deny":               {[]string{"a.rego", "package fumehood.command\n\ndefault deny := false"}, false},
	"deny is false":              {[]string{"a.rego", "package fumehood.command\n\ndeny := false"}, false},
	"deny is an object":          {[]string{"a.rego", "package fumehood.command\n\ndeny[\"x\"] := 1"}, false},
	"deny below a name":          {[]string{"a.rego", "package fumehood.command\n\ndeny.x contains {\"rule\": \"x.y\"}"}, false},
	"allow else":                 {[]string{"a.rego", "package fumehood.command\n\nallow if false else := true"}, false},
	"a point reopened":           {[]string{"a.rego", "package fumehood\n\ncommand := {\"allow\": {{\"rule\": \"x.y\"}}}"}, false},
	"a rule with a path":         {[]string{"a.rego", "package fumehood\n\ncommand.allow contains {\"rule\": \"x.y\"}"}, false},
	"another root":               {[]string{"a.rego", "package system.main\n\nallow := true"}, false},
	"the engine's own set":       {[]string{"a.rego", "package fumehood.exec\n\nbeyond_key := set()\n\nallow contains {\"rule\": \"x.y\"} if input.cwd == \"/\""}, true},
	"data that is a package":     {[]string{"data.json", `{"fumehood": {"command": {"allow": [{"rule": "x.y"}]}}}`, "a.rego", denyHead + `input.command.program == "nothing"`}, false},
	"data below a package":       {[]string{"fumehood/command/data.json", `{"allow": [{"rule": "x.y"}]}`, "a.rego", denyHead + `input.command.program == "nothing"`}, false},
	"another layer's rules":      {[]string{"a.rego", denyHead + "data.default.x"}, false},
	"all data":                   {[]string{"a.rego", denyHead + "count(data) == 1"}, false},
	"rego.v2":                    {[]string{"a.rego", "package fumehood.command\n\nimport rego.v2\n\ndeny contains {\"rule\": \"x.y\", \"message\": \"m\", \"suggestion\": \"s\"} if input.command.program == \"x\""}, false},
	"rego.v1":                    {[]string{"a.rego", "package fumehood.command\n\nimport rego.v1\n\ndeny contains {\"rule\": \"x.y\", \"message\": \"m\", \"suggestion\": \"s\"} if input.command.program == \"x\""}, true},
	"future":                     {[]string{"a.rego", "package fumehood.command\n\nimport future.keywords\n\ndeny contains {\"rule\": \"x.y\", \"message\": \"m\", \"suggestion\": \"s\"} if input.command.program == \"x\""}, true},
	"input replaced":             {[]string{"a.rego", "package fumehood.command\n\nimport input as real\n\nallow contains {\"rule\": \"x.y\"} if real.command with input as {}"}, false},
	"input named":                {[]string{"a.rego", "package fumehood.command\n\ninput := {}\n\nallow contains {\"rule\": \"x.y\"} if input"}, false},
	"a built-in replaced":        {[]string{"a.rego", "package fumehood.command\n\nregex.match(_, _) := true\n\ndeny contains {\"rule\": \"x.y\", \"message\": \"m\", \"suggestion\": \"s\"} if regex.match(\"x\", \"y\")"}, true},
	"schemas":                    {[]string{"a.rego", "# METADATA\n# scope: package\n# schemas:\n#   - input: {\"$ref\": \"http://127.0.0.1:1/x.json\"}\npackage fumehood.command\n\n" + denyHead[26:] + `input.comand.program == "x"`}, false},
	"an undefined set":           {[]string{"a.rego", "package fumehood.command\n\nallow contains {\"rule\": input.command.argv[99]}\n\nallow contains {\"rule\": x} if x := input.command.argv[98]"}, true},
	"members that are no object": {[]string{"a.rego", "package fumehood.command\n\nallow contains true"}, true},
	"members of other types":     {[]string{"a.rego", "package fumehood.command\n\nallow contains {\"rule\": {\"x\": 1}}"}, true},
	"keys that are no texts":     {[]string{"a.rego", "package fumehood.command\n\nallow contains {1: \"x\", [\"rule\"]: \"x\"}"}, true},
	"limits below nothing":       {[]string{"a.rego", "package fumehood.proposal\n\nlimits contains {\"wall_ms\": -1, \"memory_bytes\": 0}"}, true},
	"limits of infinity":         {[]string{"a.rego", "package fumehood.proposal\n\nlimits contains {\"wall_ms\": 1e400}"}, true},
}

// trials are proposals that the shipped policy decides each way.
var trials = []proposal.Proposal{
	{Run: "go test ./..."}, {Run: "sudo id"}, {Run: "curl https://x.example"}, {Run: "unknown-tool"}, {Run: "eval \"$x\""},
	{Run: "ls", Network: []string{"x.example", "registry:npm"}}, {Run: "npm ci", Phase: "setup", Network: []string{"registry:npm"}},
	{Run: "ls", Env: map[string]string{"LD_PRELOAD": "x"}}, {Run: "cat x > .git/config"}, {Run: "go test ./... && id"}, {Run: "ls", Cwd: "../x"},
	{Code: "print(1)", Language: "python"}, {Run: "echo ran"},
}

// TestHostilePolicies holds that none of the attempts loosens anything.
func TestHostilePolicies(t *testing.T) {
	lanetest.SkipShort(t)
	plain := shipped(t)
	for name, a := range attempts {
		t.Run(name, func(t *testing.T) {
			l, err := policy.ReadDirectory(folder(t, a.files...))
			var e *policy.Engine
			if err == nil {
				e, err = policy.New(t.Context(), policy.Options{Layers: []policy.Layer{l}})
			}
			if a.loads != (err == nil) || err != nil && !strings.HasPrefix(codeOf(err), "policy.") {
				t.Fatalf("loaded: %v, %v", err == nil, err)
			}
			if err != nil {
				return
			}
			for _, p := range trials {
				p.ID = "t"
				before := judged(t, plain, p)
				after, err := e.Decide(context.WithoutCancel(t.Context()), p, analysis(p))
				loosened(t, p, before, after, err)
			}
		})
	}
}

// loosened complains where after lets more pass than before.
func loosened(t *testing.T, p proposal.Proposal, before, after proposal.Decision, err error) {
	t.Helper()
	switch {
	case err != nil && (after.Effect != proposal.Deny || after.Grant != nil):
		t.Errorf("%+v: an error and a decision: %+v", p, after)
	case after.Effect > before.Effect:
		t.Errorf("%+v: %v became %v by %v", p, before.Effect, after.Effect, after.Rules)
	case after.Grant == nil:
	case before.Grant == nil:
		t.Errorf("%+v: a grant from nowhere: %+v", p, after.Grant)
	case more(*before.Grant, *after.Grant) != "":
		t.Errorf("%+v: %s", p, more(*before.Grant, *after.Grant))
	}
}

// more says what after grants beyond before.
func more(before, after proposal.Grant) string {
	a, b := after.Limits, before.Limits
	switch {
	case a.Wall > b.Wall || a.CPUs > b.CPUs || a.Memory > b.Memory || a.Pids > b.Pids || a.Disk > b.Disk || a.Files > b.Files || a.Output > b.Output:
		return fmt.Sprintf("limits %+v, before %+v", a, b)
	case slices.ContainsFunc(after.Network, func(h string) bool { return !slices.Contains(before.Network, h) }):
		return fmt.Sprintf("hosts %q, before %q", after.Network, before.Network)
	case slices.ContainsFunc(after.Exec, func(k string) bool { return !slices.Contains(before.Exec, k) }):
		return fmt.Sprintf("programs %q, before %q", after.Exec, before.Exec)
	}
	for name := range after.Env {
		if _, ok := before.Env[name]; !ok {
			return "the variable " + name
		}
	}
	return ""
}

// TestPolicyFoldersAreBounded holds that reading a directory stops before it fills memory.
func TestPolicyFoldersAreBounded(t *testing.T) {
	lanetest.SkipShort(t)
	many := t.TempDir()
	for i := range 1_001 {
		if err := os.WriteFile(filepath.Join(many, fmt.Sprintf("%d.rego", i)), []byte("package fumehood.lib\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	large := folder(t, "a.rego", denyHead+"true", "data.json", `{"x": "`+strings.Repeat("x", 5<<20)+`"}`)
	tree := folder(t, strings.Repeat("d/", 100)+"a.rego", denyHead+"true")
	below := t.TempDir()
	if err := os.Symlink(folder(t, "a.rego", denyHead+"true"), filepath.Join(below, "sub")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ dir, code string }{
		"a thousand files and more": {many, "policy.too-large"}, "5 MB of data": {large, "policy.too-large"},
		"a folder that is a link": {below, "policy.symlink"}, "a deep folder": {tree, ""},
	} {
		if _, err := policy.ReadDirectory(c.dir); codeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRudeAnswers holds that the text of a rule is limited, whatever its author: its id is a
// name, and its words have an end.
func TestRudeAnswers(t *testing.T) {
	for name, c := range map[string]struct{ rule, message, code string }{
		"newline in the id":   {`x.y\nz`, "m", "policy.malformed"},
		"escape in the id":    {`x.\u001b[2J`, "m", "policy.malformed"},
		"command in the id":   {`::error::x`, "m", "policy.malformed"},
		"mention in the id":   {`x.@everyone`, "m", "policy.malformed"},
		"long id":             {"x." + strings.Repeat("y", 1000), "m", "policy.malformed"},
		"long message":        {"x.y", strings.Repeat("m", 100_000), ""},
		"newlines in message": {"x.y", `one\ntwo\r::error::\u001b[2J\u202e@everyone`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := with(t, folder(t, "a.rego", fmt.Sprintf("package fumehood.command\n\ndeny contains {\"rule\": \"%s\", \"message\": \"%s\", \"suggestion\": \"s\"}\n", c.rule, c.message)))
			p := proposal.Proposal{ID: "t", Run: "ls"}
			d, err := e.Decide(t.Context(), p, analysis(p))
			if failure(err, d.Rules) != c.code || d.Effect != proposal.Deny || d.Grant != nil {
				t.Fatalf("%+v, %v", d, err)
			}
			for _, r := range d.Reasons {
				if len(r.Message) > 3000 || strings.ContainsFunc(r.Message, func(c rune) bool { return c < ' ' || c == '\u202e' }) {
					t.Errorf("%d bytes: %.200q", len(r.Message), r.Message)
				}
			}
		})
	}
}
