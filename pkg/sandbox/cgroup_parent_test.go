// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newParent makes a cgroup with a limit of memory, and returns its path under cgroupMount.
func newParent(t *testing.T, limit string) string {
	t.Helper()
	parent := fmt.Sprintf("/fumehood-test-%d", os.Getpid())
	c, err := newCgroup(cgroupMount, "", parent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.remove(); err != nil {
			t.Errorf("something is left in the parent: %v", err)
		}
	})
	for _, name := range []string{"memory.limit_in_bytes", "memory.max"} {
		path := filepath.Join(c.dirs["memory"], name)
		if _, err := os.Stat(path); err == nil {
			if err := os.WriteFile(path, []byte(limit), 0); err != nil {
				t.Fatal(err)
			}
			return parent
		}
	}
	t.Fatal("the cgroup has no limit of memory")
	return ""
}

// A sandbox below a cgroup is bound by its limits, and leaves nothing in it.
func TestCgroupParent(t *testing.T) {
	o := testOptions(t)
	o.Cgroup = newParent(t, "100000000")
	o.Limits.Memory = 512 << 20
	r := testRunner(t, o)
	if result := runText(t, r, "echo here"); !result.Succeeded() {
		t.Fatalf("did not run: %+v", result)
	}
	dir := r.current.cgroup.dirs["memory"]
	procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil || len(procs) == 0 || !strings.Contains(dir, o.Cgroup+"/") {
		t.Errorf("%s has the processes %q, %v", dir, procs, err)
	}
	if result := runText(t, r, "head -c 300000000 /dev/zero | tail"); result.Succeeded() {
		t.Errorf("300 MB fit into the 100 MB of the parent: %+v", result)
	}
}

// So does one whose process was killed.
func TestReapInParent(t *testing.T) {
	s, err := claimedIn(t.TempDir(), newParent(t, "100000000"))
	if err != nil {
		t.Fatal(err)
	}
	s.root.Close()
	reapUntil(t, s.checkGone)
}
