// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A ready suite is one of a well-known project whose dependencies set-up installs.
type readySuite struct {
	suite
	fetch   func(testing.TB, desk)
	install string // the same natively
	always  bool   // also without FUMEHOOD_SUITES=all
}

func readySuites() []readySuite {
	goSuite := func(module, run string, least int, always bool) readySuite {
		return readySuite{suite{Name: module, Run: run, Read: "go", Least: least}, goSource(module), "go mod download", always}
	}
	npmSuite := func(name, run string, least int, always bool) readySuite {
		return readySuite{suite{Name: name, Run: run, Read: "tap", Least: least}, npmSource(name), "npm install --no-audit --no-fund --no-package-lock", always}
	}
	return []readySuite{
		npmSuite("minimist@1.2.8", "npx tape 'test/**/*.js'", 100, true),
		npmSuite("deep-equal@2.2.3", "npx tape 'test/**/*.js'", 500, false),
		goSuite("github.com/spf13/cobra@v1.9.1", "go test -count=1 -v ./...", 300, true),
		goSuite("github.com/stretchr/testify@v1.11.1", "go test -count=1 -v ./...", 500, false),
		goSuite("go.uber.org/zap@v1.27.0", "go test -count=1 -v ./...", 500, false),
		goSuite("github.com/sirupsen/logrus@v1.9.3", "go test -count=1 -v ./...", 80, false),
	}
}

// installed runs the suite in the sandbox after set-up, and returns how long set-up took.
func (s readySuite) installed(t *testing.T, d desk) (verdict, time.Duration) {
	t.Helper()
	d.plan(t, s.Run, "20m")
	_, report := d.run(t, "suite", "--setup", "auto")
	var setup time.Duration
	for _, r := range report.Records[:len(report.Records)-1] {
		if r.Proposal.Origin != proposal.OriginSetup || r.Result == nil || !r.Result.Succeeded() {
			t.Fatalf("%s did not succeed: %+v", r.Proposal.ID, r.Result)
		}
		setup += time.Duration(r.Result.WallMS) * time.Millisecond
	}
	last := report.Records[len(report.Records)-1].Result
	if setup == 0 || last == nil {
		t.Fatalf("set-up took %s, result %+v", setup, last)
	}
	return s.verdict(last.ExitCode, time.Duration(last.WallMS)*time.Millisecond, 0, d.stdout(t, "suite")+stderrOf(last)), setup
}

// installer returns the command that installs the dependencies natively.
func (s readySuite) installer(t *testing.T, d desk) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", s.install)
	cmd.Dir = d.path("ws")
	return cmd
}

// goSource fetches a module without its dependencies.
func goSource(version string) func(testing.TB, desk) {
	return func(t testing.TB, d desk) {
		t.Helper()
		copyWritable(t, moduleDir(t, d.dir, version), d.path("ws"))
	}
}

// npmSource fetches a package without its dependencies.
func npmSource(version string) func(testing.TB, desk) {
	return func(t testing.TB, d desk) {
		t.Helper()
		unpack(t, d, version)
	}
}

func unpack(t testing.TB, d desk, version string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "npm", "pack", "--ignore-scripts", "--silent", version)
	cmd.Dir = d.path("home")
	file := strings.TrimSpace(string(runCommand(t, cmd)))
	runCommand(t, exec.CommandContext(t.Context(), "tar", "-xzf", filepath.Join(d.path("home"), filepath.Base(file)), "-C", d.path("ws"), "--strip-components=1"))
}
