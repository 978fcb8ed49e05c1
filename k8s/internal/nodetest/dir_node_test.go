// SPDX-License-Identifier: Apache-2.0

//go:build node

package nodetest

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// abandoned makes the directory of a node whose test was killed, with a process and a mount.
func abandoned(t *testing.T) (string, *os.File, *exec.Cmd) {
	t.Helper()
	dir, lock, err := newDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = at(dir).force() })
	t.Cleanup(func() { lock.Close() })
	mount, old := filepath.Join(dir, "mount"), time.Now().Add(-time.Hour)
	err = errors.Join(os.Mkdir(mount, 0o700), unix.Mount("none", mount, "tmpfs", 0, ""))
	cmd := exec.Command("tail", "-f", "/dev/null", dir+"/c.sock")
	if err := errors.Join(err, os.WriteFile(dir+"/c.sock", nil, 0o600), os.Chtimes(dir, old, old), cmd.Start()); err != nil {
		t.Fatal(err)
	}
	return dir, lock, cmd
}

// A node of a process that was killed is removed; one in use and a new one are not.
func TestSweep(t *testing.T) {
	held, _, _ := abandoned(t)
	young, youngLock, _ := abandoned(t)
	gone, goneLock, process := abandoned(t)
	now := time.Now()
	if err := errors.Join(os.Chtimes(young, now, now), youngLock.Close(), goneLock.Close(), sweep()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(gone); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the abandoned node is still there: %v", err)
	}
	var killed *exec.ExitError
	if err := process.Wait(); !errors.As(err, &killed) || killed.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the abandoned node's process ended with %v", err)
	}
	for _, dir := range []string{held, young} {
		if n := at(dir); len(n.Left()) != 2 {
			t.Errorf("left of %s: %q, want its process and mount", dir, n.Left())
		}
	}
}
