// SPDX-License-Identifier: Apache-2.0

// Package roottest stops the tests of packages that need root, to start sandboxes, make network
// namespaces, mount or change owners, at once if they do not run as root. Tests of packages that do
// not import it run without root.
package roottest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// RunTests runs the tests of a package, for a TestMain that does nothing else.
func RunTests(m *testing.M) {
	Check()
	os.Exit(m.Run())
}

// Check ends a test program that does not run as root. The first one of a go test says what to do.
func Check() {
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
	f, err := os.OpenFile(filepath.Join(filepath.Dir(filepath.Dir(program)), "needs-root"),
		os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		f.Close()
	}
	return !os.IsExist(err)
}
