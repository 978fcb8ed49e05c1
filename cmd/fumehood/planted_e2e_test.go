// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fumehood/fumehood/internal/review"
)

// A reviewer who is right has each planted bug verified, on its line; one who is wrong has
// nothing verified, on clean pull requests neither.
func TestE2EPlanted(t *testing.T) {
	files, err := filepath.Glob("../../testdata/review/*.txtar")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d pull requests: %v", len(files), err)
	}
	d := newDesk(t)
	for _, file := range oneIn(t, 10, 10, files) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			checkPlanted(t, file, d.planted(t, file))
		})
	}
}

func checkPlanted(t *testing.T, file string, doc review.Document) {
	t.Helper()
	want := map[string]review.Verdict{"invented": review.NotReproduced, "always": review.PreExisting, "tool": review.NotRun, "words": review.NotRun}
	for _, r := range doc.Results {
		switch id := r.Finding.ID; {
		case id == "planted":
			if r.Verdict != review.Verified || r.Position == nil || r.Position.Line != r.Finding.Line {
				t.Errorf("planted: %s: %s, position %v, %+v", r.Verdict, r.Why, r.Position, r.Evidence)
			}
			if s := r.Suggestion; s != nil && !s.Offered {
				t.Errorf("the suggestion is not offered: %s", s.Why)
			}
		case id == "wrong" && r.Verdict == review.Verified || id != "wrong" && r.Verdict != want[id]:
			t.Errorf("%s: %s: %s", id, r.Verdict, r.Why)
		}
	}
	clean := strings.HasPrefix(filepath.Base(file), "clean-")
	if n := doc.CountVerdict(review.Verified); !doc.Reviewed || clean != (n == 0) || n > 1 {
		t.Errorf("reviewed %v, %d verified", doc.Reviewed, n)
	}
}

// planted verifies the findings of an archive with the files of two commits.
func (d desk) planted(t *testing.T, file string) review.Document {
	t.Helper()
	repo, findings := commitArchive(t, file)
	return d.reviewed(t, nil, "--workspace", repo, "--base", "base", "--head", "head", "--findings", findings, "--config", "none")
}

// reviewed runs fumehood review with further variables.
func (d desk) reviewed(t *testing.T, env []string, args ...string) (doc review.Document) {
	t.Helper()
	cmd := d.command(context.Background(), append([]string{"review", "--json"}, args...)...)
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || len(out) == 0) {
		t.Fatalf("%v\n%s", err, exit.Stderr)
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatal(err)
	}
	want := exitOK
	switch {
	case !doc.Reviewed:
		want = exitStopped
	case doc.CountVerdict(review.Verified) > 0:
		want = exitRefused
	}
	if code := cmd.ProcessState.ExitCode(); code != want {
		t.Errorf("exit code %d, want %d", code, want)
	}
	return doc
}

// commitArchive makes a repository of an archive, and returns it and the file of findings.
func commitArchive(t *testing.T, file string) (repo, findings string) {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	repo = t.TempDir()
	git := func(args ...string) {
		cmd := exec.Command("git", append([]string{"-C", repo, "-c", "user.name=A", "-c", "user.email=a@example.invalid"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
		runCommand(t, cmd)
	}
	git("init", "-q", "-b", "main")
	findings = filepath.Join(t.TempDir(), "findings.yaml")
	for _, side := range []string{"base", "head"} {
		for _, f := range archive.Files {
			path := findings
			if name, is := strings.CutPrefix(f.Name, side+"/"); is {
				path = filepath.Join(repo, name)
			} else if f.Name != "findings.yaml" {
				continue
			}
			if err := os.WriteFile(path, f.Data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		git("checkout", "-q", "-B", side)
		git("add", "-A")
		git("commit", "-q", "-m", side)
	}
	return repo, findings
}
