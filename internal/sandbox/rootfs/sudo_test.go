// SPDX-License-Identifier: Apache-2.0

package rootfs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// process writes the files of a process into the directory proc.
func process(t *testing.T, proc string, pid, parent int, program, environ string) {
	t.Helper()
	dir := filepath.Join(proc, fmt.Sprint(pid))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(dir, "exe")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"stat": fmt.Sprintf("%d (a) b (c) S %d 1 1", pid, parent), "environ": environ} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// The PATH of the person is that of the nearest sudo, however many processes are between.
func TestSudoPath(t *testing.T) {
	proc := t.TempDir()
	process(t, proc, 10, 1, "/usr/bin/bash", "PATH=/never")
	process(t, proc, 20, 10, "/usr/bin/sudo", "HOME=/home/dev\x00MYPATH=/no\x00PATH=/home/dev/.nvm/bin:/usr/bin\x00X=PATH=/no\x00")
	process(t, proc, 30, 20, "/usr/bin/sudo", "PATH=/home/dev/.nvm/bin:/usr/bin\x00")
	process(t, proc, 40, 30, "/usr/bin/env", "PATH=/secure")
	process(t, proc, 50, 10, "/usr/bin/make", "PATH=/never")
	process(t, proc, 60, 60, "/usr/bin/loop", "")
	process(t, proc, 70, 1, "/usr/bin/sudo", "HOME=/root\x00")
	for pid, want := range map[int]string{
		20: "/home/dev/.nvm/bin:/usr/bin", 40: "/home/dev/.nvm/bin:/usr/bin", // of 30
		50: "", // nothing above it is sudo
		60: "", 70: "", 80: "",
	} {
		if got := sudoPath(proc, pid); got != want {
			t.Errorf("%d: got %q, want %q", pid, got, want)
		}
	}
}

func TestJoinPath(t *testing.T) {
	for _, tt := range []struct{ first, then, want string }{
		{"", "/usr/bin", "/usr/bin"},
		{"/home/dev/bin:/usr/bin", "/usr/sbin:/usr/bin", "/home/dev/bin:/usr/bin:/usr/sbin"},
	} {
		if got := joinPath(tt.first, tt.then); got != tt.want {
			t.Errorf("%q, %q: got %q, want %q", tt.first, tt.then, got, tt.want)
		}
	}
}

func TestIsSystemPath(t *testing.T) {
	for path, want := range map[string]bool{
		"": true, "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/snap/bin": true,
		"/usr/bin:/home/dev/bin": false, "/opt/go/bin:/usr/bin": false, "bin": false,
	} {
		if got := isSystemPath(path); got != want {
			t.Errorf("%q: got %t, want %t", path, got, want)
		}
	}
}
