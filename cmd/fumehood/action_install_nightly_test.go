// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// In a checkout of this repository, the action builds itself, once for the program
// and once for the sandbox. Running it needs no Go.
func TestNightlyInstallFromSource(t *testing.T) {
	i := newInstaller(t, members())
	root, err := filepath.Abs("../..")
	i.must(t, err)
	home, err := os.UserHomeDir()
	i.must(t, err)
	// Outside of a job, the action reports that; any message shows that it started.
	stdout, stderr, code := i.run(t, "GITHUB_ACTION_PATH="+root, "FUMEHOOD_FROM_SOURCE=1", "PATH="+os.Getenv("PATH"), "HOME="+home)
	if code != exitStopped || strings.Contains(stderr, "install.") {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	found, err := filepath.Glob(filepath.Join(i.place, "*", "fumehood"))
	if err != nil || len(found) != 1 {
		t.Fatalf("installed: %q (%v)", found, err)
	}
	// The next job finds the build, and needs no Go: in the tool cache, or where a step of its
	// workflow restored what fumehood-release built on the default branch.
	withoutGo := []string{"GITHUB_ACTION_PATH=" + root, "FUMEHOOD_FROM_SOURCE=1", "PATH=/usr/bin:/bin"}
	stdout, stderr, code = i.run(t, withoutGo...)
	if code != exitStopped || !strings.Contains(stdout, ", from the tool cache, built from the same sources\n") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	release := exec.CommandContext(t.Context(), "go", "run", "./tools/release", "--arch", runtime.GOARCH, "--out", i.path("temp/restored"))
	release.Dir = root
	if out, err := release.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	i.must(t, os.RemoveAll(i.path("tools")))
	stdout, stderr, code = i.run(t, append(withoutGo, "FUMEHOOD_SOURCE_CACHE="+i.path("temp/restored"))...)
	if code != exitStopped || !strings.Contains(stdout, ", from "+i.path("temp/restored")+"\n") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	cmd := exec.CommandContext(t.Context(), found[0], "doctor")
	cmd.Env = []string{"PATH=/usr/bin:/bin", "FUMEHOOD_CACHE=" + i.path("cache")}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "runsc          v0.0.0-") {
		t.Errorf("doctor: %v\n%s", err, out)
	}
}
