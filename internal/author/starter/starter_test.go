// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/fumehood/fumehood/internal/github/action"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func tree(pairs ...string) fstest.MapFS {
	root := fstest.MapFS{}
	for i := 0; i+1 < len(pairs); i += 2 {
		root[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1]), Mode: 0o644}
	}
	return root
}

const script = `{"scripts":{"test":"mocha"}}`

var repositories = map[string]struct {
	root fstest.MapFS
	want []string // tests, each after its directory
}{
	"empty":              {tree(), nil},
	"go":                 {tree("go.mod", "module x"), []string{"go test ./..."}},
	"go workspace":       {tree("go.work", "go 1.24\nuse (\n\t./a\n\t./b\n\t../c\n)\nuse ./d\n"), []string{"go test ./a/... ./b/... ./d/..."}},
	"npm":                {tree("package.json", script, "package-lock.json", "{}"), []string{"npm test"}},
	"npm without a test": {tree("package.json", `{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}`), nil},
	"not JSON":           {tree("package.json", "{"), nil},
	"pnpm":               {tree("package.json", script, "pnpm-lock.yaml", ""), []string{"pnpm test"}},
	"yarn by pin":        {tree("package.json", `{"scripts":{"test":"x"},"packageManager":"yarn@4.1.0"}`, "package-lock.json", "{}"), []string{"yarn test"}},
	"another manager":    {tree("package.json", `{"scripts":{"test":"x"},"packageManager":"sudo rm@4.1.0"}`), []string{"npm test"}},
	"pytest":             {tree("pyproject.toml", "[tool.pytest.ini_options]\n"), []string{"python3 -m pytest"}},
	"pytest required":    {tree("setup.py", "", "requirements-dev.txt", "pytest\n"), []string{"python3 -m pytest"}},
	"unittest":           {tree("setup.py", "setup()", "tests/test_x.py", ""), []string{"python3 -m unittest"}},
	"python, no tests":   {tree("setup.py", "setup()"), nil},
	"rust":               {tree("Cargo.toml", "[package]\nname = \"x\"\n"), []string{"cargo test"}},
	"maven":              {tree("pom.xml", "<project/>"), []string{"mvn -B -o test"}},
	"gradle":             {tree("build.gradle.kts", ""), []string{"gradle --no-daemon --offline test"}},
	"rspec":              {tree("Gemfile", "", "spec/x_spec.rb", ""), []string{"bundle exec rspec"}},
	"rake":               {tree("Gemfile", "", "Rakefile", ""), []string{"bundle exec rake test"}},
	"make":               {tree("Makefile", "all:\n\ntest: all\n\t./check\n"), []string{"make test"}},
	"make, a variable":   {tree("Makefile", "test := x\n"), nil},
	"make and go":        {tree("Makefile", "test:\n\tgo test\n", "go.mod", "module x"), []string{"go test ./..."}},
	"several": {tree("go.mod", "module x\nrequire y v1.0.0\n", "web/package.json", `{"scripts":{"test":"x"},"dependencies":{"y":"1"}}`, "web/package-lock.json", "{}", "vcpkg.json", ""),
		[]string{"go test ./...", "web: npm test"}},
	"monorepo": {tree("apps/web/package.json", script, "apps/web/package-lock.json", "{}", "services/api/go.mod", "module x", "services/api/v2/go.mod", "module y", "docs/package.json", script, "docs/yarn.lock", ""),
		[]string{"apps/web: npm test", "services/api: go test ./...", "services/api/v2: go test ./..."}},
	"members of a workspace": {tree("package.json", `{"workspaces":["packages/*"],"packageManager":"pnpm@9.1.0"}`, "pnpm-lock.yaml", "", "packages/a/package.json", script, "packages/b/package.json", "{}", "packages/c-d/package.json", script, "packages/c/d/package.json", script),
		[]string{"packages/a: pnpm test", "packages/c-d: pnpm test", "packages/c/d: pnpm test"}},
	"a workspace with a test": {tree("package.json", `{"workspaces":["packages/*"],"scripts":{"test":"x"}}`, "package-lock.json", "", "packages/a/package.json", script, "e2e/package.json", script, "e2e/package-lock.json", "", "Cargo.toml", "[workspace]\n", "crates/a/Cargo.toml", ""),
		[]string{"npm test", "cargo test", "e2e: npm test"}},
	"deep modules of go.work": {tree("go.work", "use (\n\t./services/a\n)\n", "services/a/go.mod", "module a", "tools/go.mod", "module t"), []string{"go test ./services/a/...", "tools: go test ./..."}},
	"names":                   {tree("${{ secrets.X }}/package.json", script, "${{ secrets.X }}/package-lock.json", "{}", "a b/package.json", script, "a b/package-lock.json", "{}"), nil},
}

