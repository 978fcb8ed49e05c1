// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The README's workflow is green on the first run, without any configuration, on small
// projects with dependencies that the machine's own registries serve. So is the pair of
// workflows for forks.
func TestFirstDay(t *testing.T) {
	for name, project := range map[string]struct {
		files   map[string]string
		locked  []string // makes the lock files, as a maintainer did
		test    string
		comment []string
	}{
		"npm": {map[string]string{
			"package.json":   `{"name": "x", "version": "1.0.0", "scripts": {"test": "mocha"}, "devDependencies": {"mocha": "^10.0.0"}}`,
			"test/a.js":      "const assert = require('assert')\nit('adds', () => assert.equal(1 + 1, 2))\n",
			"index.js":       "module.exports = {}\n",
			".gitattributes": "* -text\n",
		}, []string{"npm", "install", "--package-lock-only", "--no-audit", "--no-fund"}, "npm test", []string{"setup-npm", "npm ci", "1 passing"}},
		"go": {map[string]string{
			"go.mod":    "module example.com/x\n\ngo 1.24\n\nrequire (\n\tgithub.com/google/go-cmp v0.7.0\n\tgolang.org/x/sync v0.16.0\n)\n",
			"x_test.go": "package x\n\nimport (\n\t\"testing\"\n\n\t\"github.com/google/go-cmp/cmp\"\n\t\"golang.org/x/sync/errgroup\"\n)\n\nfunc TestX(t *testing.T) {\n\tvar g errgroup.Group\n\tg.Go(func() error { return nil })\n\tif err := g.Wait(); err != nil || cmp.Diff(1, 1) != \"\" {\n\t\tt.Fatal(err)\n\t}\n}\n",
		}, []string{"go", "mod", "tidy"}, "go test ./...", []string{"setup-go", "go mod download", "example.com/x"}},
	} {
		t.Run(name, func(t *testing.T) {
			files := lock(t, project.files, project.locked)
			s := newStage(t, false, files, nil)
			if project.test != "npm test" { // the README's
				s.edit("one-job.yml", "run: npm test", "run: "+project.test)
			}
			r := s.play("one-job.yml", "pull_request", s.event("pull_request.opened", nil))
			if r.code != 0 {
				t.Errorf("exit %d\n%s", r.code, r.log)
			}
			want(t, "comment", s.comment().Body, append(project.comment, s.head[:12])...)

			if name != "npm" { // one is enough for the second pair of workflows
				return
			}
			f := newStage(t, true, files, nil)
			f.edit("fumehood.yml", "run: go vet ./...", "run: cat notes/new.txt", "run: go test ./...", "run: "+project.test)
			f.permit("contents:read", "pull_requests:read")
			if r := f.play("fumehood.yml", "pull_request", f.event("pull_request.opened.fork", nil)); r.code != 0 {
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
	for _, name := range []string{"package-lock.json", "go.mod", "go.sum"} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			all[name] = string(data)
		}
	}
	return all
}
