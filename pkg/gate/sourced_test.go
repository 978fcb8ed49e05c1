// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A session reads a file of assignments only as long as no command has changed it, and never one that is hidden.
func TestSessionSourced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".env.test"), []byte("A=1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "a"}} {
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v, %s", args, err, out)
		}
	}
	const use = `. ./.env.test; test "$A" = 1`
	s := open(t, newGate(t, gate.Options{Workspace: dir}), gate.SessionOptions{})
	for i, step := range []struct {
		run  string
		runs bool
	}{{use, true}, {"echo A=2 > other", true}, {use, true}, {"echo A=2 > .env.test", true}, {use, false}} {
		r := do(t, s, run(fmt.Sprint("p", i), step.run))
		if step.runs != (r.Decision.Effect == proposal.Allow && r.Result != nil && r.Result.Succeeded()) {
			t.Errorf("%s: %+v", step.run, r)
		}
	}
	if _, err := s.Close(); err != nil {
		t.Fatal(err)
	}
	hiding := newGate(t, gate.Options{Workspace: dir, Hide: []string{".env.test"}})
	records, err := hiding.Check(t.Context(), proposal.Plan{Proposals: []proposal.Proposal{run("hidden", use)}})
	if err != nil || records[0].Decision.Effect != proposal.Deny {
		t.Errorf("%+v, %v", records, err)
	}
}
