// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// clone clones the repository under test, whatever its owner, into clone.
func (d desk) clone(t *testing.T) {
	t.Helper()
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	d.write(t, "gitconfig", "[safe]\n\tdirectory = *\n")
	cmd := exec.CommandContext(t.Context(), "git", "clone", "--quiet", "--no-hardlinks", repo, d.path("clone"))
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+d.path("gitconfig"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot clone: %v\n%s", err, out)
	}
}

// goRun runs fumehood from the clone and returns its output.
func (d desk) goRun(t *testing.T, args ...string) string {
	t.Helper()
	cmd := goCommand(t.Context(), d.path("clone"), append([]string{"run", "./cmd/fumehood"}, args...)...)
	cmd.Env = append(os.Environ(), "FUMEHOOD_CACHE="+d.cache)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("go run ./cmd/fumehood %s: %v\n%s%s", strings.Join(args, " "), err, &stdout, &stderr)
	}
	return stdout.String()
}

func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	return cmd
}
