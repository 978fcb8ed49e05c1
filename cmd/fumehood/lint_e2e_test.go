// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"go.yaml.in/yaml/v3"
)

const actionlintVersion = "v1.7.12"

// actionlint runs the tool of that name, which takes shellcheck to the scripts, on a repository that
// has the action and these workflows, and returns what it finds.
func actionlint(t *testing.T, workflows map[string][]byte) string {
	t.Helper()
	for _, tool := range []string{"actionlint", "shellcheck"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("%v; .ci/run installs it", err)
		}
	}
	version, err := exec.CommandContext(t.Context(), "actionlint", "-version").Output()
	if err != nil || !strings.HasPrefix(string(version), actionlintVersion+"\n") {
		t.Fatalf("want actionlint %s, got %q (%v)", actionlintVersion, version, err)
	}
	dir := t.TempDir()
	for _, name := range []string{".git", ".github/workflows"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	workflows["../../action.yml"] = jobtest.ReadFile(t, "../../action.yml")
	for name, text := range workflows {
		if err := os.WriteFile(filepath.Join(dir, ".github/workflows", name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "actionlint", "-oneline", "-no-color")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if (err == nil) != (len(out) == 0) {
		t.Fatalf("actionlint: %v\n%s", err, out)
	}
	return string(out)
}

// An error is found: a linter that checks nothing would pass everything.
func TestE2ELintFinds(t *testing.T) {
	t.Parallel()
	found := actionlint(t, map[string][]byte{"wrong.yml": []byte(`on: pull_request
jobs:
  j:
    runs-on: ubuntu-24.04
    steps:
      - run: echo ${{ github.event.pull_request.title }} $x
      - id: f
        uses: ./
        with:
          plann: x
      - run: echo "$X"
        env:
          X: ${{ steps.f.outputs.conclusions }}
`)})
	for _, want := range []string{"potentially untrusted", "SC2086", `input "plann" is not defined`, `property "conclusions" is not defined`} {
		if !strings.Contains(found, want) {
			t.Errorf("actionlint does not find %s:\n%s", want, found)
		}
	}
}

// The examples are linted with this action.yml's inputs and outputs.
func TestE2ELintWorkflows(t *testing.T) {
	t.Parallel()
	texts := map[string][]byte{}
	for _, w := range workflows(t) {
		text := jobtest.ReadFile(t, "../../.github/"+w.file)
		texts[strings.ReplaceAll(w.file, "/", "-")] = bytes.ReplaceAll(text, []byte("uses: fumehood/fumehood@v1"), []byte("uses: ./"))
	}
	if found := actionlint(t, texts); found != "" {
		t.Error(found)
	}
}

// The workflows that init writes are linted like the examples.
func TestE2ELintInit(t *testing.T) {
	t.Parallel()
	texts := map[string][]byte{}
	for name, files := range repositories {
		for _, forks := range []bool{false, true} {
			for path, text := range initialized(t, files, forks) {
				if strings.Contains(path, "/workflows/") {
					texts[fmt.Sprintf("%s-%t-%s", name, forks, filepath.Base(path))] = []byte(strings.ReplaceAll(text, "uses: fumehood/fumehood@v1", "uses: ./"))
				}
			}
		}
	}
	if found := actionlint(t, texts); found != "" {
		t.Error(found)
	}
}

// actionlint does not look into action.yml: its steps are linted as a workflow's.
func TestE2ELintAction(t *testing.T) {
	t.Parallel()
	a := readAction(t)
	inputs := map[string]any{}
	for name, input := range a.Inputs {
		inputs[name] = map[string]any{"type": "string", "default": strings.ReplaceAll(input.Default, "${{ github.token }}", "")}
	}
	var steps []any
	for _, s := range a.Runs.Steps {
		step := map[string]any{}
		for key, value := range map[string]string{"id": s.ID, "if": s.If, "shell": s.Shell, "uses": s.Uses, "run": s.Run} {
			if value != "" {
				step[key] = value
			}
		}
		if len(s.Env) > 0 {
			step["env"] = s.Env
		}
		if len(s.With) > 0 {
			step["with"] = s.With
		}
		steps = append(steps, step)
	}
	text, err := yaml.Marshal(map[string]any{
		"on":   map[string]any{"workflow_call": map[string]any{"inputs": inputs}},
		"jobs": map[string]any{"action": map[string]any{"runs-on": "ubuntu-24.04", "steps": steps}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if found := actionlint(t, map[string][]byte{"action-as-workflow.yml": text}); found != "" {
		t.Errorf("%s\n%s", found, text)
	}
}

func TestE2ELintScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../.github/action/*.sh")
	if err != nil || len(files) != 2 {
		t.Fatalf("found %q: %v", files, err)
	}
	out, err := exec.CommandContext(t.Context(), "shellcheck", append(files, "../../.ci/run")...).CombinedOutput()
	if err != nil {
		t.Errorf("shellcheck: %v\n%s", err, out)
	}
}
