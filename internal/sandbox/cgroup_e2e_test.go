// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/sample"
)

// A sandbox below a cgroup is bound by its limits, and leaves nothing in it.
func TestE2ECgroupParent(t *testing.T) {
	o := testOptions(t)
	o.Cgroup = newParent(t, "100000000")
	o.Limits.Memory = 512 << 20
	r := testRunner(t, o)
	if result := runText(t, r, "echo here"); !result.Succeeded() {
		t.Fatalf("did not run: %+v", result)
	}
	dir := r.current.cgroup.dirs["memory"]
	procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil || len(procs) == 0 || !strings.Contains(dir, o.Cgroup+"/") {
		t.Errorf("%s has the processes %q, %v", dir, procs, err)
	}
	if result := runText(t, r, "head -c 300000000 /dev/zero | tail"); result.Succeeded() {
		t.Errorf("300 MB fit into the 100 MB of the parent: %+v", result)
	}
}

// A thread that changes what a name refers to never gets the refused program to run:
// the decision is about the file that was opened. Where a command can change the
// content itself, the location is refused.
func TestE2ESwap(t *testing.T) {
	t.Parallel()
	attempts := sample.Rounds(t, 300, 30, 30)
	o, rec := gatedOptions(t)
	if err := os.WriteFile(filepath.Join(o.Workspace, "script"), []byte("#!/tmp/swapped\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := testRunner(t, o)
	for _, test := range []struct{ name, text string }{
		{"link", "/opt/bin/tricks swaplink %d /usr/bin/true /opt/bin/canary"},
		{"interpreter", "/opt/bin/tricks swaplink %d /usr/bin/true /opt/bin/canary /workspace/script"},
		{"file", "/opt/bin/tricks swapfile %d /usr/bin/true /opt/bin/canary"},
		{"script", "/opt/bin/tricks swapscript %d /usr/bin/true /opt/bin/canary"},
	} {
		t.Run(test.name, func(t *testing.T) {
			rec.reset(deny)
			out, _ := play(t, r, fmt.Sprintf(test.text, attempts))
			if strings.Contains(out, "CANARY") {
				t.Error("the refused program ran")
			}
			if len(rec.refused()) == 0 {
				t.Error("nothing was refused")
			}
			rec.reset(allow)
			if out, _ := play(t, r, fmt.Sprintf(test.text, 1)); !strings.Contains(out, "CANARY") {
				t.Error("it does not run when it is allowed")
			}
		})
	}
}