// What is written for each repository is valid: the configuration, which is the default, and
// the plan. Its tests are the expected ones.
func TestFiles(t *testing.T) {
	for name, c := range repositories {
		t.Run(name, func(t *testing.T) {
			r := DetectRepository(c.root)
			var got []string
			for _, test := range r.Tests {
				got = append(got, strings.TrimPrefix(test.Cwd+": "+test.Run, ": "))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("tests (-want +got):\n%s", diff)
			}
			for _, forks := range []bool{false, true} {
				files := r.Files(forks)
				want := map[bool]int{false: 2, true: 3}[forks]
				layered := len(r.Setup.Steps) > 0
				if layered {
					want++
				}
				if len(files) != want {
					t.Fatalf("%d files, want %d", len(files), want)
				}
				if strings.Contains(files[1].Content, "actions/cache/restore@") != layered || strings.Contains(files[1].Content, "layers-cache: ") != layered ||
					(files[want-1].Path == layersPath) != layered {
					t.Errorf("layers are restored, or not, wrongly:\n%s", files[1].Content)
				}
				checkConfig(t, files[0].Content)
				p := planIn(t, files[1].Content)
				if want := max(1, len(c.want)); len(p.Proposals) != want {
					t.Errorf("%d proposals, want %d", len(p.Proposals), want)
				}
			}
		})
	}
}

func checkConfig(t *testing.T, text string) {
	t.Helper()
	got, problems := config.Decode([]byte(text), config.Path)
	if len(problems) > 0 {
		t.Fatalf("invalid configuration: %v\n%s", problems, text)
	}
	merged, err := config.MergeOverrides(config.Config{})
	if err != nil {
		t.Fatal(err)
	}
	now, err := config.MergeOverrides(got)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range now.Values {
		if v.Text != merged.Values[i].Text {
			t.Errorf("%s is %s, the default is %s", v.Field, v.Text, merged.Values[i].Text)
		}
	}
	// Each example in the comments is valid, too.
	example := regexp.MustCompile(`(?m)^# (limits:|  memory: |  wall: |timeout: )`).ReplaceAllString(text, "$1")
	list := regexp.MustCompile(`(?m)^#   (setup:|  - npm ci|  - argv|    timeout)`).ReplaceAllString(strings.Replace(text, "setup: auto\n", "", 1), "$1")
	for _, text := range []string{example, list} {
		if c, problems := config.Decode([]byte(text), config.Path); len(problems) > 0 || c.Limits == nil && len(c.Setup.Commands) != 2 {
			t.Errorf("invalid example: %v\n%s", problems, text)
		}
	}
}

// planIn returns the plan that the last step of a workflow gives the action.
func planIn(t *testing.T, workflow string) proposal.Plan {
	t.Helper()
	var w struct {
		Jobs map[string]struct {
			Steps []struct{ With map[string]string }
		}
	}
	if err := yaml.Unmarshal([]byte(workflow), &w); err != nil || len(w.Jobs) != 1 {
		t.Fatalf("%v\n%s", err, workflow)
	}
	with := map[string]string{}
	for _, job := range w.Jobs {
		with = job.Steps[len(job.Steps)-1].With
	}
	in, wrong := action.ReadInputs(func(name string) string {
		return map[string]string{"INPUT_PLAN": with["plan"], "INPUT_RUN": with["run"]}[name]
	})
	p, problems := plan.Decode([]byte(in.Plan), "plan.yaml")
	if len(wrong)+len(problems) > 0 || strings.Contains(in.Plan, "${{") {
		t.Fatalf("invalid plan: %v, %v\n%s", wrong, problems, workflow)
	}
	return p
}

// A file name cannot end a comment, and one that a configuration must not contain is left
// out of it.
func TestHostileNames(t *testing.T) {
	for _, name := range []string{"a\nsetup: none", "a\u2028b", "a\u202eb", "a\u3164b", "a\u0085b", "\x1b[31m", "a\xffb"} {
		checkConfig(t, DetectRepository(tree(name+"/package.json", script, name+"/package-lock.json", "{}")).Config())
	}
}

// The workflows are the examples, up to the commands and except for the comment on top.
func TestWorkflowsAreTheExamples(t *testing.T) {
	top := regexp.MustCompile(`\A(#.*\n)+`)
	for name, text := range map[string]string{"one-job.yml": oneJob, "fumehood.yml": runJob, "fumehood-report.yml": reportJob, "layers.yml": layersJob} {
		example, err := os.ReadFile("../../../.github/examples/" + name)
		if err != nil {
			t.Fatal(err)
		}
		want := top.ReplaceAll(example, nil)
		if name != "layers.yml" { // its plan is any
			want, _, _ = bytes.Cut(want, []byte("          plan: |"))
			want, _, _ = bytes.Cut(want, []byte("          run: npm test"))
		}
		if diff := cmp.Diff(string(want), top.ReplaceAllString(text, "")); diff != "" {
			t.Errorf("%s (-example +workflow):\n%s", name, diff)
		}
	}
}

