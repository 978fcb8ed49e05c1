// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"html"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
)

// A firstDay is a small project with dependencies.
type firstDay struct {
	files   map[string]string
	locked  []string // makes the lock files, as a maintainer did
	test    string
	comment []string
	forks   bool // the pair for forks is played also without FUMEHOOD_SUITES=all
}

const (
	mochaTest    = "const assert = require('assert')\nit('adds', () => assert.equal(1 + 1, 2))\n"
	pytestTest   = "def test_adds():\n    assert 1 + 1 == 2\n"
	fromWheels   = "--no-index\n--find-links wheels\n"
	goModule2    = "module example.com/x\n\ngo 1.24\n\nrequire (\n\tgithub.com/google/go-cmp v0.7.0\n\tgolang.org/x/sync v0.16.0\n)\n"
	goModuleTest = "package x\n\nimport (\n\t\"testing\"\n\n\t\"github.com/google/go-cmp/cmp\"\n\t\"golang.org/x/sync/errgroup\"\n)\n\nfunc TestX(t *testing.T) {\n\tvar g errgroup.Group\n\tg.Go(func() error { return nil })\n\tif err := g.Wait(); err != nil || cmp.Diff(1, 1) != \"\" {\n\t\tt.Fatal(err)\n\t}\n}\n"
)

// mocha returns a Node.js project whose tests need mocha, with more fields of package.json.
func mocha(more string) map[string]string {
	return map[string]string{
		"package.json":   `{"name": "x", "version": "1.0.0", "license": "MIT", "scripts": {"test": "mocha"}, "devDependencies": {"mocha": "^10.0.0"}` + more + `}`,
		"test/a.js":      mochaTest,
		"index.js":       "module.exports = {}\n",
		".gitattributes": "* -text\n",
	}
}

// withWheels adds the wheels of pytest to a Python project: no Python index is reachable
// where this test runs.
func withWheels(t *testing.T, files map[string]string) map[string]string {
	t.Helper()
	for name, data := range wheels(t, pytestWheels...) {
		files["wheels/"+name] = data
	}
	files[".gitattributes"] = "* -text\n"
	return files
}

