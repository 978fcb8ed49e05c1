// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// nobodyMaySudo disables sudo without a password, which the user of a hosted runner
// has, until the end of the test. use_pty is the default of Ubuntu 24.04.
func nobodyMaySudo(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("sudo"); err != nil {
		t.Fatalf("%v; .ci/run installs it", err)
	}
	const rule = "/etc/sudoers.d/fumehood-e2e"
	if err := os.WriteFile(rule, []byte("Defaults use_pty\nnobody ALL=(root) NOPASSWD: ALL\n"), 0o440); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(rule) })
}

// A user with sudo gets programs that the user cannot change, and stays that user.
func TestInstallWithSudo(t *testing.T) {
	nobodyMaySudo(t)
	i := newInstaller(t, members())
	i.user = 65534
	for range 2 { // installed, then found installed
		stdout, stderr, code := i.run(t)
		wantStarted(t, stdout, stderr, code, i.installed("fumehood"))
		if !strings.Contains(stdout, "user: 65534\n") {
			t.Errorf("fumehood runs as another user:\n%s", stdout)
		}
	}
	for path := i.installed("gvisor-bin/gvisor_sentry"); path != "/"; path = filepath.Dir(path) {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Sys().(*syscall.Stat_t).Uid != 0 || info.Mode().Perm()&0o022 != 0 {
			t.Errorf("%s can be changed by others: %v", path, info.Mode())
		}
	}
	i.must(t, os.Chown(i.installed("fumehood"), 65534, 65534))
	stdout, stderr, code := i.run(t)
	i.wantRefused(t, stdout, stderr, code, "install.folder", "does not belong to user 0")
}

// A server that never ends its response, without a Content-Length, does not fill
// the disk.
func TestInstallFromAnEndlessServer(t *testing.T) {
	i := newInstaller(t, members())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		zeros := make([]byte, 1<<20)
		for {
			if _, err := w.Write(zeros); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	stdout, stderr, code := i.run(t, "FUMEHOOD_RELEASE_URL="+server.URL)
	i.wantRefused(t, stdout, stderr, code, "install.download", "cannot download http://127.0.0.1:")
}

// In a checkout of this repository, the action builds itself, once for the program
// and once for the sandbox. Running it needs no Go.
func TestInstallFromSource(t *testing.T) {
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
	release := exec.CommandContext(t.Context(), "go", "run", "./cmd/fumehood-release", "--arch", runtime.GOARCH, "--out", i.path("temp/restored"))
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
