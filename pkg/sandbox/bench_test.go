// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/sandbox/install/installtest"
)

// BenchmarkCold is a sandbox from nothing to the result of its first command, with
// everything on (cgroups, limits, sink, overlay, what changed), beside runsc as a
// plain "go build" makes it, with its default flags, on the same tree. One of each
// in turn. Budget: ratio at most 0.7.
//
//	go test ./pkg/sandbox -run '^$' -bench Cold -benchtime 30x
func BenchmarkCold(b *testing.B) {
	o := testOptions(b)
	plain, bundle := installtest.Plain(b), plainBundle(b, o)
	x := proposal.Execution{ID: "x", Argv: []string{"/bin/true"}, Grant: proposal.Grant{Limits: testLimits()}}
	var ours, theirs []time.Duration
	for b.Loop() {
		time.Sleep(100 * time.Millisecond)
		begin := time.Now()
		r := New(o)
		if _, err := r.Run(b.Context(), x); err != nil {
			b.Fatal(err)
		}
		ours = append(ours, time.Since(begin))
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		begin = time.Now()
		id := fmt.Sprintf("plain-%d", begin.UnixNano())
		cmd := exec.Command(plain, "--root="+filepath.Dir(bundle), "--network=none", "run", "--bundle="+bundle, id)
		cmd.Env = []string{}
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		theirs = append(theirs, time.Since(begin))
	}
	b.ReportMetric(median(ours), "ours-ms")
	b.ReportMetric(median(theirs), "plain-ms")
	b.ReportMetric(median(ours)/median(theirs), "ratio")
}

func median(took []time.Duration) float64 {
	slices.Sort(took)
	return float64(took[len(took)/2].Microseconds()) / 1000
}

// plainBundle is the same tree in an ordinary bundle: no init, no overlay of ours.
func plainBundle(b *testing.B, o Options) string {
	b.Helper()
	// The sandbox of a runsc with default flags must be able to pass the folders.
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
		Trees: []Bind{{o.Workspace, "/workspace"}}, UID: guestID, GID: guestID, Limits: testLimits(),
	}
	for _, d := range []string{l.Root, l.Upper} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			b.Fatal(err)
		}
	}
	if err := l.skeleton(); err != nil {
		b.Fatal(err)
	}
	for link, target := range o.Links {
		if err := os.Symlink(target, filepath.Join(l.Root, link)); err != nil {
			b.Fatal(err)
		}
	}
	spec, err := l.spec()
	if err != nil {
		b.Fatal(err)
	}
	spec.Process.Args = []string{"/bin/true"}
	spec.Annotations, spec.Linux.CgroupsPath, spec.Linux.Resources = nil, "", nil
	data, err := json.Marshal(spec)
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bundle, "config.json"), data, 0o600); err != nil {
		b.Fatal(err)
	}
	return bundle
}
