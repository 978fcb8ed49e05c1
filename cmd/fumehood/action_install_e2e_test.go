// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// sudoUser is the id of the user bin, to whom allowSudo gives sudo. No test gives it to user 65534.
const sudoUser = 2

// allowSudo allows sudo without a password to sudoUser until the end of the test, as the user of a
// hosted runner has it. use_pty is the default of Ubuntu 24.04.
func allowSudo(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("sudo"); err != nil {
		t.Fatalf("%v; .ci/run installs it", err)
	}
	rule := "/etc/sudoers.d/fumehood-" + t.Name()
	if err := os.WriteFile(rule, []byte("Defaults use_pty\nbin ALL=(root) NOPASSWD: ALL\n"), 0o440); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(rule) })
}

// A user with sudo gets programs that the user cannot change, and stays that user.
func TestE2EInstallWithSudo(t *testing.T) {
	t.Parallel()
	allowSudo(t)
	i := newInstaller(t, members())
	i.user = sudoUser
	for range 2 { // installed, then found installed
		stdout, stderr, code := i.run(t)
		wantStarted(t, stdout, stderr, code, i.installed("fumehood"))
		if !strings.Contains(stdout, fmt.Sprintf("user: %d\n", sudoUser)) {
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
	i.must(t, os.Chown(i.installed("fumehood"), sudoUser, sudoUser))
	stdout, stderr, code := i.run(t)
	i.wantRefused(t, stdout, stderr, code, "install.folder", "does not belong to user 0")
}

// A server that never ends its response, without a Content-Length, does not fill
// the disk.
func TestE2EInstallFromAnEndlessServer(t *testing.T) {
	t.Parallel()
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
