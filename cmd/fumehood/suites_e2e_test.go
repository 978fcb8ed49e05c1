// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"bytes"
	"cmp"
	"context"
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

// outcomePatterns match the lines that a runner prints about a test's state and name.
var outcomePatterns = map[string]*regexp.Regexp{
	"go":     regexp.MustCompile(`(?m)^\s*--- (?P<state>PASS|FAIL|SKIP): (?P<name>\S+)`),
	"pytest": regexp.MustCompile(`(?m)^(?P<name>\S+::.*) (?P<state>[A-Z]+)\s+\[ *\d+%\]$`),
	"tap":    regexp.MustCompile(`(?m)^\s*(?P<state>(?:not )?ok) \d+(?: -)? (?P<name>.*)$`),
	// What the programs in testdata/compatibility print.
	"ok": regexp.MustCompile(`(?m)^(?P<state>ok|not ok|skip) (?P<name>\S.*)$`),
}

// A verdict is the result of a suite.
type verdict struct {
	code      int
	outcomes  []string // "NAME: STATE", sorted
	took, cpu time.Duration
	output    string
}

// passing matches what is in the names of some tests, and differs from run to run: pointers
// and the time of day.
var passing = regexp.MustCompile(`0x[0-9a-f]+|time\.Date\([^)]*\)`)

func (s suite) verdict(code int, took, cpu time.Duration, output string) verdict {
	v := verdict{code: code, took: took, cpu: cpu, output: output}
	lines := outcomePatterns[s.Read]
	for _, m := range lines.FindAllStringSubmatch(output, -1) {
		name := strings.Join(strings.Fields(m[lines.SubexpIndex("name")]), " ")
		v.outcomes = append(v.outcomes, passing.ReplaceAllString(name, "…")+": "+m[lines.SubexpIndex("state")])
	}
	slices.Sort(v.outcomes)
	return v
}

// failures returns the end of the output, where test runners report failures.
func (v verdict) failures() string { return v.output[max(0, len(v.output)-4000):] }

// inside runs the suite in the sandbox. A command that does not end in ten minutes fails.
func (s suite) inside(t *testing.T, d desk) verdict {
	t.Helper()
	d.plan(t, s.Run, "10m")
	var more []string
	if s.Source == "go" {
		more = []string{"--mount", goVariable(t, "GOMODCACHE") + ":/home/fumehood/go/pkg/mod"}
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
	milliseconds := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	return s.verdict(r.ExitCode, milliseconds(r.WallMS), milliseconds(r.CPUMS), d.stdout(t, "suite")+stderrOf(r))
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
	if !strings.Contains(said, fmt.Sprintf(" complete): %d named in the command", o.Counts.Predicted)) || o.Counts.Predicted < 1 || o.Counts.Decided > 0 {
		t.Errorf("predicted against observed: %q", said)
	}
	t.Log(said)
}

func stderrOf(r *proposal.Result) string { return string(r.Stderr.Head) + string(r.Stderr.Tail) }

// asOrdinaryUser runs the text $1 as inside: by an unprivileged user without capabilities, with a network that has
// only a loopback interface, with its own processes, and with a toolchain in $0 that it cannot write to. The shell is not
// replaced by the text's, so that process 1 adopts orphans.
const asOrdinaryUser = `ip link set lo up && mount -o bind,ro "$0" "$0" &&
unshare --user --map-user=1000 --map-group=1000 setpriv --no-new-privs /bin/bash --noprofile --norc -p -c "$1"
exit $?`

// native runs the same text with the same shell and environment on the host's kernel, in a copy of the workspace.
func (s suite) native(t *testing.T, d desk) verdict {
	t.Helper()
	root, err := rootfs.Open("host", os.Getenv("PATH"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(d.path("native"), os.DirFS(d.path("ws"))); err != nil {
		t.Fatal(err)
	}
	d.copyGoCache(t)
	short, err := os.MkdirTemp("", "") // an address of a Unix socket has 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = exec.Command("rm", "-rf", short).Run() }()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "--net", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc",
		"sh", "-c", asOrdinaryUser, goVariable(t, "GOROOT"), s.Run)
	cmd.Dir = d.path("native")
	cmd.Env = []string{"PATH=" + root.Path, "HOME=" + d.path("home"), "TMPDIR=" + short, "USER=fumehood", "LOGNAME=fumehood",
		"SHELL=/bin/bash", "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "TERM=dumb", "GOMODCACHE=" + goVariable(t, "GOMODCACHE"),
		"GOCACHE=" + d.path("gocache")}
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
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return s.verdict(code, took, used, strings.ReplaceAll(output.String(), d.path("native"), guest.Workspace))
}

// copyGoCache gives commands outside a build cache with the standard library alone, as those inside have.
func (d desk) copyGoCache(t *testing.T) {
	t.Helper()
	if found, _ := filepath.Glob(filepath.Join(d.cache, "go-std", "[0-9a-f]*")); len(found) > 0 {
		runCommand(t, exec.CommandContext(t.Context(), "cp", "-r", found[len(found)-1], d.path("gocache")))
	}
}

func goVariable(t testing.TB, name string) string {
	t.Helper()
	return strings.TrimSpace(string(runCommand(t, goCommand(t.Context(), ".", "env", name))))
}

// fetch puts the project and the suite's own files into the workspace of d.
func (s suite) fetch(t testing.TB, d desk) {
	t.Helper()
	switch s.Source {
	case "go":
		goModule(s.Name+"@"+s.Version)(t, d)
	case "debian":
		debianPackage(cmp.Or(s.Package, s.Name), s.Dir)(t, d)
	case "npm":
		npmPackage(s.Name+"@"+s.Version)(t, d)
	case "npm dependency":
		runCommand(t, npmInstall(t, d, "--no-save", s.Name+"@"+s.Version))
	case "host":
	default:
		t.Fatalf("%s: unsupported source %q", s.Name, s.Source)
	}
	for _, name := range s.Files {
		runCommand(t, exec.CommandContext(t.Context(), "cp", filepath.Join(filepath.Dir(suitesFile), name), d.path("ws")))
	}
	if s.Prepare != "" {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", s.Prepare)
		cmd.Dir = d.path("ws")
		runCommand(t, cmd)
	}
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
		runCommand(t, npmInstall(t, d, "--omit=dev"))
	}
}

func npmInstall(t testing.TB, d desk, more ...string) *exec.Cmd {
	words := append([]string{"install", "--ignore-scripts", "--no-audit", "--no-fund"}, more...)
	cmd := exec.CommandContext(t.Context(), "npm", words...)
	cmd.Dir = d.path("ws")
	return cmd
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
