// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/egress/redact"
	"github.com/fumehood/fumehood/internal/gate/environment"
	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/internal/sandbox/install/installtest"
	"github.com/fumehood/fumehood/internal/sandbox/rootfs"
	"github.com/fumehood/fumehood/internal/watch/lineage"
	"github.com/fumehood/fumehood/internal/watch/observe"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// BenchmarkWatched runs real workloads in turn natively, in the sandbox without gate
// and record, and in the sandbox with the default policy deciding on each program
// and every event written to a log. Budget of the last over the second, in processor time: 1.05 for
// the build, which starts many short programs, and 1.02 for the others. .ci/ratios has them.
// What runs natively is an ordinary program of the host: it may write only to directories that it makes.
//
//	go test -tags e2e ./cmd/fumehood -run '^$' -bench Watched -benchtime 5x -timeout 1h
func BenchmarkWatched(b *testing.B) {
	b.Run("build", func(b *testing.B) { // of many short programs: Debian's hello
		dir := b.TempDir()
		debianSource(b, "hello", dir)
		benchWatched(b, dir, `w=$(mktemp -d) && cp -a . "$w" && cd "$w" && FORCE_UNSAFE_CONFIGURE=1 ./configure -q && make -s -j2`)
	})
	b.Run("go", func(b *testing.B) { // golang.org/x/mod, compiled from nothing
		dir := b.TempDir()
		from := strings.TrimSpace(string(runCommand(b, exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/mod"))))
		runCommand(b, exec.Command("cp", "-r", from+"/.", dir))
		benchWatched(b, dir, "export GOCACHE=$(mktemp -d) && go test ./modfile ./module ./semver ./sumdb/...")
	})
	for name, project := range map[string]string{"python": "python3-toolz", "node": "@fastify/merge-json-schemas"} {
		b.Run(name, func(b *testing.B) {
			suites := readSuites(b)
			s, d := suites[slices.IndexFunc(suites, func(s suite) bool { return s.Name == project })], desk{dir: b.TempDir()}
			for _, dir := range []string{"ws", "home"} {
				if err := os.Mkdir(d.path(dir), 0o755); err != nil {
					b.Fatal(err)
				}
			}
			s.fetch(b, d)
			benchWatched(b, d.path("ws"), "for i in 1 2 3; do "+s.Run+" >/dev/null || exit; done")
		})
	}
	b.Run("extensions", func(b *testing.B) { // a program that loads 60 files of the workspace as code
		dir := b.TempDir()
		var names []string
		for i := range 60 { // what Python.h would make of PyModule_Create
			names = append(names, fmt.Sprintf("x%d", i))
			write(b, filepath.Join(dir, names[i]+".c"), fmt.Sprintf("extern void *PyModule_Create2(void *, int);\nstatic void *module[16] = {(void *)1, 0, 0, 0, 0, \"x%d\"};\n"+
				"void *PyInit_x%d(void) { return PyModule_Create2(module, 1013); }\n", i, i))
		}
		runCommand(b, exec.Command("sh", "-c", "cd "+dir+" && for i in *.c; do gcc -shared -fPIC -o ${i%.c}.so $i || exit; done"))
		benchWatched(b, dir, "for i in $(seq 20); do python3 -c 'import "+strings.Join(names, ", ")+"' || exit; done")
	})
}

// BenchmarkStart measures what everything that is on (gate, policy, record and log) adds
// to a program start by a text's shell: without monitoring, a start that the text
// predicts, and one whose argv is different each time and so is decided.
//
//	go test -tags e2e ./cmd/fumehood -run '^$' -bench Start -benchtime 5x
func BenchmarkStart(b *testing.B) {
	const starts = 400
	dir := b.TempDir()
	took := map[string][]time.Duration{}
	for b.Loop() {
		for _, c := range []struct {
			name, words string
			watched     bool
		}{{"off", "", false}, {"predicted", "", true}, {"decided", " $i", true}} {
			r := inside(b, dir, fmt.Sprintf("for i in $(seq %d); do basename /a/b%s > /dev/null; done", starts, c.words), c.watched)
			took[c.name] = append(took[c.name], time.Duration(r.WallMS)*time.Millisecond/starts)
		}
	}
	for name, list := range took {
		b.ReportMetric(float64(middle(list).Microseconds()), name+"-µs")
	}
	b.ReportMetric(0, "ns/op")
}

// debianSource unpacks the upstream source of a package.
func debianSource(b *testing.B, name, dir string) {
	b.Helper()
	apt := b.TempDir()
	for _, d := range []string{"parts", "lists/partial"} {
		if err := os.MkdirAll(filepath.Join(apt, d), 0o755); err != nil {
			b.Fatal(err)
		}
	}
	list, err := os.ReadFile("/etc/apt/sources.list.d/debian.sources")
	if err != nil {
		b.Fatal(err)
	}
	list = []byte(strings.ReplaceAll(string(list), "Types: deb\n", "Types: deb-src\n"))
	if err := os.WriteFile(filepath.Join(apt, "parts", "source.sources"), list, 0o644); err != nil {
		b.Fatal(err)
	}
	options := []string{"-qq", "-o", "Dir::Etc::sourcelist=/dev/null", "-o", "Dir::Etc::sourceparts=" + apt + "/parts", "-o", "Dir::State::lists=" + apt + "/lists"}
	for _, words := range [][]string{{"update"}, {"source", "--download-only", name}} {
		cmd := exec.Command("apt-get", append(slices.Clone(options), words...)...)
		cmd.Dir = apt
		runCommand(b, cmd)
	}
	found, _ := filepath.Glob(filepath.Join(apt, "*.orig.tar.*z"))
	if len(found) != 1 {
		b.Fatalf("apt-get source left %q", found)
	}
	runCommand(b, exec.Command("tar", "-xf", found[0], "-C", dir, "--strip-components=1", "--no-same-owner"))
}

// benchWatched alternates, so that what else the machine does is in each, and reports the ratio of
// the least processor times.
func benchWatched(b *testing.B, workspace, text string) {
	runCommand(b, exec.Command("chmod", "-R", "a+rwX", workspace))
	var wall, cpu [3][]time.Duration
	var execs int
	for round := 0; b.Loop(); round++ {
		w, c := natively(b, workspace, text)
		wall[0], cpu[0] = append(wall[0], w), append(cpu[0], c)
		for i := range 2 {
			on := (i + round) % 2
			before := ownTime(b)
			r := inside(b, workspace, text, on == 1)
			wall[on+1] = append(wall[on+1], time.Duration(r.WallMS)*time.Millisecond)
			cpu[on+1] = append(cpu[on+1], time.Duration(r.CPUMS)*time.Millisecond+ownTime(b)-before)
			if on == 1 {
				execs = r.Observations.Counts.Execs
			}
		}
	}
	for i, name := range []string{"native", "off", "on"} {
		b.ReportMetric(middle(wall[i]).Seconds(), name+"-s")
		b.ReportMetric(middle(cpu[i]).Seconds(), name+"-cpu-s")
	}
	b.ReportMetric(middle(wall[2]).Seconds()/middle(wall[1]).Seconds(), "on/off")
	b.ReportMetric(slices.Min(cpu[2]).Seconds()/slices.Min(cpu[1]).Seconds(), "on/off-cpu")
	b.ReportMetric(middle(wall[2]).Seconds()/middle(wall[0]).Seconds(), "on/native")
	b.ReportMetric(float64(execs), "execs")
	b.ReportMetric(0, "ns/op")
}

// ownTime is the processor time of this process, in which policy decides.
func ownTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func middle(took []time.Duration) time.Duration {
	slices.Sort(took)
	return took[len(took)/2]
}

func natively(b *testing.B, workspace, text string) (wall, cpu time.Duration) {
	b.Helper()
	cmd := exec.Command("/bin/sh", "-c", text)
	cmd.Dir, cmd.Env = workspace, []string{"PATH=/usr/local/go/bin:/usr/bin:/bin", "HOME=" + b.TempDir(), "TMPDIR=" + b.TempDir(), "GOTOOLCHAIN=local", "GOPROXY=off", "GOFLAGS=-buildvcs=false"}
	begin := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %.4000s", err, out)
	}
	used := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return time.Since(begin), time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// An allower allows every command, with high limits, and programs that it builds.
type allower struct{}

var room = proposal.Limits{Wall: proposal.Duration(10 * time.Minute), CPUs: 64, Memory: 8 * proposal.GiB, Pids: 2000, Disk: 4 * proposal.GiB, Files: 4096, Output: proposal.GiB}

func (allower) Decide(context.Context, proposal.Proposal, proposal.Analysis) (proposal.Decision, error) {
	return proposal.Decision{Effect: proposal.Allow, Grant: &proposal.Grant{Limits: room, Exec: []string{"built"}}}, nil
}

func inside(b *testing.B, workspace, text string, watched bool) proposal.Result {
	b.Helper()
	dir := b.TempDir()
	root, err := rootfs.Open("host", "/usr/local/go/bin:/usr/bin:/bin")
	if err != nil {
		b.Fatal(err)
	}
	o, err := environment.SandboxOptions(workspace, root, installtest.Runsc(b))
	if err != nil {
		b.Fatal(err)
	}
	log, err := audit.Create(filepath.Join(dir, "log"), audit.Options{Origin: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	engine, err := policy.New(b.Context(), policy.Options{})
	if err != nil {
		b.Fatal(err)
	}
	observer, err := observe.New(log, engine.Event)
	if err != nil {
		b.Fatal(err)
	}
	u, err := redact.New(redact.Options{})
	if err != nil {
		b.Fatal(err)
	}
	stages := order.Stages{
		Checker: order.Checker{Policy: allower{}}, Log: log, Redactor: u, Observer: observer, Sandbox: o, Now: time.Now,
		Lineage: &lineage.ProgramDecider{Exec: engine.Exec, Analyze: order.AnalyzeProposal, Start: engine.Start, DecideProgram: engine.DecideProgram, Confine: policy.Confine, Path: strings.Split(o.Path, ":")},
		Start: func(o sandbox.Options) (order.Runner, error) {
			if !watched {
				o.Exec, o.Event, o.UnwatchedUnsafe = nil, nil, true
			}
			return order.StartSandbox(o)
		},
	}
	report, err := stages.Run(b.Context(), proposal.Plan{Proposals: []proposal.Proposal{{ID: "x", Run: text}}}, proposal.Run{})
	if err != nil {
		b.Fatal(err)
	}
	r := report.Records[0].Result
	if r == nil || !r.Succeeded() {
		b.Fatalf("%+v", report.Records[0])
	}
	return *r
}
