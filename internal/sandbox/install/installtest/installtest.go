// SPDX-License-Identifier: Apache-2.0

// Package installtest gives tests a real, verified fumehood-runsc. Tests that
// need one fail without it; they are never skipped.
package installtest

import (
	"sync"
	"testing"

	"github.com/fumehood/fumehood/internal/sandbox/install"
)

var (
	mu    sync.Mutex
	found install.Runsc
)

// Runsc returns the installation of the sources under test, and builds it if no
// test process has done so before. It fails the test if it cannot.
func Runsc(t testing.TB) install.Runsc {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	if found.Path != "" && found.CheckUnchanged() == nil {
		return found
	}
	r, err := install.Find(t.Context(), install.Options{
		Build:    true,
		Progress: func(line string) { t.Log(line) },
	})
	if err != nil {
		t.Fatalf("cannot test without a sandbox: %v", err)
	}
	found = r
	return r
}
