// SPDX-License-Identifier: Apache-2.0

package installtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fumehood/fumehood/internal/sandbox/install"
)

// PlainRunsc returns upstream's runsc, made by a plain "go build" of the pinned
// version, as a baseline for benchmarks. It is built once, next to the cache's
// builds.
func PlainRunsc(t testing.TB) string {
	t.Helper()
	path := filepath.Join(filepath.Dir(Runsc(t).Path), "..", "..", "plain", install.GVisorVersion, "runsc")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	t.Log("building upstream's runsc for comparison")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, "gvisor.dev/gvisor/runsc")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot build upstream's runsc: %v\n%s", err, out)
	}
	return path
}
