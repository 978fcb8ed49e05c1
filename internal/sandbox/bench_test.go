// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/fumehood/fumehood/internal/sandbox/install/installtest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// BenchmarkCold measures a sandbox from its start to the result of its first command, with
// everything on (cgroups, limits, gate, monitor, overlay, changes), and compares it with
// runsc from a plain "go build" with default flags on the same tree. The two alternate.
// Budget: ratio at most 0.7.
//
//	go test ./internal/sandbox -run '^$' -bench Cold -benchtime 30x
func BenchmarkCold(b *testing.B) {
	o, rec := gatedOptions(b)
	rec.reset(allow)
	plain, bundle := installtest.PlainRunsc(b), plainBundle(b, o, nil, "/bin/true")
	x := Execution{ID: "x", Argv: []string{"/bin/true"}, Grant: proposal.Grant{Limits: testLimits()}}
	var ours, theirs []time.Duration
	for b.Loop() {
		time.Sleep(100 * time.Millisecond)
		begin := time.Now()
		r, err := New(o)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := r.Run(b.Context(), x); err != nil {
			b.Fatal(err)
		}
		ours = append(ours, time.Since(begin))
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		theirs = append(theirs, runPlain(b, plain, bundle))
	}
	b.ReportMetric(median(ours), "ours-ms")
	b.ReportMetric(median(theirs), "plain-ms")
	b.ReportMetric(slices.Min(ours).Seconds()/slices.Min(theirs).Seconds(), "ratio") // the fastest differ least from run to run
}

func runPlain(b *testing.B, plain, bundle string) time.Duration {
	b.Helper()
	begin := time.Now()
	id := fmt.Sprintf("plain-%d", begin.UnixNano())
	cmd := exec.Command(plain, "--root="+filepath.Dir(bundle), "--network=none", "run", "--bundle="+bundle, id)
	cmd.Env = []string{}
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return time.Since(begin)
}

// BenchmarkSuite runs a real test suite (golang.org/x/mod's, compiled without a cache) as
// a host process, in a sandbox with everything on, and in a plain runsc with default
// flags. Budget: at most 1.8 times native, never slower than plain.
//
//	go test ./internal/sandbox -run '^$' -bench Suite -benchtime 3x -timeout 30m
func BenchmarkSuite(b *testing.B) {
	const text = "export GOCACHE=$(mktemp -d) && go test ./semver ./module ./modfile ./sumdb/..."
	env := []string{"PATH=/usr/local/go/bin:/usr/bin:/bin", "HOME=/tmp", "GOTOOLCHAIN=local", "GOPROXY=off", "GOFLAGS=-buildvcs=false"}
	o := testOptions(b)
	o.Path, o.Limits.CPUs, o.Limits.Memory, o.Limits.Disk, o.Limits.Pids, o.Limits.Wall = "/usr/local/go/bin:/usr/bin:/bin", 64, 8*proposal.GiB, 4*proposal.GiB, 2000, proposal.Duration(10*time.Minute)
	o.Env = map[string]string{"GOTOOLCHAIN": "local", "GOPROXY": "off", "GOFLAGS": "-buildvcs=false"}
	copyModule(b, "golang.org/x/mod", o.Workspace)
	plain, bundle := installtest.PlainRunsc(b), plainBundle(b, o, env, "/bin/bash", "-c", text)
	var native, ours, theirs []time.Duration
	for b.Loop() {
		begin := time.Now()
		cmd := exec.Command("/bin/bash", "-c", text)
		cmd.Dir, cmd.Env = o.Workspace, env
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		native = append(native, time.Since(begin))
		theirs = append(theirs, runPlain(b, plain, bundle))
		begin = time.Now()
		r, err := New(o)
		if err != nil {
			b.Fatal(err)
		}
		result, err := r.Run(b.Context(), Execution{ID: "x", Text: text, Grant: proposal.Grant{Limits: o.Limits}})
		if err != nil || !result.Succeeded() {
			b.Fatalf("%v: %s %s %s", err, result.Status, result.Stdout.Tail, result.Stderr.Tail)
		}
		ours = append(ours, time.Since(begin))
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(median(native), "native-ms")
	b.ReportMetric(median(ours), "ours-ms")
	b.ReportMetric(median(theirs), "plain-ms")
	b.ReportMetric(median(ours)/median(native), "of-native")
	b.ReportMetric(median(ours)/median(theirs), "of-plain")
}

// copyModule copies a dependency of this module out of the module cache.
func copyModule(b testing.TB, module, to string) {
	b.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		b.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(strings.TrimSpace(string(dir)))); err != nil {
		b.Fatal(err)
	}
}

func median(took []time.Duration) float64 {
	slices.Sort(took)
	return float64(took[len(took)/2].Microseconds()) / 1000
}

