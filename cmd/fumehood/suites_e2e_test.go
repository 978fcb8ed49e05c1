// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	voice "github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/internal/gate/environment"
	"github.com/fumehood/fumehood/internal/sandbox/guest"
	"github.com/fumehood/fumehood/internal/sandbox/install"
	"github.com/fumehood/fumehood/internal/sandbox/rootfs"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A suite is the tests of a third-party project, and how to run them.
type suite struct {
	name string
	// fetch puts the project into the workspace of d.
	fetch func(t testing.TB, d desk)
	// run is the command, in the sandbox and natively.
	run string
	// path comes first in PATH, for the distribution's tools.
	path string
	// lines matches the outcome of each test, in its first group.
	lines *regexp.Regexp
	least int // minimum number of outcomes
	// goModules exposes the host's module cache in the sandbox.
	goModules bool
}

var (
	goLines   = regexp.MustCompile(`(?m)^\s*((?:--- (?:PASS|FAIL|SKIP): \S+)|(?:(?:ok|FAIL|\?)\s+\S+))`)
	pyLines   = regexp.MustCompile(`(?m)^(\S+::.* [A-Z]+)\s+\[ *\d+%\]$`)
	nodeLines = regexp.MustCompile(`(?m)^\s*((?:not )?ok) \d+( - .*)$`)
)

func suites() []suite {
	return []suite{
		// TestParseConfirm allows each of 560 shells that it starts two seconds, which a busy
		// host takes natively, too.
		{name: "mvdan.cc/sh/v3/syntax", fetch: goModule("mvdan.cc/sh/v3@v3.14.1"), goModules: true,
			run: "go test -count=1 -v -skip '^TestParseConfirm$' ./syntax", lines: goLines, least: 1000},
		{name: "github.com/google/go-cmp", fetch: goModule("github.com/google/go-cmp@v0.7.0"), goModules: true,
			run: "go test -count=1 -v ./...", lines: goLines, least: 300},
		{name: "golang.org/x/mod", fetch: goModule("golang.org/x/mod@v0.42.0"), goModules: true,
			run: "go test -count=1 -v ./modfile ./module ./semver ./sumdb/note ./sumdb/tlog", lines: goLines, least: 300},
		{name: "python3-toolz", fetch: debianPackage("python3-toolz", "usr/lib/python3/dist-packages"),
			path: "/usr/bin:/bin", run: "python3 -m pytest -v toolz", lines: pyLines, least: 150},
		// It loads an extension of the workspace.
		{name: "python3-simplejson", fetch: debianPackage("python3-simplejson", "usr/lib/python3/dist-packages"),
			path: "/usr/bin:/bin", run: "python3 -m pytest -v simplejson", lines: pyLines, least: 100},
		{name: "@fastify/merge-json-schemas", fetch: npmPackage("@fastify/merge-json-schemas@0.2.0"),
			run: "node --test --test-reporter=tap", lines: nodeLines, least: 100},
	}
}

// A verdict is the result of a suite.
type verdict struct {
	code     int
	outcomes []string // sorted
	took     time.Duration
	output   string
}

// passing matches what is in the names of some tests, and differs from run to run: pointers
// and the time of day.
var passing = regexp.MustCompile(`0x[0-9a-f]+|time\.Date\([^)]*\)`)

func (s suite) verdict(code int, took time.Duration, output string) verdict {
	v := verdict{code: code, took: took, output: output}
	for _, m := range s.lines.FindAllStringSubmatch(output, -1) {
		v.outcomes = append(v.outcomes, passing.ReplaceAllString(strings.Join(strings.Fields(strings.Join(m[1:], "")), " "), "…"))
	}
	slices.Sort(v.outcomes)
	return v
}

// failures returns the end of the output, where test runners report failures.
func (v verdict) failures() string { return v.output[max(0, len(v.output)-4000):] }

func (s suite) inside(t *testing.T, d desk) verdict {
	t.Helper()
	d.plan(t, s.run, "10m")
	var more []string
	if s.goModules {
		more = []string{"--mount", goCache(t) + ":/home/fumehood/go/pkg/mod"}
	}
	before := traces()
	code, report := d.run(t, "suite", more...)
	r := result(t, report)
	if r.Status != proposal.Exited || code != min(r.ExitCode, exitRefused) {
		t.Errorf("exit code %d, result %s %s %s", code, r.Status, r.Limit, r.Detail)
	}
	checkExplained(t, report)
	d.checkSealed(t, "suite")
	d.checkNothingLeft(t, before)
	return s.verdict(r.ExitCode, time.Duration(r.WallMS)*time.Millisecond, d.stdout(t, "suite")+stderrOf(r))
}

