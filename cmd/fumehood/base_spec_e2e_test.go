// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
)

// "base:" means the base commit in this job's event.
func TestE2EBaseSpec(t *testing.T) {
	t.Parallel()
	strict := "package fumehood.command\n\ndeny contains {\"rule\": \"base.ls\", \"message\": \"m\", \"suggestion\": \"s\"} if input.command.program == \"ls\"\n"
	w := jobtest.NewWorld(t, false, map[string]string{"policy/a.rego": strict}, map[string]string{"policy/a.rego": strings.Replace(strict, `"ls"`, `"nothing"`, 1)})
	clone := filepath.Join(w.Dir, "clone")
	w.GitIn("", "clone", "-q", filepath.Join(w.Dir, "git", jobtest.Hub+".git"), clone)
	w.GitIn("", "-C", clone, "fetch", "-q", "origin", fmt.Sprintf("refs/pull/%d/head", jobtest.PrNumber))
	w.GitIn("", "-C", clone, "checkout", "-q", "FETCH_HEAD")
	plan := filepath.Join(w.Dir, "plan.yaml")
	if err := os.WriteFile(plan, []byte("schema: fumehood.plan/v1\nproposals:\n- {id: a, run: ls}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		event string
		args  []string
		piece string
	}{
		"the base's": {"pull_request.opened", []string{"--policy", "base:policy"}, "base.ls"},
		"the head's": {"pull_request.opened", []string{"--policy", "policy"}, "allow a"},
		"no folder":  {"pull_request.opened", []string{"--policy", "base:rules"}, "policy.missing"},
	} {
		cmd, _ := w.Start("pull_request", w.EventPayload(tt.event, nil))
		cmd.Args = append([]string{w.Binary, "check", "--plan", plan}, tt.args...)
		cmd.Dir = clone
		out, _ := cmd.CombinedOutput()
		if !strings.Contains(string(out), tt.piece) {
			t.Errorf("%s: %s", name, out)
		}
	}
}
