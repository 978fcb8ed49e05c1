// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// configurations are all files of .github that GitHub or a user's repository runs, and
// action.yml, by name.
func configurations(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{"../../action.yml", "../../.github/*.yml", "../../.github/*/*.yml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("nothing is %s: %v", pattern, err)
		}
		for _, file := range files {
			texts[strings.TrimPrefix(file, "../../")] = string(jobtest.ReadFile(t, file))
		}
	}
	return texts
}

// Pins have the form that Dependabot and Renovate update: a commit, and its version in a
// comment. An action has the same pin everywhere.
func TestPins(t *testing.T) {
	line := regexp.MustCompile(`(?m)^[^#\n]*\buses: (\S+)(.*)$`)
	pin := regexp.MustCompile(`^ # v\d+(\.\d+){1,2}$`)
	pins := map[string]string{}
	for name, text := range configurations(t) {
		for _, m := range line.FindAllStringSubmatch(text, -1) {
			action, commit, _ := strings.Cut(m[1], "@")
			if action == "./" || strings.HasPrefix(action, "fumehood/fumehood") {
				continue // TestWorkflows
			}
			if !pin.MatchString(m[2]) {
				t.Errorf("%s: %s has no version: %q", name, m[1], m[2])
			}
			repository := strings.Join(strings.SplitN(action, "/", 3)[:2], "/") // of actions/cache/restore
			if now := commit + m[2]; pins[repository] == "" {
				pins[repository] = now
			} else if pins[repository] != now {
				t.Errorf("%s: %s is pinned to %s, elsewhere to %s", name, repository, now, pins[repository])
			}
		}
	}
	for _, action := range []string{"actions/checkout", "actions/cache", "actions/attest-build-provenance"} {
		if pins[action] == "" {
			t.Errorf("no pin of %s was read", action)
		}
	}
}

// audited are the audits of zizmor's documentation that CONTRIBUTING answers.
var audited = strings.Fields(`adhoc-packages anonymous-definition archived-uses artipacked bot-conditions cache-poisoning concurrency-limits
	dangerous-triggers dependabot-cooldown dependabot-execution excessive-permissions forbidden-uses github-app github-env
	hardcoded-container-credentials impostor-commit insecure-commands known-vulnerable-actions misfeature obfuscation
	overprovisioned-secrets ref-confusion ref-version-mismatch secrets-inherit secrets-outside-env self-hosted-runner
	self-repository stale-action-refs superfluous-actions template-injection undocumented-permissions unpinned-images
	unpinned-tools unpinned-uses unredacted-secrets unsound-condition unsound-contains use-trusted-publishing`)

// CONTRIBUTING answers each audit once, and an ignore comment names an audit and its reason.
func TestAudits(t *testing.T) {
	page := string(jobtest.ReadFile(t, "../../.github/CONTRIBUTING.md"))
	answered := map[string]int{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[a-z`, -]+`) \\| .").FindAllStringSubmatch(page, -1) {
		for _, name := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(row[1], -1) {
			answered[name[1]]++
		}
	}
	for _, name := range audited {
		if answered[name] != 1 {
			t.Errorf("CONTRIBUTING answers %s %d times", name, answered[name])
		}
	}
	ignore := regexp.MustCompile(`zizmor: ?([^\n]*)`)
	form := regexp.MustCompile(`^ignore\[([a-z-]+)\] \S.{10,}$`)
	for name, text := range configurations(t) {
		for _, m := range ignore.FindAllStringSubmatch(text, -1) {
			if f := form.FindStringSubmatch(m[1]); f == nil || !slices.Contains(audited, f[1]) {
				t.Errorf("%s: %q has no audit or no reason", name, m[1])
			}
		}
	}
}

