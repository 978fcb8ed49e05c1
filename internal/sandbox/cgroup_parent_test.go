// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
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

// So does one whose process was killed.
func TestReapInParent(t *testing.T) {
	s, err := claimedIn(t.TempDir(), newParent(t, "100000000"))
	if err != nil {
		t.Fatal(err)
	}
	s.root.Close()
	reapUntil(t, s.checkGone)
}