// wantCode checks the code of a failure.
func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	var stop *proposal.StopError
	if !errors.As(err, &stop) || stop.Code != code {
		t.Errorf("want %s, got %v", code, err)
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	w, err := Write(dir, Options{})
	if want := []string{config.Path, runPath}; err != nil || !slices.Equal(w.Files, want) {
		t.Fatalf("wrote %q, %v; want %q", w.Files, err, want)
	}
	// An existing file is an error, and nothing else is written.
	_, err = Write(dir, Options{Forks: true})
	wantCode(t, err, "init.exists")
	if _, err := os.Lstat(filepath.Join(dir, reportPath)); err == nil {
		t.Errorf("%s was written", reportPath)
	}
	if _, err := Write(dir, Options{Forks: true, Force: true}); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, runPath)); err != nil || !strings.Contains(string(text), "phase: run") {
		t.Errorf("not overwritten: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".github/workflows/*.new")); left != nil {
		t.Errorf("left: %q", left)
	}
	_, err = Write(filepath.Join(dir, "nowhere"), Options{})
	wantCode(t, err, "init.directory")
}

// No link is followed out of the directory or written through, with force neither.
func TestLinks(t *testing.T) {
	for name, code := range map[string]string{".github": "init.not-writable", ".github/workflows": "init.not-writable", config.Path: "init.exists", runPath: "init.exists"} {
		for _, force := range []bool{false, true} {
			dir, away := t.TempDir(), t.TempDir()
			target := filepath.Join(away, "target")
			if err := os.Mkdir(target, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			_, err := Write(dir, Options{Force: force})
			wantCode(t, err, code)
			if entries, err := os.ReadDir(target); err != nil || len(entries) > 0 {
				t.Errorf("%s: written to %v: %v", name, entries, err)
			}
			if _, err := os.Lstat(filepath.Join(dir, config.Path)); err == nil && name != config.Path {
				t.Errorf("%s: the configuration was left", name)
			}
		}
	}
	// A link to a file is not read either.
	dir, away := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(away, "package.json"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(away, "package.json"), filepath.Join(dir, "package.json")); err != nil {
		t.Fatal(err)
	}
	if w, err := Write(dir, Options{}); err != nil || len(w.Tests) > 0 {
		t.Errorf("tests %q, %v", w.Tests, err)
	}
}

// The workflow installs the toolchains that the repository asks for before fumehood.
func TestSteps(t *testing.T) {
	root := tree("package.json", `{"engines":{"node":">=22.1"},"scripts":{"test":"x"}}`, "go.mod", "module x\ngo 1.24.1\n", "rust-toolchain", "1.80.0\n", ".python-version", "3.12.1\n")
	want := "    steps:\n" +
		"      - {uses: actions/setup-go@v6, with: {go-version: \"1.24\", cache: false}}\n" +
		"      - {uses: actions/setup-node@v6, with: {node-version: \"22\"}}\n" +
		"      - {uses: actions/setup-python@v6, with: {python-version: \"3.12\"}}\n"
	for _, forks := range []bool{false, true} {
		text := DetectRepository(root).Files(forks)[1].Content
		if _, after, found := strings.Cut(text, want); !found || strings.Count(text, "actions/setup-") != 3 || !strings.Contains(after, "uses: fumehood/fumehood@v1") {
			t.Errorf("forks %t:\n%s", forks, text)
		}
	}
}

// The workflow that saves layers runs on the default branch, with the toolchains of the one that restores them.
func TestLayersWorkflow(t *testing.T) {
	files := []string{"package.json", `{"engines":{"node":">=22.1"},"dependencies":{"a":"1"}}`, "package-lock.json", "{}"}
	for want, git := range map[string][]string{
		"main": nil, "trunk": {".git/HEAD", "ref: refs/heads/trunk\n"},
		"release/1": {".git/HEAD", "ref: refs/heads/x\n", ".git/refs/remotes/origin/HEAD", "ref: refs/remotes/origin/release/1\n"},
		"next":      {".git/HEAD", "ref: refs/heads/next\n", ".git/refs/remotes/origin/HEAD", "ref: refs/remotes/origin/a]\n"},
	} {
		list := DetectRepository(tree(append(git, files...)...)).Files(false)
		text := list[len(list)-1].Content
		if !strings.Contains(text, "    branches: ["+want+"]\n") || !strings.Contains(text, "actions/setup-node@v6") || strings.Contains(text, "restore@") {
			t.Errorf("%s:\n%s", want, text)
		}
	}
}
