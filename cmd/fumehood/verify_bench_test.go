// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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

// plainBuild builds fumehood alone; the test binary is larger. What the linker wrote is dropped
// from the page cache, to be read from the disk as an installed program is: the kernel maps more
// of a file that was just written in large pieces, up to 38 MB.
func plainBuild(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fumehood")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-ldflags", "-s -w", "-o", path, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot build fumehood: %v\n%s", err, out)
	}
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		err = errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// measure runs a program and prints its processor time in milliseconds and the most memory it
// had in KiB. It is a small process of its own: the kernel counts what the process that starts
// a program has as that program's memory.
const measure = `
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=sys.stderr)
u = resource.getrusage(resource.RUSAGE_CHILDREN)
print(round(1000 * (u.ru_utime + u.ru_stime)), u.ru_maxrss)
`

// measured returns the processor time of a program and the most memory it had. Unlike wall
// time, neither depends much on how busy the host is.
func measured(t testing.TB, args ...string) (took time.Duration, bytes int64) {
	t.Helper()
	out, err := exec.Command("python3", append([]string{"-c", measure}, args...)...).Output()
	if err != nil {
		t.Fatalf("%v: %.300s", err, out)
	}
	var ms, kib int64
	if _, err := fmt.Sscan(string(out), &ms, &kib); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return time.Duration(ms) * time.Millisecond, kib << 10
}

// BenchmarkVerifyTenThousand is fumehood verify of a log of 10,000 entries, with the start of
// the process. It fails above one second of processor time, and above 64 MB of memory. Most of
// that is the program's own code: pages of its file, which the kernel can drop.
func BenchmarkVerifyTenThousand(b *testing.B) {
	path, key := tenThousand(b)
	fumehood := plainBuild(b)
	_, base := measured(b, fumehood, "version")
	var took time.Duration
	var most int64
	for b.Loop() {
		t, memory := measured(b, fumehood, "verify", path, "--key", key)
		took, most = max(took, t), max(most, memory)
	}
	b.ReportMetric(float64(took.Milliseconds()), "cpu-ms")
	b.ReportMetric(float64(most)/1e6, "MB")
	b.ReportMetric(float64(base)/1e6, "MB-version")
	if took > time.Second || most > 64e6 {
		b.Errorf("%v, %d bytes", took, most)
	}
}
