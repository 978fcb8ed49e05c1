// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package setup

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// project writes files to a new directory and returns it.
func project(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// run runs a command in dir with variables that come after the test's own.
func run(t *testing.T, dir string, env []string, argv ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return string(out)
}

// detected runs the detected steps natively, in order, with the Setup's variables.
func detected(t *testing.T, dir string, env []string) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	s := Detector{}.Detect(root.FS())
	if len(s.Steps) == 0 || len(s.Notes) > 0 {
		t.Fatalf("%d steps, notes %v", len(s.Steps), s.Notes)
	}
	for name, value := range s.Env {
		env = append(env, name+"="+value)
	}
	for _, step := range s.Steps {
		argv := step.Argv
		if step.Run != "" {
			argv = []string{"sh", "-c", step.Run}
		}
		run(t, filepath.Join(dir, step.Cwd), env, argv...)
	}
}

// After set-up the first "go test" needs no network, and compiles none of its dependencies.
func TestE2EGoNatively(t *testing.T) {
	sums, err := os.ReadFile("../../../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	dir := project(t, map[string]string{
		"go.mod":    "module example.com/x\n\ngo 1.26\n\nrequire (\n\tgithub.com/agnivade/levenshtein v1.2.1\n\tgithub.com/google/go-cmp v0.7.0\n)\n",
		"go.sum":    string(sums),
		"x.go":      "package x\n\nimport \"github.com/agnivade/levenshtein\"\n\nfunc Distance(a, b string) int { return levenshtein.ComputeDistance(a, b) }\n",
		"x_test.go": "package x\n\nimport (\n\t\"testing\"\n\n\t\"github.com/google/go-cmp/cmp\"\n)\n\nfunc TestDistance(t *testing.T) {\n\tif d := cmp.Diff(1, Distance(\"ab\", \"ac\")); d != \"\" {\n\t\tt.Error(d)\n\t}\n}\n",
	})
	caches := t.TempDir()
	env := []string{"GOMODCACHE=" + filepath.Join(caches, "mod"), "GOCACHE=" + filepath.Join(caches, "build"), "GOFLAGS=", "GOWORK=off"}
	t.Cleanup(func() {
		exec.Command("chmod", "-R", "u+w", caches).Run() // the module cache is read-only
	})
	detected(t, dir, env)
	out := run(t, dir, append(env, "GOPROXY=off"), "go", "test", "-x", "./...")
	if strings.Contains(out, "-p github.com/") || strings.Contains(out, "-p fmt ") {
		t.Errorf("go test compiled dependencies again:\n%s", out)
	}
	if !strings.Contains(out, "ok  \texample.com/x") {
		t.Errorf("go test printed:\n%s", out)
	}
}

// After set-up "npm test" finds the test runner of the lock file, without a network.
func TestE2ENPMNatively(t *testing.T) {
	dir := project(t, map[string]string{
		"package.json": `{"name":"x","version":"1.0.0","scripts":{"test":"mocha"},"devDependencies":{"mocha":"10.8.2"}}`,
	})
	if err := os.Mkdir(filepath.Join(dir, "test"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "test", "x.js"), []byte("const a = require('assert'); it('adds', () => a.equal(1 + 1, 2));\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	env := []string{"npm_config_cache=" + t.TempDir()}
	run(t, dir, env, "npm", "install", "--package-lock-only", "--no-audit", "--no-fund") // what its maintainer did
	detected(t, dir, env)
	if out := run(t, dir, append(env, "npm_config_offline=true"), "npm", "test"); !strings.Contains(out, "1 passing") {
		t.Errorf("npm test printed:\n%s", out)
	}
}
