// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// fileCommands read a whole repository.
var fileCommands = []string{"git status", "git status", "git grep -q never-found", "find . -type f", "grep -rq never-found ."}

// BenchmarkFiles compares commands that read many files on the host, in a workspace that
// is a directory, and in one that is an image; start includes making the image.
//
//	go test ./internal/sandbox -run '^$' -bench Files -benchtime 1x -timeout 30m
func BenchmarkFiles(b *testing.B) {
	for _, n := range []int{1000, 5000, 20_000, 50_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			o, rec := gatedOptions(b)
			rec.reset(allow)
			o.Env = map[string]string{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.checkStat", "GIT_CONFIG_VALUE_0": "minimal"}
			o.Limits.CPUs, o.Limits.Memory, o.Events = 64, 4*proposal.GiB, math.MaxInt32
			manyFiles(b, o.Workspace, n)
			for b.Loop() {
				native := nativeCosts(b, o.Workspace)
				o.ImageFrom = math.MaxInt
				directory := sandboxCosts(b, o, fileCommands)
				o.ImageFrom = 1
				image := sandboxCosts(b, o, fileCommands)
				for i, name := range append([]string{"start"}, fileCommands...) {
					b.Logf("%6d files, %-26s native %s, directory %s, image %s", n, name, native[i], directory[i], image[i])
				}
			}
		})
	}
}

// A cost is what a command took.
type cost struct{ wall, cpu time.Duration }

func (c cost) String() string {
	return fmt.Sprintf("%5d ms (processor %5d ms)", c.wall.Milliseconds(), c.cpu.Milliseconds())
}

// manyFiles makes a repository with n files of about 4 KB, 20 in a directory.
func manyFiles(b testing.TB, dir string, n int) {
	b.Helper()
	for i := range n {
		path := filepath.Join(dir, fmt.Sprintf("d%d/d%d/file%d.txt", i/400, i/20%20, i))
		if i%20 == 0 {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				b.Fatal(err)
			}
		}
		text := strings.Repeat(fmt.Sprintf("line of file %d\n", i), 50+i%400)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	sh(b, dir, "git init -q && git config gc.auto 0 && git add -A && git -c user.name=x -c user.email=x@localhost commit -qm first && git gc -q && git status >/dev/null")
}

func nativeCosts(b *testing.B, dir string) []cost {
	b.Helper()
	took := []cost{{}}
	for _, text := range fileCommands {
		begin := time.Now()
		cmd := exec.Command("/bin/bash", "-c", text+" > /dev/null")
		cmd.Dir = dir
		_ = cmd.Run() // grep finds nothing
		took = append(took, cost{time.Since(begin), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()})
	}
	return took
}

// sandboxCosts begins with the start of the sandbox, whose processor time is this process's:
// it makes the image.
func sandboxCosts(b *testing.B, o Options, commands []string) []cost {
	b.Helper()
	r := testRunner(b, o)
	var took []cost
	for _, text := range append([]string{"true"}, commands...) {
		x := Execution{ID: "x", Text: text + " > /dev/null", Grant: proposal.Grant{Limits: o.Limits}}
		begin, before := time.Now(), ownTime(b)
		result, err := r.Run(b.Context(), x)
		if err != nil || result.ExitCode != 0 && !findsNothing(text) {
			b.Fatalf("%s: %v, %s %d %s", text, err, result.Status, result.ExitCode, result.Stderr.Head)
		}
		used := time.Duration(result.Usage.CPUUser.Value+result.Usage.CPUSystem.Value) * time.Millisecond
		if text == "true" {
			used = ownTime(b) - before
		}
		took = append(took, cost{time.Since(begin), used})
	}
	return took
}

// findsNothing reports whether a command is a search that fails because it finds nothing.
func findsNothing(text string) bool { return strings.Contains(text, "never-found") }

// ownTime is the processor time of this process.
func ownTime(b *testing.B) time.Duration {
	b.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkReads compares the processor time of a sandbox whose reads are recorded with that of
// one whose reads are not, in turns.
//
//	go test ./internal/sandbox -run '^$' -bench Reads -benchtime 1x
func BenchmarkReads(b *testing.B) {
	o, rec := gatedOptions(b)
	rec.reset(allow)
	o.Limits.CPUs, o.Limits.Memory, o.Events, o.ImageFrom = 64, 4*proposal.GiB, math.MaxInt32, math.MaxInt
	manyFiles(b, o.Workspace, 5000)
	for b.Loop() {
		for _, text := range []string{"find . -type f", "cat d*/d*/*.txt", "git status", "for i in d*/d*; do [ -e $i/none ]; done; true"} {
			var used [2][]int64
			var reads []Read
			for turn := range 10 {
				o.Recorded = turn%2 == 1
				r := testRunner(b, o)
				if got := runText(b, r, "true"); !got.Succeeded() {
					b.Fatal(got)
				}
				got := runText(b, r, text+" >/dev/null")
				if !got.Succeeded() {
					b.Fatalf("%s: %s", text, got.Stderr.Head)
				}
				used[turn%2] = append(used[turn%2], got.CPUMS)
				if o.Recorded {
					reads, _ = r.Reads(b.Context(), "")
				}
			}
			slices.Sort(used[0])
			slices.Sort(used[1])
			b.Logf("%-50s %5d paths, processor %4d ms, recorded %4d ms (medians)", text, len(reads), used[0][2], used[1][2])
		}
	}
}

// BenchmarkChanges measures what init needs to list the changes with 30,000 files above the
// workspace, as after set-up: the first time, which is logged, and when nothing has changed since.
//
//	go test ./internal/sandbox -run '^$' -bench Changes -benchtime 20x
func BenchmarkChanges(b *testing.B) {
	o, rec := gatedOptions(b)
	rec.reset(allow)
	o.Limits.CPUs, o.Limits.Memory, o.Limits.Disk, o.Events = 64, 4*proposal.GiB, proposal.GiB, math.MaxInt32
	from := b.TempDir()
	for i := range 30_000 {
		dir := filepath.Join(from, fmt.Sprintf("node_modules/p%d/lib/d%d", i/100, i/10%10))
		if i%10 == 0 {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				b.Fatal(err)
			}
		}
		write(b, filepath.Join(dir, fmt.Sprintf("file%d.js", i)), "x")
	}
	sh(b, from, "tar -cf "+filepath.Join(o.Workspace, "deps.tar")+" .")
	r := testRunner(b, o)
	for _, text := range []string{"true", "tar -xf deps.tar", "true", "echo x > x"} {
		begin := time.Now()
		result, err := r.Run(b.Context(), Execution{ID: "x", Text: text, Grant: proposal.Grant{Limits: o.Limits}})
		if err != nil || !result.Succeeded() {
			b.Fatalf("%s: %v, %s %s", text, err, result.Status, result.Stderr.Head)
		}
		b.Logf("%s: %d ms, and %d ms around it", text, result.WallMS, time.Since(begin).Milliseconds()-result.WallMS)
	}
	var wall, cpu []time.Duration
	for b.Loop() {
		begin, before := time.Now(), r.current.cgroup.readUsage().cpu
		if _, err := r.current.init.listChanges(); err != nil {
			b.Fatal(err)
		}
		wall, cpu = append(wall, time.Since(begin)), append(cpu, r.current.cgroup.readUsage().cpu-before)
	}
	b.ReportMetric(median(wall), "wall-ms")
	b.ReportMetric(median(cpu), "processor-ms")
}
