// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const noTac = `package fumehood.command

deny contains {"rule": "own.tac", "message": "no tac", "suggestion": "use cat"} if input.command.program == "tac"
`

// A policy decides with the files that New got, whatever its caller does to them later.
func TestPolicyFiles(t *testing.T) {
	t.Parallel()
	text := []byte(noTac)
	own := []gate.Policy{{Name: "own", Files: map[string][]byte{"own.rego": text}}}
	g, err := gate.New(t.Context(), gate.Options{DecideOnly: true, Policies: own})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	digest := g.PolicyDigest()
	text[0], own[0] = 'x', gate.Policy{Role: "grants"}
	records, err := g.Check(t.Context(), proposal.Plan{Proposals: []proposal.Proposal{run("a", "tac go.mod"), run("b", "cat go.mod")}})
	if err != nil || records[0].Decision.Effect != proposal.Deny || records[1].Decision.Effect != proposal.Allow || g.PolicyDigest() != digest {
		t.Errorf("%+v, %v", records, err)
	}
}

// A file that no rule is read from is refused, as its rules would be missed.
func TestPolicyFileNames(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{"own.rego": []byte(noTac), "more.reg": []byte(noTac)}
	_, err := gate.New(t.Context(), gate.Options{DecideOnly: true, Policies: []gate.Policy{{Name: "own", Files: files}}})
	if codeOf(err) != "gate.options" || !strings.Contains(err.Error(), `"more.reg"`) {
		t.Error(err)
	}
}

// A policy that is read restricts, and what is required of its signature is not forgotten where nothing
// is signed.
func TestReadPolicy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "own.rego"), []byte(noTac), 0o644); err != nil {
		t.Fatal(err)
	}
	p, err := gate.ReadPolicy(t.Context(), dir, gate.PolicyOptions{})
	if err != nil || p.Role != "" || string(p.Files["own.rego"]) != noTac || p.Origin.Digest == "" {
		t.Errorf("%+v, %v", p, err)
	}
	for name, o := range map[string]gate.PolicyOptions{
		"a key": {Keys: []string{"key.pub"}}, "a scope": {Scope: "x"}, "a revision": {MinimumRevision: "1"},
	} {
		if p, err := gate.ReadPolicy(t.Context(), dir, o); codeOf(err) != "gate.options" {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	if p, err := gate.ReadPolicy(t.Context(), "policy.tar.gz", gate.PolicyOptions{Scope: "x"}); codeOf(err) != "gate.options" {
		t.Errorf("a scope without a key: %+v, %v", p, err)
	}
	if p, err := gate.ReadPolicy(t.Context(), "base:policy", gate.PolicyOptions{}); err == nil {
		t.Errorf("the base of no pull request: %+v", p)
	}
}

func codeOf(err error) string {
	if f := proposal.FailureOf(err); f != nil {
		return f.Code
	}
	return ""
}
