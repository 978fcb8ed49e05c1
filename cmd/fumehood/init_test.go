// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/author/starter"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

// repositories have files of each kind that init looks for.
var repositories = map[string]map[string]string{
	"nothing": {},
	"go":      {"go.mod": "module x\n"},
	"npm":     {"package.json": `{"scripts":{"test":"mocha"}}`},
	"pnpm":    {"package.json": `{"scripts":{"test":"mocha"}}`, "pnpm-lock.yaml": ""},
	"yarn":    {"package.json": `{"scripts":{"test":"mocha"}}`, "yarn.lock": "# yarn lockfile v1\n"},
	"python":  {"requirements.txt": "pytest\n"},
	"tests":   {"setup.py": "setup()\n", "tests/x.py": ""},
	"rust":    {"Cargo.toml": "[package]\n"},
	"maven":   {"pom.xml": "<project/>\n"},
	"gradle":  {"build.gradle": "\n"},
	"rspec":   {"Gemfile": "\n", "spec/x.rb": ""},
	"rake":    {"Gemfile": "\n", "Rakefile": ""},
	"make":    {"Makefile": "test:\n\t./check\n"},
	"below":   {"web/package.json": `{"scripts":{"test":"mocha"}}`, "web/package-lock.json": "{}", "go.mod": "module x\n"},
}

// initialized returns the repository's files after init, by their path.
func initialized(t *testing.T, files map[string]string, forks bool) map[string]string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w, err := starter.Write(dir, starter.Options{Forks: forks})
	if err != nil {
		t.Fatal(err)
	}
	wrote := map[string]string{}
	for _, name := range w.Files {
		wrote[name] = string(jobtest.ReadFile(t, filepath.Join(dir, name)))
	}
	return wrote
}

// The default policy allows the plans that init writes, and the workflows keep the rules of
// the examples.
func TestInitPlans(t *testing.T) {
	lanetest.SkipShort(t)
	for name, files := range repositories {
		for _, forks := range []bool{false, true} {
			for path, text := range initialized(t, files, forks) {
				if !strings.Contains(path, "/workflows/") {
					continue
				}
				file := filepath.Join(t.TempDir(), "workflow.yml")
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				w := workflow{file: "examples/" + filepath.Base(path)} // for checkStep
				readYAML(t, file, &w)
				for job, j := range w.Jobs {
					checkJob(t, path+": "+job, w, j)
					for _, step := range j.Steps {
						checkStep(t, path+": "+job, w, step)
						if text := step.With["plan"]; text != "" {
							wantAllowed(t, name+": "+path, text)
						}
					}
				}
			}
		}
	}
}
