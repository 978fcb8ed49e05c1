// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// In a session only the first command has a kept result, and what is kept depends on the
// options: a run of a pull request keeps nothing, and a key must have signed the entry.
func TestSessionResults(t *testing.T) {
	t.Parallel()
	workspace, dir := t.TempDir(), filepath.Join(t.TempDir(), "kept")
	if err := os.WriteFile(filepath.Join(workspace, "a.go"), []byte("package a\nvar x  int\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	text, err := audit.GenerateKey("other")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := audit.NewSigner(text)
	if err != nil {
		t.Fatal(err)
	}
	trial := []gate.Policy{{Name: "trial", Files: map[string][]byte{"a.rego": []byte("package fumehood.command\n\n# METADATA\n# title: T\n# custom: {rule: a.d, text_only: true}\ndeny contains {\"rule\": \"a.d\", \"message\": \"m\", \"suggestion\": \"s\"} if input.command.program == \"task\"\n")}}}
	base := gate.Options{Workspace: workspace, Results: gate.Store{Mode: "write", Dir: dir}}
	for _, step := range []struct {
		name      string
		change    func(*gate.Options)
		before    string // command
		want      bool   // from the cache
		wantKey   bool
		wantNotes string
	}{
		{"pull request", func(o *gate.Options) { o.Subject.PR = 7 }, "", false, true, ""},
		{"first", func(*gate.Options) {}, "", false, true, ""},
		{"again", func(*gate.Options) {}, "", true, true, ""},
		{"after another, kept", func(*gate.Options) {}, "true", false, false, ""},
		{"pull request, kept", func(o *gate.Options) { o.Subject.PR = 7 }, "", true, true, ""},
		{"observed", func(o *gate.Options) { o.ObserveUnsafe, o.Policies = true, trial }, "", false, false, ""},
		{"mount", func(o *gate.Options) { o.MountsUnsafe = []gate.Mount{{Source: "/usr/share", Target: "/mnt/x"}} }, "", false, false, ""},
		{"a key", func(o *gate.Options) { o.Signer, o.Results.Mode = signer, "read" }, "", false, true, "signed with another key"},
		{"off", func(o *gate.Options) { o.Results.Mode = "off" }, "", false, false, ""},
	} {
		o := base
		step.change(&o)
		g := newGate(t, o)
		s := open(t, g, gate.SessionOptions{})
		if step.before != "" {
			ran(t, s, run("before", step.before))
		}
		r := ran(t, s, proposal.Proposal{ID: "fmt", Run: "gofmt -l .", Cache: true})
		report, err := s.Close()
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if (r.Cached != nil) != step.want || (r.CacheKey != "") != step.wantKey || string(r.Stdout.Head) != "a.go\n" || (report.Totals.Cached == 1) != step.want {
			t.Errorf("%s: cached %v, key %q, output %q", step.name, r.Cached, r.CacheKey, r.Stdout.Head)
		}
		if notes := strings.Join(g.Warnings(), "\n"); !strings.Contains(notes, step.wantNotes) || step.wantNotes == "" && notes != "" {
			t.Errorf("%s: warnings %q", step.name, notes)
		}
		g.Close()
	}
}

// What a command in a new sandbox finds of set-up is an input of its result: a kept layer by its
// digest, and with a private one nothing is kept.
func TestResultsOfLayers(t *testing.T) {
	o := withSetUp(t)
	privateCache(t, &o)
	o.Results = gate.Store{Mode: "write", Dir: filepath.Join(t.TempDir(), "kept")}
	plan := proposal.Plan{Schema: proposal.PlanSchema, Proposals: []proposal.Proposal{{ID: "fmt", Run: "gofmt -l .", Cache: true, Fresh: true}}}
	var keys []string
	for _, step := range []struct {
		change func(*gate.Options)
		runs   int
	}{
		{func(o *gate.Options) {}, 1},
		{func(o *gate.Options) { o.Layers.Mode = "off" }, 2},
		{func(o *gate.Options) { o.Layers = gate.Store{Mode: "write", Dir: filepath.Join(t.TempDir(), "layers")} }, 2},
	} {
		o := o
		step.change(&o)
		for range step.runs {
			report, err := newGate(t, o).Run(t.Context(), plan)
			if err != nil || !report.Records[1].Result.Succeeded() {
				t.Fatalf("%+v, %v", report.Records, err)
			}
			keys = append(keys, report.Records[1].Result.CacheKey)
		}
	}
	private, off, kept := keys[0], keys[1:3], keys[3:]
	if private != "" || off[0] == "" || off[0] != off[1] || kept[0] == "" || kept[0] != kept[1] || kept[0] == off[0] {
		t.Errorf("keys %q", keys)
	}
}