// checkExplained checks that the command's own shell started exactly what the
// command says, that nothing was refused, and that the comment says so in one line.
func checkExplained(t *testing.T, r proposal.Report) {
	t.Helper()
	o := result(t, r).Observations
	if o == nil || !o.Complete || o.Counts.Refused > 0 {
		t.Fatalf("observations %+v, want all of them and nothing refused", o)
	}
	said := regexp.MustCompile(`(?m)^<li>[0-9,]+ programs started.*$`).FindString(voice.Markdown(r))
	if !strings.Contains(said, fmt.Sprintf(" complete): %d named in the command", o.Counts.Predicted)) || o.Counts.Predicted < 2 || o.Counts.Decided > 0 {
		t.Errorf("predicted against observed: %q", said)
	}
	t.Log(said)
}

func stderrOf(r *proposal.Result) string { return string(r.Stderr.Head) + string(r.Stderr.Tail) }

// native runs the same text with the same shell and environment as an ordinary
// process of the host, in a copy of the workspace.
func (s suite) native(t *testing.T, d desk) verdict {
	t.Helper()
	root, err := rootfs.Open("host", os.Getenv("PATH"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(d.path("native"), os.DirFS(d.path("ws"))); err != nil {
		t.Fatal(err)
	}
	// Without capabilities, as inside: with them some tests of permissions fail.
	cmd := exec.CommandContext(t.Context(), "setpriv", "--bounding-set=-all", "--inh-caps=-all", "/bin/bash", "--noprofile", "--norc", "-p", "-c", s.run)
	cmd.Dir = d.path("native")
	cmd.Env = []string{"PATH=" + root.Path, "HOME=" + d.path("home"), "TMPDIR=" + d.path("tmp"), "USER=fumehood", "LOGNAME=fumehood",
		"SHELL=/bin/bash", "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "TERM=dumb", "GOMODCACHE=" + goCache(t)}
	o, err := environment.SandboxOptions(d.path("ws"), root, install.Runsc{})
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range o.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	begin := time.Now()
	code := exitCode(t, cmd.Run())
	took := time.Since(begin)
	// Files that its tests left in TMPDIR are not fumehood's.
	if err := os.RemoveAll(d.path("tmp")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(d.path("tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	return s.verdict(code, took, strings.ReplaceAll(output.String(), d.path("native"), guest.Workspace))
}

func goCache(t testing.TB) string {
	t.Helper()
	out, err := goCommand(t.Context(), ".", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// goModule fetches a module and the dependencies of its tests, verified against the
// checksum database as usual.
func goModule(version string) func(testing.TB, desk) {
	return func(t testing.TB, d desk) {
		t.Helper()
		copyWritable(t, moduleDir(t, d.dir, version), d.path("ws"))
		runCommand(t, goCommand(t.Context(), d.path("ws"), "mod", "download"))
	}
}

// moduleDir fetches a module and returns its directory in the module cache.
func moduleDir(t testing.TB, dir, version string) string {
	t.Helper()
	var got struct{ Dir, Error string }
	if err := json.Unmarshal(runCommand(t, goCommand(t.Context(), dir, "mod", "download", "-json", version)), &got); err != nil || got.Error != "" {
		t.Fatalf("cannot fetch %s: %v %s", version, err, got.Error)
	}
	return got.Dir
}

// debianPackage fetches a binary package that includes its tests, and extracts dir.
func debianPackage(name, dir string) func(testing.TB, desk) {
	return func(t testing.TB, d desk) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "apt-get", "download", "-qq", name)
		cmd.Dir = d.path("home")
		runCommand(t, cmd)
		found, err := filepath.Glob(d.path("home/*.deb"))
		if err != nil || len(found) != 1 {
			t.Fatalf("apt-get download left %v (%v); run apt-get update", found, err)
		}
		t.Log(filepath.Base(found[0]))
		runCommand(t, exec.CommandContext(t.Context(), "dpkg-deb", "-x", found[0], d.path("unpacked")))
		copyWritable(t, filepath.Join(d.path("unpacked"), dir), d.path("ws"))
	}
}

// npmPackage fetches a package that includes its tests, and its dependencies. No
// package script is run.
func npmPackage(version string) func(testing.TB, desk) {
	return func(t testing.TB, d desk) {
		t.Helper()
		unpack(t, d, version)
		install := exec.CommandContext(t.Context(), "npm", "install", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund")
		install.Dir = d.path("ws")
		runCommand(t, install)
	}
}

// copyWritable copies a tree and makes the copy writable.
func copyWritable(t testing.TB, from, to string) {
	t.Helper()
	runCommand(t, exec.CommandContext(t.Context(), "cp", "-r", from+"/.", to))
	runCommand(t, exec.CommandContext(t.Context(), "chmod", "-R", "u+w", to))
}

func runCommand(t testing.TB, cmd *exec.Cmd) []byte {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), err, out, &stderr)
	}
	return out
}
