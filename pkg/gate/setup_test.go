// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
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

// FindSetup detects what the workspace's files ask for, with the tools that commands find in the root:
// those of a list of directories of the host, and those of its usual places.
func TestFindSetup(t *testing.T) {
	dir, root := t.TempDir(), t.TempDir()
	for file, text := range map[string]string{
		filepath.Join(dir, "go.mod"): "module x\n\nrequire a.b/c v1.0.0\n", filepath.Join(dir, "go.sum"): "",
		filepath.Join(dir, "package.json"): "{}", filepath.Join(dir, "package-lock.json"): "{}",
		filepath.Join(root, "bin/bash"): "#!/bin/sh\n", filepath.Join(root, "usr/bin/npm"): "#!/bin/sh\n",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	for id, o := range map[string]gate.Options{"setup-go": {Tools: os.Getenv("PATH")}, "setup-npm": {Rootfs: "dir:" + root, Tools: os.Getenv("PATH")}} {
		o.Workspace = dir
		found, err := gate.FindSetup(t.Context(), o)
		if err != nil || !slices.ContainsFunc(found.Steps, func(s gate.SetupStep) bool { return s.ID == id && s.Phase == proposal.PhaseSetup }) {
			t.Errorf("%s: %+v, %v", id, found, err)
		}
		if id == "setup-npm" && slices.ContainsFunc(found.Steps, func(s gate.SetupStep) bool { return s.ID == "setup-go" }) {
			t.Errorf("the host's Go is not in the root: %+v", found)
		}
	}
	if _, err := gate.FindSetup(t.Context(), gate.Options{Workspace: filepath.Join(dir, "none")}); codeOf(err) != "sandbox.workspace" {
		t.Error(err)
	}
}
