// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sandbox

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// fileCommands read a whole repository.
var fileCommands = []string{"git status", "git status", "git grep -q never-found", "find . -type f", "grep -rq never-found ."}

// BenchmarkFiles compares commands that read many files on the host, in a workspace that
// is a directory, and in one that is an image; start includes making the image.
//
//	go test ./pkg/sandbox -run '^$' -bench Files -benchtime 1x -timeout 30m
func BenchmarkFiles(b *testing.B) {
	for _, n := range []int{1000, 5000, 20_000, 50_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			o, rec := gatedOptions(b)
			rec.reset(allow)
			o.Limits.CPUs, o.Limits.Memory, o.Events = 64, 4*proposal.GiB, math.MaxInt32
			manyFiles(b, o.Workspace, n)
			for b.Loop() {
				native := nativeTimes(b, o.Workspace)
				o.ImageFrom = math.MaxInt
				directory := sandboxTimes(b, o)
				o.ImageFrom = 1
				image := sandboxTimes(b, o)
				for i, name := range append([]string{"start"}, fileCommands...) {
					b.Logf("%6d files, %-26s native %6.0f ms, directory %6.0f ms, image %6.0f ms", n, name, native[i], directory[i], image[i])
				}
			}
		})
	}
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

func nativeTimes(b *testing.B, dir string) []float64 {
	b.Helper()
	took := []float64{0}
	for _, text := range fileCommands {
		begin := time.Now()
		cmd := exec.Command("/bin/bash", "-c", text+" > /dev/null")
		cmd.Dir = dir
		_ = cmd.Run() // grep finds nothing
		took = append(took, ms(time.Since(begin)))
	}
	return took
}

func sandboxTimes(b *testing.B, o Options) []float64 {
	b.Helper()
	r := testRunner(b, o)
	var took []float64
	for _, text := range append([]string{"true"}, fileCommands...) {
		x := proposal.Execution{ID: "x", Text: text + " > /dev/null", Grant: proposal.Grant{Limits: o.Limits}}
		begin := time.Now()
		if result, err := r.Run(b.Context(), x); err != nil || result.ExitCode > 1 {
			b.Fatalf("%s: %v, %s %d %s", text, err, result.Status, result.ExitCode, result.Stderr.Head)
		}
		took = append(took, ms(time.Since(begin)))
	}
	return took
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