// plainBundle makes the same tree as an ordinary bundle: without our init and overlay.
func plainBundle(b testing.TB, o Options, env []string, argv ...string) string {
	b.Helper()
	// With default flags, runsc's sandbox must be able to traverse the directories.
	dir, err := os.MkdirTemp("/var/tmp", "fumehood-bench-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = exec.Command("umount", "-l", filepath.Join(dir, "null-netns")).Run()
		os.RemoveAll(dir)
	})
	bundle := filepath.Join(dir, "bundle")
	l := layout{
		ID: "plain", Root: filepath.Join(bundle, "root"), Init: o.Init, Upper: filepath.Join(dir, "upper"), Binds: o.Binds,
		Trees: []tree{{Bind: Bind{o.Workspace, "/workspace"}}}, UID: guestID, GID: guestID, Limits: testLimits(),
	}
	for _, d := range []string{l.Root, l.Upper} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			b.Fatal(err)
		}
	}
	if err := l.createMountPoints(); err != nil {
		b.Fatal(err)
	}
	for link, target := range o.Links {
		if err := os.Symlink(target, filepath.Join(l.Root, link)); err != nil {
			b.Fatal(err)
		}
	}
	spec, err := l.ociSpec()
	if err != nil {
		b.Fatal(err)
	}
	spec.Process.Args, spec.Process.Env, spec.Process.Cwd = argv, env, "/workspace"
	spec.Process.Rlimits, spec.Root.Readonly = nil, false
	spec.Annotations, spec.Linux.CgroupsPath, spec.Linux.Resources = nil, "", nil
	spec.Mounts = append(spec.Mounts, specs.Mount{Destination: "/workspace", Type: "bind", Source: o.Workspace, Options: []string{"rbind", "rw"}})
	data, err := json.Marshal(spec)
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bundle, "config.json"), data, 0o600); err != nil {
		b.Fatal(err)
	}
	return bundle
}

// BenchmarkExec measures what the gate adds to each program start: a thousand runs of
// /usr/bin/true in a sandbox without a gate, in one that asks each time, and in one that
// may keep the answer. The three alternate. Budgets: < 0.3 ms and < 0.1 ms.
//
//	go test ./internal/sandbox -run '^$' -bench Exec -benchtime 7x
func BenchmarkExec(b *testing.B) {
	const n = 1000
	var took [3][]time.Duration
	var runners [3]*Runner
	for i := range runners {
		o, rec := gatedOptions(b)
		o.Limits.CPUs = 64
		rec.reset(func(x proposal.Exec) proposal.ExecDecision {
			return proposal.ExecDecision{Effect: proposal.Allow, Cacheable: i == 2}
		})
		o.Event = func(proposal.Event) {}
		if i == 0 {
			o.Exec, o.Event, o.UnwatchedUnsafe = nil, nil, true
		}
		runners[i] = testRunner(b, o)
	}
	x := Execution{ID: "x", Argv: []string{tricks, "spawn", fmt.Sprint(n), "/usr/bin/true"}, Free: true, Grant: proposal.Grant{Limits: testLimits()}}
	x.Grant.Limits.CPUs = 64
	var cpu [3][]time.Duration
	for b.Loop() {
		for i, r := range runners {
			result, err := r.Run(b.Context(), x)
			if err != nil || !result.Succeeded() {
				b.Fatal(err, string(result.Stdout.Head))
			}
			took[i] = append(took[i], time.Duration(result.WallMS)*time.Millisecond/n)
			cpu[i] = append(cpu[i], time.Duration(result.CPUMS)*time.Millisecond/n)
		}
	}
	without := median(took[0])
	b.ReportMetric(without*1000, "without-µs")
	b.ReportMetric((median(took[1])-without)*1000, "asked-µs")
	b.ReportMetric((median(took[2])-without)*1000, "kept-µs")
	b.ReportMetric(median(cpu[0])*1000, "without-cpu-µs")
	b.ReportMetric((median(cpu[1])-median(cpu[0]))*1000, "asked-cpu-µs")
	b.ReportMetric((median(cpu[2])-median(cpu[0]))*1000, "kept-cpu-µs")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkRefused measures a whole refused execve, including gVisor's loading of the
// program. It starts no process, so it can be measured on a busy host.
func BenchmarkRefused(b *testing.B) {
	for _, keep := range []bool{false, true} {
		b.Run(map[bool]string{false: "asked", true: "kept"}[keep], func(b *testing.B) {
			o, rec := gatedOptions(b)
			rec.reset(func(x proposal.Exec) proposal.ExecDecision {
				d := deny(x)
				d.Cacheable = keep
				return d
			})
			o.Limits.CPUs = 64
			r := testRunner(b, o)
			x := Execution{ID: "x", Argv: []string{tricks, "refused", "2000", canary}, Grant: proposal.Grant{Limits: testLimits()}}
			x.Grant.Limits.CPUs = 64
			var took []time.Duration
			for b.Loop() {
				result, err := r.Run(b.Context(), x)
				if err != nil {
					b.Fatal(err)
				}
				var ns int64
				fmt.Sscan(string(result.Stdout.Head), &ns)
				took = append(took, time.Duration(ns))
			}
			b.ReportMetric(median(took)*1000, "µs")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkNextWatched measures a command in a running sandbox, with and without gate and
// monitor. Budget: < 5 ms more than the command itself.
//
//	go test ./internal/sandbox -run '^$' -bench NextWatched -benchtime 100x
func BenchmarkNextWatched(b *testing.B) {
	for _, watched := range []bool{false, true} {
		b.Run(map[bool]string{false: "without", true: "watched"}[watched], func(b *testing.B) {
			o, rec := gatedOptions(b)
			rec.reset(allow)
			if !watched {
				o.Exec, o.Event, o.UnwatchedUnsafe = nil, nil, true
			}
			r := testRunner(b, o)
			x := Execution{ID: "x", Argv: []string{"/bin/true"}, Grant: proposal.Grant{Limits: testLimits()}}
			var took []time.Duration
			for b.Loop() {
				begin := time.Now()
				if _, err := r.Run(b.Context(), x); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(begin))
			}
			b.ReportMetric(median(took), "p50-ms")
		})
	}
}