// What CONTRIBUTING says of the files' text.
func TestAuditedText(t *testing.T) {
	refused := regexp.MustCompile(`GITHUB_ENV|GITHUB_PATH|ACTIONS_ALLOW_UNSECURE_COMMANDS|secrets: inherit|toJSON\(secrets|fromJSON\(secrets|self-hosted\n|-latest\n|\n\s+(container|services):|if: [|>][-+]?\n\s+\$\{\{|insecure-external-code-execution|uses: [^\n]*(//|/\.\.?/)`)
	permission := regexp.MustCompile(`(?m)^\s+([a-z-]+): (read|write)( .*)?$`)
	for name, text := range configurations(t) {
		if found := refused.FindString(text); found != "" {
			t.Errorf("%s has %q", name, found)
		}
		for _, m := range permission.FindAllStringSubmatch(text, -1) {
			if m[1]+m[2] != "contentsread" && !regexp.MustCompile(`^ # \S.{8,}`).MatchString(m[3]) {
				t.Errorf("%s: no reason for %s: %s", name, m[1], m[2])
			}
			if m[1] == "contents" && m[2] == "write" && name != ".github/workflows/release.yml" {
				t.Errorf("%s can write contents", name)
			}
		}
		if name == "action.yml" || name == ".github/dependabot.yml" {
			continue
		}
		if !strings.Contains("\n"+text, "\nname: ") || !strings.Contains(text, "concurrency:") && !strings.Contains(text, "uses: fumehood/fumehood/.github/workflows/") {
			t.Errorf("%s has no name or no concurrency group", name)
		}
		if strings.HasPrefix(name, ".github/workflows/") && !strings.HasPrefix(name, ".github/workflows/call-") && strings.Contains(text, "secrets.") {
			t.Errorf("%s has secrets", name)
		}
	}
}

// The job that publishes and the one that moves the tag can write, and run no code of the
// repository: no checkout, not the action, and no file of it.
func TestReleasePermissions(t *testing.T) {
	var w workflow
	readYAML(t, "../../.github/workflows/release.yml", &w)
	got := map[string]map[string]string{}
	for name, job := range w.Jobs {
		got[name] = job.Permissions
		if job.Permissions["contents"] == "read" {
			continue
		}
		for _, s := range job.Steps {
			if strings.Contains(s.Uses, "checkout") || s.fumehood() || regexp.MustCompile(`\bgo |\./|bash |\bsh `).MatchString(s.Run) {
				t.Errorf("%s can write, and runs code: %s%s", name, s.Uses, s.Run)
			}
		}
	}
	want := map[string]map[string]string{"build": {"contents": "read"}, "publish": {"contents": "write", "id-token": "write", "attestations": "write"}, "major": {"contents": "write"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("permissions (-want +got):\n%s", diff)
	}
}

func TestDependabot(t *testing.T) {
	var d struct {
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directory   string
			Directories []string
			Cooldown    map[string]int
		}
	}
	readYAML(t, "../../.github/dependabot.yml", &d)
	got := map[string]string{}
	for _, u := range d.Updates {
		got[u.Ecosystem] = fmt.Sprintf("%s%v%d", u.Directory, u.Directories, u.Cooldown["default-days"])
	}
	if want := map[string]string{"github-actions": "[/ /.github/examples]7", "gomod": "/[]7"}; !maps.Equal(got, want) {
		t.Errorf("dependabot updates %q, want %q", got, want)
	}
}

// The Marketplace publishes the action only if these are valid.
func TestMarketplace(t *testing.T) {
	var a struct {
		Name, Description, Author string
		Branding                  struct{ Icon, Color string }
	}
	readYAML(t, "../../action.yml", &a)
	colors := []string{"white", "black", "yellow", "blue", "green", "orange", "red", "purple", "gray-dark"}
	if a.Name == "" || a.Author == "" || a.Branding.Icon != "shield" || !slices.Contains(colors, a.Branding.Color) {
		t.Errorf("the Marketplace refuses %+v", a)
	}
	if n := len(a.Description); n < 40 || n >= 125 || strings.Contains(a.Description, "\n") {
		t.Errorf("the description has %d characters, want fewer than 125 in one line: %q", n, a.Description)
	}
}

