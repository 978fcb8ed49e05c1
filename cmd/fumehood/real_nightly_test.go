// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// A kind is a kind of registry: a command of this machine that shows whether it can
// be reached from here, and what is done through the gateway.
type kind struct {
	reach   string
	errands []errand
}

// reachable returns the errands of the kinds that this machine's own tools can
// reach, set-up first.
func reachable(t *testing.T, kinds []kind) []errand {
	t.Helper()
	var setup, run []errand
	for _, k := range kinds {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, "bash", "-c", k.reach)
		cmd.Dir = t.TempDir()
		out, err := cmd.CombinedOutput()
		cancel()
		if err != nil {
			t.Logf("not reached from this machine: %s: %v\n%s", k.reach, err, out)
			continue
		}
		setup, run = append(setup, k.errands[0]), append(run, k.errands[1])
	}
	if len(setup) == 0 {
		t.Fatal("this machine reaches no registry at all")
	}
	return append(setup, run...)
}

// One small package of each kind is fetched through the gateway from the source that
// this machine's tools use, under the preset for it, and is used in the following
// run. No host is named here: everything follows the tools' configuration. This is
// the only test whose fumehood runs in the machine's own network.
func TestNightlyRealRegistries(t *testing.T) {
	d := newDesk(t)
	d.file(t, "ws/js/package.json", `{"name":"project","version":"1.0.0","dependencies":{"is-number":"7.0.0"},"scripts":{"test":"node -p \"require('is-number')(5)\""}}`)
	d.file(t, "ws/go/go.mod", "module project\n\ngo 1.21\n\nrequire rsc.io/quote v1.5.2\n")
	d.file(t, "ws/go/main.go", "package main\n\nimport _ \"rsc.io/quote\"\n\nfunc main() {}\n")
	d.file(t, "ws/py/requirements.txt", "toolz==0.12.0\n")
	if err := os.CopyFS(d.path("policy"), os.DirFS("../../policies/examples/registries")); err != nil {
		t.Fatal(err)
	}
	errands := reachable(t, []kind{
		{"npm view is-number@7.0.0 version", []errand{
			{id: "npm", phase: "setup", cwd: "js", network: []string{"registry:npm"}, run: "npm install", says: []string{"added 1 package"}},
			{id: "npm-test", cwd: "js", run: "npm test", says: []string{"true"}}}},
		{"pip download -q --retries 0 --no-deps toolz==0.12.0", []errand{
			{id: "pypi", phase: "setup", cwd: "py", network: []string{"registry:pypi"}, run: "python3 -m pip install --target=site -r requirements.txt", says: []string{"Successfully installed toolz-0.12.0"}},
			{id: "python", cwd: "py", run: `PYTHONPATH=site python3 -c 'import toolz; print(list(toolz.concat([[1], [2]])))'`, says: []string{"[1, 2]"}}}},
		{"GOMODCACHE=$PWD GOFLAGS=-modcacherw go mod download -json rsc.io/quote@v1.5.2", []errand{
			{id: "go", phase: "setup", cwd: "go", network: []string{"registry:go"}, run: "go mod tidy && go mod download"},
			{id: "go-list", cwd: "go", run: "go list -deps -f '{{.ImportPath}}' .", says: []string{"rsc.io/sampler"}}}},
		{"apt-get download -qq hello", []errand{
			{id: "apt", phase: "setup", network: []string{"registry:apt"}, run: "apt-get update && apt-get download hello"},
			{id: "apt-package", code: "import glob, subprocess\nsubprocess.run(['dpkg-deb', '-f', glob.glob('hello_*.deb')[0], 'Package'], check=True)", says: []string{"hello"}}}},
	})
	d.planOf(t, errands)
	before := traces()
	cmd := d.command(t.Context(), d.runArgs("it", "--hosts", d.path("policy"), "--timeout", "10m")...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if code := exitCode(t, cmd.Run()); code == exitUsage || code == exitStopped {
		t.Fatalf("fumehood run: exit code %d\n%s", code, &stderr)
	}
	report := d.report(t, "it")
	for i, s := range errands {
		s.within = time.Minute
		t.Run(s.id, func(t *testing.T) { s.check(t, report.Records[i]) })
	}
	d.checkSealed(t, "it")
	d.checkNothingLeft(t, before)
}
