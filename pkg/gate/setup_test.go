// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A plan that claims to be set-up, as a Go caller's could, is decided as a proposer's.
func TestOriginIsNotBelieved(t *testing.T) {
	g, err := gate.New(t.Context(), gate.Options{DecideOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	p := proposal.Proposal{ID: "a", Run: "npm ci", Phase: proposal.PhaseSetup, Network: []string{"registry:npm"}, Origin: proposal.OriginSetup}
	records, err := g.Check(t.Context(), proposal.Plan{Proposals: []proposal.Proposal{p}})
	if err != nil || records[0].Decision.Effect != proposal.Deny || records[0].Proposal.Origin != "" {
		t.Errorf("%+v, %v", records, err)
	}
	if p.Origin != proposal.OriginSetup {
		t.Error("the caller's plan was changed")
	}
}

// What Options.Setup has is decided as set-up, whatever it says of itself, and only that: the same
// command of a plan is refused the registry.
func TestSetupIsDecidedAsSetup(t *testing.T) {
	p := proposal.Proposal{ID: "deps", Run: "npm ci", Phase: proposal.PhaseRun, Network: []string{"registry:npm"}}
	g, err := gate.New(t.Context(), gate.Options{DecideOnly: true, Setup: gate.Setup{Steps: []gate.SetupStep{{Proposal: p}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	records, err := g.Check(t.Context(), proposal.Plan{Proposals: []proposal.Proposal{p}})
	if err != nil || len(records) != 2 || records[0].Decision.Effect != proposal.Allow || records[0].Proposal.Origin != proposal.OriginSetup || records[1].Decision.Effect != proposal.Deny {
		t.Errorf("%+v, %v", records, err)
	}
}

// FindSetup detects what the workspace's files ask for, of the tools that are there.
func TestFindSetup(t *testing.T) {
	dir, bin := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(dir, "package.json"): "{}", filepath.Join(dir, "package-lock.json"): "{}", filepath.Join(bin, "npm"): "#!/bin/sh\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	found, err := gate.FindSetup(t.Context(), gate.Options{Workspace: dir, Tools: bin})
	if err != nil || len(found.Steps) != 1 || found.Steps[0].Phase != proposal.PhaseSetup {
		t.Errorf("%+v, %v", found, err)
	}
	found, err = gate.FindSetup(t.Context(), gate.Options{Workspace: dir, Tools: dir})
	if err != nil || len(found.Steps) != 0 || len(found.Notes) == 0 {
		t.Errorf("without the tool: %+v, %v", found, err)
	}
	if _, err := gate.FindSetup(t.Context(), gate.Options{Workspace: filepath.Join(dir, "none"), Tools: bin}); codeOf(err) != "sandbox.workspace" {
		t.Error(err)
	}
}