func firstDays(t *testing.T) map[string]firstDay {
	t.Helper()
	npmLock := []string{"npm", "install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund"}
	workspaces := mocha(`, "private": true, "workspaces": ["packages/*"]`)
	workspaces["packages/a/package.json"] = `{"name": "a", "version": "1.0.0", "gypfile": true, "scripts": {"install": "node-gyp rebuild"}}`
	workspaces["packages/a/binding.gyp"] = `{"targets": [{"target_name": "a", "sources": ["a.c"]}]}`
	workspaces["packages/a/a.c"] = "#include <node_api.h>\nstatic napi_value Init(napi_env env, napi_value exports) {\n\tnapi_value v;\n\tnapi_create_int32(env, 42, &v);\n\treturn v;\n}\nNAPI_MODULE(NODE_GYP_MODULE_NAME, Init)\n"
	workspaces["test/b.js"] = "it('loads an addon', () => require('assert').equal(require('a/build/Release/a.node'), 42))\n"
	return map[string]firstDay{
		"npm":              {mocha(""), npmLock, "npm test", []string{"setup-npm", "npm ci", "1 passing"}, true},
		"npm of yesterday": {mocha(""), append(npmLock, "--lockfile-version", "1"), "npm test", []string{"setup-npm", "npm ci", "1 passing"}, false},
		"npm workspaces":   {workspaces, npmLock, "npm test", []string{"setup-npm", "npm ci", "2 passing"}, false},
		"pnpm":             {mocha(`, "packageManager": "pnpm@9.15.9"`), []string{"npx", "--yes", "pnpm@9.15.9", "install", "--lockfile-only"}, "pnpm test", []string{"setup-get-pnpm", "pnpm@9.15.9", "pnpm install --frozen-lockfile", "1 passing"}, true},
		"yarn 1":           {mocha(`, "packageManager": "yarn@1.22.22"`), []string{"npx", "--yes", "yarn@1.22.22", "install", "--ignore-scripts"}, "yarn test", []string{"setup-get-yarn", "yarn@1.22.22", "--frozen-lockfile", "1 passing"}, false},
		"yarn 4":           {mocha(`, "packageManager": "yarn@4.9.2"`), []string{"npx", "--yes", "@yarnpkg/cli-dist@4.9.2", "install", "--mode", "update-lockfile"}, "yarn test", []string{"setup-get-yarn", "cli-dist@4.9.2", "yarn install --immutable", "1 passing"}, false},
		"go":               {map[string]string{"go.mod": goModule2, "x_test.go": goModuleTest}, []string{"go", "mod", "tidy"}, "go test ./...", []string{"setup-go", "go mod download", "example.com/x"}, false},
		"requirements.txt": {withWheels(t, map[string]string{"requirements.txt": fromWheels + "pytest\n", "test_a.py": pytestTest}), []string{"true"}, "pytest", []string{"setup-venv", "setup-pip", "1 passed"}, true},
		"pyproject and src": {withWheels(t, map[string]string{
			"requirements.txt":  fromWheels,
			"pyproject.toml":    "[build-system]\nrequires = [\"setuptools>=61\"]\nbuild-backend = \"setuptools.build_meta\"\n\n[project]\nname = \"x\"\nversion = \"1.0\"\ndependencies = [\"attrs\"]\n\n[project.optional-dependencies]\ntest = [\"pytest\"]\n",
			"src/x/__init__.py": "import attr\n\ntwo = 2\n", "tests/test_x.py": "import x\n\n\ndef test_x():\n    assert x.two == 2\n",
		}), []string{"true"}, "python -m pytest", []string{"setup-venv", "setup-pip", "-e '.[test]'", "1 passed"}, false},
	}
}

// The README's workflow is green on the first run, without any configuration, on small
// projects with dependencies. So is the pair of workflows for forks; without
// FUMEHOOD_SUITES=all it is played for some of them.
func TestE2EFirstDay(t *testing.T) {
	t.Parallel()
	for _, name := range keysOneIn(t, len(firstDays(t)), len(firstDays(t)), firstDays(t)) {
		project := firstDays(t)[name]
		t.Run(name, func(t *testing.T) {
			files := lock(t, project.files, project.locked)
			s := newStage(t, false, files, nil)
			if project.test != "npm test" { // the README's
				s.edit("one-job.yml", "run: npm test", "run: "+project.test)
			}
			r := s.play("one-job.yml", "pull_request", s.EventPayload("pull_request.opened", nil))
			if r.code != 0 {
				t.Errorf("exit %d\n%s", r.code, r.log)
			}
			shown := html.UnescapeString(strings.ReplaceAll(s.BotComment().Body, "<wbr>", ""))
			jobtest.CheckContains(t, "comment", shown, append(project.comment, s.Head[:12])...)

			if !project.forks && os.Getenv("FUMEHOOD_SUITES") != "all" {
				return
			}
			f := newStage(t, true, files, nil)
			f.edit("fumehood.yml", "run: go vet ./...", "run: cat notes/new.txt", "run: go test ./...", "run: "+project.test)
			f.SetPermissions("contents:read", "pull_requests:read")
			if r := f.play("fumehood.yml", "pull_request", f.EventPayload("pull_request.opened.fork", nil)); r.code != 0 {
				t.Fatalf("from a fork: exit %d\n%s", r.code, r.log)
			}
			f.tellAll(t, "success", project.comment...)
		})
	}
}

// lock returns files with those that a package client adds.
func lock(t *testing.T, files map[string]string, command []string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v: %s", command, err, out)
	}
	all := maps.Clone(files)
	for _, name := range []string{"package-lock.json", "pnpm-lock.yaml", "yarn.lock", "go.mod", "go.sum"} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			all[name] = string(data)
		}
	}
	return all
}
