// SPDX-License-Identifier: Apache-2.0

//go:build node

package task

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/containerd/cgroups/v3"
)

// A cgroup that runsc has left is removed if it is the container's and empty, and nothing is killed.
func TestRemoveEmpty(t *testing.T) {
	top := cgroupMount
	if cgroups.Mode() != cgroups.Unified {
		top = filepath.Join(top, "pids")
	}
	parent := fmt.Sprintf("/fumehood-test-%d", os.Getpid())
	own, inner, other := parent+"/0123abcd", parent+"/0123abcd/inner", parent+"/other"
	for _, path := range []string{inner, other} {
		if err := os.MkdirAll(top+path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := removeCgroup(parent, 0); err != nil {
			t.Error(err)
		}
	})
	exists := func(path string) bool { _, err := os.Lstat(top + path); return err == nil }
	for _, name := range []string{"", "/", parent, other, own + "/inner"} {
		if err := removeEmpty(name, "0123abcd"); err != nil || !exists(inner) || !exists(other) {
			t.Errorf("%q, which is not the container's: %v", name, err)
		}
	}
	runs := exec.Command("sleep", "60")
	if err := runs.Start(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(top+own+"/cgroup.procs", fmt.Append(nil, runs.Process.Pid), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := removeEmpty(own, "0123abcd"); err == nil || !exists(own) {
		t.Errorf("with a process in it: %v", err)
	}
	if err := runs.Process.Signal(os.Kill); err != nil { // it runs
		t.Error(err)
	}
	_ = runs.Wait() // it was killed
	if err := removeEmpty(own, "0123abcd"); err != nil || exists(own) || !exists(other) {
		t.Errorf("an empty one: %v", err)
	}
}
