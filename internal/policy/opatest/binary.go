// SPDX-License-Identifier: Apache-2.0

package opatest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// version is the version whose bundles fumehood promises to read, and that reads
// fumehood's. Its tools accept fumehood's policies.
const version = "v1.22.0"

// Binary returns the path of the real opa. The first call of a machine builds it from its Go
// module, whose dependencies are separate from this module's: that takes minutes and a Go
// proxy. It fails t if it cannot.
func Binary(t testing.TB) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "fumehood-test", "opa-"+version)
	opa := filepath.Join(dir, "opa")
	if _, err := os.Stat(opa); err == nil {
		return opa
	}
	cmd := exec.CommandContext(t.Context(), "go", "install", "github.com/open-policy-agent/opa@"+version)
	cmd.Env, cmd.Dir = append(os.Environ(), "GOBIN="+dir, "GOFLAGS="), t.TempDir()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return opa
}

// Run runs the real opa and returns what it prints. It fails t if opa fails.
func Run(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), Binary(t), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("opa %q: %v\n%s", args, err, out)
	}
	return string(out)
}
