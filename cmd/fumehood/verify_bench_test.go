// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/audit"
)

// tenThousand is a sealed log of 10,000 entries of a decision's usual size, and its key.
func tenThousand(t testing.TB) (path, key string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := audit.Create(path, audit.Options{Origin: "fumehood.example/test"})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	reason := strings.Repeat("a reason of some length. ", 40)
	for n := range 10_000 {
		if _, err := log.Write("decision", map[string]any{"id": fmt.Sprint("p", n), "run": "go test ./...", "reason": reason}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := log.Seal(); err != nil {
		t.Fatal(err)
	}
	return path, log.Key()
}

// measured runs fumehood as a process, and returns its processor time and the most memory it
// had. Unlike wall time, neither depends much on how busy the host is.
func measured(t testing.TB, args ...string) (time.Duration, int64) {
	t.Helper()
	cmd := exec.Command(fumehood(t), args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %.300s", err, out)
	}
	used := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), used.Maxrss << 10
}

// BenchmarkVerifyTenThousand is fumehood verify of a log of 10,000 entries, with the start of
// the process. It fails above one second of processor time, and above 16 MB more memory than
// fumehood version, most of which is the program's own code.
func BenchmarkVerifyTenThousand(b *testing.B) {
	path, key := tenThousand(b)
	_, base := measured(b, "version")
	var took time.Duration
	var most int64
	for b.Loop() {
		t, memory := measured(b, "verify", path, "--key", key)
		took, most = max(took, t), max(most, memory)
	}
	b.ReportMetric(float64(took.Milliseconds()), "cpu-ms")
	b.ReportMetric(float64(most)/1e6, "MB")
	b.ReportMetric(float64(most-base)/1e6, "MB-more")
	if took > time.Second || most-base > 16e6 {
		b.Errorf("%v, %d bytes more than %d", took, most-base, base)
	}
}
