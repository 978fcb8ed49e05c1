// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
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
	readme := string(jobtest.ReadFile(t, "../../README.md"))
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

// The pictures of comments show goldens that the tests of internal/evidence/report and internal/github/comment compare byte
// for byte, and each is shown on a page.
func TestPictures(t *testing.T) {
	pages := string(jobtest.ReadFile(t, "../../README.md")) + string(jobtest.ReadFile(t, "../../docs/COMMENT.md"))
	pictures, err := filepath.Glob("../../docs/images/*.png")
	goldens := slices.Collect(strings.Lines(string(jobtest.ReadFile(t, "../../docs/images/goldens.sha256"))))
	if err != nil || len(pictures) != len(goldens) {
		t.Fatalf("%d pictures of %d goldens: run docs/images/render.sh (%v)", len(pictures), len(goldens), err)
	}
	for _, picture := range pictures {
		if !strings.Contains(pages, "images/"+filepath.Base(picture)+")") {
			t.Errorf("no page shows %s", picture)
		}
	}
	for _, line := range goldens {
		digest, golden, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if got := fmt.Sprintf("%x", sha256.Sum256(jobtest.ReadFile(t, filepath.Join("../../docs/images", golden)))); got != digest {
			t.Errorf("the picture of %s is not of it: run docs/images/render.sh", golden)
		}
	}
}

// Every snippet of the README is run, and prints what the page says. A line of three dots matches any lines.
func TestReadme(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	readme := string(jobtest.ReadFile(t, "../../README.md"))
	dir := followPage(t, readme)
	write(t, filepath.Join(dir, "policy/acme.rego"), block(t, readme, "rego"))
	follow(t, dir, "fumehood policy test policy", "...\n")
	follow(t, dir, "fumehood check --plan plan.yaml --policy policy", "allow count\n...\n")
}

// saved is a file that a page says to save.
var saved = regexp.MustCompile("(?s)[Ss]ave this (?:plan )?as `([^`]+)`[^`]*$")

// followPage does what a page says, in its order, in a directory with a small Go module:
// it saves files and runs the commands of its sessions.
func followPage(t *testing.T, page string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module example.com/x\n\ngo 1.21\n")
	write(t, filepath.Join(dir, "main.go"), "package main\n\nfunc main() {}\n")
	ran, last := 0, 0
	for _, at := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatchIndex(page, -1) {
		before, language, text := page[last:at[0]], page[at[2]:at[3]], page[at[4]:at[5]]
		last = at[1]
		if found := saved.FindStringSubmatch(before); found != nil {
			write(t, filepath.Join(dir, found[1]), text)
		}
		if language != "console" {
			continue
		}
		for _, step := range strings.Split("\n"+text, "\n$ ")[1:] {
			command, want, _ := strings.Cut(step, "\n")
			follow(t, dir, command, want)
			ran++
		}
	}
	if ran < 5 {
		t.Errorf("the page has %d commands", ran)
	}
	return dir
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// follow runs a command of a page in dir.
func follow(t *testing.T, dir, command, want string) {
	t.Helper()
	cmd := exec.Command("bash", "-c", command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+asCommand(t)+":"+os.Getenv("PATH"), "FUMEHOOD_CACHE="+jobtest.BuildCache(t), "XDG_STATE_HOME="+filepath.Join(dir, "state"), asFumehood+"=1")
	out, _ := cmd.Output()
	checkSaid(t, command, want, string(out))
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
		t.Errorf("$ %s\nThe page says:\n%s\nit printed:\n%s", command, want, got)
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
