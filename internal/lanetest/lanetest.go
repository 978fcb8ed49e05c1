// SPDX-License-Identifier: Apache-2.0

// Package lanetest keeps what a lane of tests promises: tests that start sandboxes or make network
// namespaces end at once if they do not run as root, and the short lane has no long test.
package lanetest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Main runs the tests of a package, for a TestMain that does nothing else.
func Main(m *testing.M) {
	CheckRoot()
	os.Exit(m.Run())
}

// SkipShort skips a test in the short lane: one that takes more than an eighth of a second.
func SkipShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("too long for the short lane; run without -short")
	}
}

// CheckRoot ends a test program that does not run as root. The first one of a go test says what to do.
func CheckRoot() {
	if os.Geteuid() == 0 {
		return
	}
	message := "needs root"
	if isFirst() {
		message = "the tests start sandboxes: run them as root, for example: sudo env PATH=\"$PATH\" go test ./...\n" +
			"CONTRIBUTING.md has the command for the tests that need no root."
	}
	fmt.Fprintln(os.Stderr, message)
	os.Exit(1)
}

// isFirst reports whether no other test program of the same go test called it before. Their
// directories are in one that go test makes and removes.
func isFirst() bool {
	program, err := os.Executable()
	if err != nil {
		return true
	}
	f, err := os.OpenFile(filepath.Join(filepath.Dir(filepath.Dir(program)), "needs-root"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		f.Close()
	}
	return !os.IsExist(err)
}
