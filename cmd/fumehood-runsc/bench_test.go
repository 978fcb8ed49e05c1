// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/sandbox/install/installtest"
)

// BenchmarkCold starts a sandbox for /bin/true and waits for its end: with our
// binary, with runsc from a plain "go build" and our flags, and with that runsc and
// its default flags. The three alternate, so that other load on the machine affects
// all alike. The figures are medians; ratio is ours divided by the plain default.
//
//	go test ./cmd/fumehood-runsc -run '^$' -bench Cold -benchtime 40x
func BenchmarkCold(b *testing.B) {
	closeOnExec(b)
	ours, plain := installtest.Runsc(b), installtest.PlainRunsc(b)
	if !ours.Prewarmed {
		b.Log(ours.PrewarmerNote)
	}
	dir := bundle(b, "/bin/true")
	state := "--root=" + stateDir(b)
	lean := []string{state, "--platform=systrap", "--network=none", "--ignore-cgroups"}
	contestants := []struct {
		name, path string
		flags      []string
		took       []time.Duration
	}{
		{name: "ours-ms", path: ours.Path, flags: lean},
		{name: "ours-no-directfs-ms", path: ours.Path, flags: append(slices.Clone(lean), "--directfs=false")},
		{name: "plain-same-flags-ms", path: plain, flags: lean},
		{name: "plain-default-ms", path: plain, flags: []string{state, "--network=none"}},
	}
	run := 0
	for b.Loop() {
		for i := range contestants {
			c := &contestants[(i+run)%len(contestants)]
			// The kernel's cleanup after the last sandbox must not delay the next
			// one; on a busy machine it also hides the prewarmer's gain.
			time.Sleep(100 * time.Millisecond)
			id := "cold-" + strconv.Itoa(1_000_000+run*10+i)
			begun := time.Now()
			if out, err := runsc(b, c.path, append(slices.Clone(c.flags), "run", "--bundle="+dir, id)...).CombinedOutput(); err != nil {
				b.Fatalf("%s: %v\n%s", c.name, err, out)
			}
			c.took = append(c.took, time.Since(begun))
		}
		run++
	}
	for _, c := range contestants {
		b.ReportMetric(median(c.took), c.name)
	}
	b.ReportMetric(median(contestants[0].took)/median(contestants[3].took), "ratio")
}

func median(took []time.Duration) float64 {
	slices.Sort(took)
	return float64(took[len(took)/2].Microseconds()) / 1000
}

// closeOnExec keeps inherited high descriptors out of the sandboxes: with one, the
// sentry's file table is large from the start, which hides what the prewarmer saves.
func closeOnExec(b *testing.B) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		b.Fatal(err)
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}
