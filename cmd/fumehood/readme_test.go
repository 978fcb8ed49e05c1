// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// block returns the README's only fenced block of a language.
func block(t *testing.T, readme, language string) string {
	t.Helper()
	found := regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(readme, -1)
	if len(found) != 1 {
		t.Fatalf("README has %d %s blocks, want one", len(found), language)
	}
	return found[0][1]
}

// Every snippet of the README is run, and prints what the README says. A line of
// three dots stands for any lines.
func TestReadme(t *testing.T) {
	data, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(data)
	dir := t.TempDir()
	bin := asCommand(t)
	for name, text := range map[string]string{
		"plan.yaml": block(t, readme, "yaml"), "policy/acme.rego": block(t, readme, "rego"), "main.go": "package main\n\nfunc main() {}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	session := block(t, readme, "console") + "$ fumehood check --plan plan.yaml --policy policy\nallow count\n...\n"
	for _, step := range strings.Split("\n"+session, "\n$ ")[1:] {
		command, want, _ := strings.Cut(step, "\n")
		cmd := exec.Command("bash", "-c", command)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "FUMEHOOD_CACHE="+builtCache(t), "XDG_STATE_HOME="+filepath.Join(dir, "state"), asFumehood+"=1")
		out, _ := cmd.Output()
		checkSaid(t, command, want, string(out))
	}
}

// asCommand makes a folder in which this test binary is called fumehood.
func asCommand(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "fumehood")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func checkSaid(t *testing.T, command, want, got string) {
	t.Helper()
	pattern := regexp.QuoteMeta(strings.TrimRight(want, "\n") + "\n")
	pattern = strings.ReplaceAll(pattern, `\.\.\.`+"\n", "(?s:.*)")
	if want == "" {
		pattern = ""
	}
	if !regexp.MustCompile("^" + pattern + "$").MatchString(got) {
		t.Errorf("$ %s\nREADME says:\n%s\nit printed:\n%s", command, want, got)
	}
}

// The two commands that the README names are the ones that work here.
func TestReadmeCommands(t *testing.T) {
	data, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"go run ./cmd/fumehood demo", "go test ./..."} {
		if !strings.Contains(string(data), "```\n"+command+"\n```") {
			t.Errorf("README does not name %q in a block of its own", command)
		}
	}
	ci, err := os.ReadFile("../../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(ci), "go test ./...") {
		t.Error(".ci/run does not run README's test command")
	}
}
