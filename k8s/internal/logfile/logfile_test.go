// SPDX-License-Identifier: Apache-2.0

package logfile

import (
	"os"
	"path/filepath"
	"testing"
)

// A reader sees whether a gate lives, and is never in the way of one.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	want := func(locked bool) {
		t.Helper()
		if got, err := Locked(reader); got != locked || err != nil {
			t.Errorf("locked: %t, %v", got, err)
		}
	}
	want(false)
	gate, err := Lock(path) // although the reader has asked
	if err != nil {
		t.Fatal(err)
	}
	want(true)
	if _, err := Lock(path); err == nil {
		t.Error("two gates have the log")
	}
	want(true)
	if err := gate.Close(); err != nil {
		t.Fatal(err)
	}
	want(false)
	if _, err := Lock(path + "x"); err == nil {
		t.Error("a missing file is locked")
	}
}
