// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// block returns the README's only fenced block of a language. For YAML, it is the plan.
func block(t *testing.T, readme, language string) string {
	t.Helper()
	found := blocks(readme, language)
	if len(found) != 1 {
		t.Fatalf("README has %d %s blocks, want one", len(found), language)
	}
	return found[0]
}

func blocks(readme, language string) (texts []string) {
	found := regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(readme, -1)
	for _, b := range found {
		if !strings.Contains(b[1], "uses:") {
			texts = append(texts, b[1])
		}
	}
	return texts
}

// The workflow of the README is the one-job example, which the end-to-end tests run on
// a real runner, without the optional parts: comments, concurrency and the timeout.
func TestReadmeWorkflow(t *testing.T) {
	readme := string(readFile(t, "../../README.md"))
	found := regexp.MustCompile("(?ms)^```yaml\n(name: .*?)^```$").FindStringSubmatch(readme)
	if found == nil {
		t.Fatal("README has no workflow")
	}
	var shown, example map[string]any
	if err := yaml.Unmarshal([]byte(found[1]), &shown); err != nil {
		t.Fatal(err)
	}
	readYAML(t, "../../.github/examples/one-job.yml", &example)
	delete(example, "concurrency")
	delete(example["jobs"].(map[string]any)["fumehood"].(map[string]any), "timeout-minutes")
	if diff := cmp.Diff(example, shown); diff != "" {
		t.Errorf("README's workflow is not one-job.yml (-example +README):\n%s", diff)
	}
}

// The comment of the README is one that the tests of pkg/report compare byte for byte.
func TestReadmeComment(t *testing.T) {
	readme := string(readFile(t, "../../README.md"))
	golden := html.UnescapeString(string(readFile(t, "../../testdata/report/mixed.md")))
	golden = regexp.MustCompile(`<[^>]*>`).ReplaceAllString(golden, "")
	golden = strings.ReplaceAll(golden, "\u00a0", " ")
	pieces := 0
	for line := range strings.Lines(readme) {
		quoted, ok := strings.CutPrefix(strings.TrimSpace(line), "> ")
		if !ok || strings.HasPrefix(quoted, "| ---") {
			continue
		}
		for _, piece := range regexp.MustCompile(`<br>|\*\*|\||`+"`").Split(quoted, -1) {
			if piece = strings.TrimSpace(piece); piece == "" {
				continue
			}
			if pieces++; !strings.Contains(golden, piece) {
				t.Errorf("testdata/report/mixed.md has nowhere: %s", piece)
			}
		}
	}
	if pieces < 20 {
		t.Errorf("README quotes %d pieces of a comment", pieces)
	}
}

// Every link of the three main pages leads to a file.
func TestPagesLinks(t *testing.T) {
	for _, page := range []string{"README.md", ".github/CONTRIBUTING.md", ".github/SECURITY.md"} {
		path := filepath.Join("../..", page)
		for _, found := range regexp.MustCompile(`\]\(([^):]+)\)`).FindAllStringSubmatch(string(readFile(t, path)), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), found[1])); err != nil {
				t.Errorf("%s: a link leads nowhere: %v", page, err)
			}
		}
	}
}

// Every snippet of the README is run, and prints what the README says. A line of
// three dots matches any lines.
func TestReadme(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(data)
	dir := t.TempDir()
	bin := asCommand(t)
	for name, text := range map[string]string{
		"plan.yaml": block(t, readme, "yaml"), "acme.rego": block(t, readme, "rego"), "policy/acme.rego": block(t, readme, "rego"),
		"main.go": "package main\n\nfunc main() {}\n", "go.mod": "module example.com/x\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	session := strings.Join(blocks(readme, "console"), "") + "$ fumehood check --plan plan.yaml --policy policy\nallow count\n...\n"
	for _, step := range strings.Split("\n"+session, "\n$ ")[1:] {
		command, want, _ := strings.Cut(step, "\n")
		cmd := exec.Command("bash", "-c", command)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "FUMEHOOD_CACHE="+builtCache(t), "XDG_STATE_HOME="+filepath.Join(dir, "state"), asFumehood+"=1")
		out, _ := cmd.Output()
		checkSaid(t, command, want, string(out))
	}
}

// asCommand makes a directory in which this test binary is called fumehood.
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

// The two commands in the README work here.
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