// Only build.yml and the examples layers.yml and results.yml save a cache, and they run merged code only. Workflows that restore it do so by
// the exact commit of the action, except for layers, which what init writes restores on pull requests. Releases,
// examples and the action restore none.
func TestCacheRules(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"save on a pull request", "on: {push: {branches: [main]}, pull_request: }\njobs: {j: {steps: [{uses: actions/cache/save@x}]}}", "saves"},
		{"save on every branch", "on: push\njobs: {j: {steps: [{uses: actions/cache/save@x}]}}", "saves"},
		{"save on tags", "on: {push: {tags: [v1]}}\njobs: {j: {steps: [{uses: actions/cache/save@x}]}}", "saves"},
		{"both at once", "on: {push: {branches: [main]}}\njobs: {j: {steps: [{uses: actions/cache@x}]}}", "restores and saves"},
		{"a release", "on: {push: {tags: [v1]}}\njobs: {j: {steps: [{uses: actions/cache/restore@x, with: {key: 'fumehood-source-${{ github.sha }}-${{ runner.arch }}'}}]}}", "restores"},
		{"layers on a push", "on: {push: {branches: [main]}}\njobs: {j: {steps: [{uses: actions/cache/restore@x, with: {path: '${{ runner.temp }}/fumehood-layers', key: fumehood-layers-x}}]}}", "restores"},
		{"any commit", "on: pull_request\njobs: {j: {steps: [{uses: actions/cache/restore@x, with: {key: x, restore-keys: fumehood-}}]}}", "key"},
		{"the pull request's commit", "on: pull_request\njobs: {j: {steps: [{uses: actions/cache/restore@x, with: {key: 'fumehood-source-${{ github.event.pull_request.head.sha }}-${{ runner.arch }}'}}]}}", "key"},
	} {
		w := workflow{file: "workflows/x.yml"}
		if err := yaml.Unmarshal([]byte(c.text), &w); err != nil {
			t.Fatal(err)
		}
		if got := cacheProblem(w, w.Jobs["j"].Steps[0]); !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	w := workflow{file: "examples/x.yml", On: "pull_request"}
	if got := cacheProblem(w, workflowStep{Uses: "actions/cache/restore@x"}); got == "" {
		t.Error("an example may restore a cache")
	}
}

// cacheProblem returns what is wrong with a step of a workflow that uses a cache.
func cacheProblem(w workflow, s workflowStep) string {
	const durations, layers = "fumehood-durations", "fumehood-layers"
	if s.With["path"] == "${{ runner.temp }}/"+durations && strings.HasPrefix(s.With["key"], durations+"-") {
		return "" // data that only decides which job runs a command: see split.ReadDurations
	}
	restored := strings.HasPrefix(s.Uses, "actions/cache/restore@") && slices.Equal(w.events(), []string{"pull_request"})
	if restored && s.With["path"] == "${{ runner.temp }}/"+layers && strings.HasPrefix(s.With["key"], layers+"-") {
		return "" // verified, and used where its set-up would read the same: see docs/CACHE.md
	}
	events, _ := w.On.(map[string]any)
	push, _ := events["push"].(map[string]any)
	switch name, _, _ := strings.Cut(s.Uses, "@"); {
	case name == "actions/cache":
		return "restores and saves a cache: what a pull request wrote could be saved again"
	case name == "actions/cache/save":
		if !slices.Equal(w.events(), []string{"push"}) || len(push) != 1 || fmt.Sprint(push["branches"]) != "[main]" {
			return "saves a cache on other events than a push to main"
		}
	case name == "actions/cache/restore":
		if !strings.HasPrefix(w.file, "workflows/") || events["push"] != nil {
			return "restores a cache: only fumehood's own workflows may, and none that builds"
		}
		commits := []string{"fumehood-source-${{ github.event.pull_request.base.sha }}-${{ runner.arch }}", "fumehood-source-${{ github.sha }}-${{ runner.arch }}"}
		if s.With["restore-keys"] != "" || !slices.Contains(commits, s.With["key"]) {
			return "has another key than the commit of the action"
		}
	}
	return ""
}
