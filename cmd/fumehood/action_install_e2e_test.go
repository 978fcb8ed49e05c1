// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
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
func TestE2EInstallWithSudo(t *testing.T) {
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
func TestE2EInstallFromAnEndlessServer(t *testing.T) {
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
