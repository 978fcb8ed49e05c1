// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestReadHost(t *testing.T) {
	h := ReadHost()
	uname, err := exec.CommandContext(t.Context(), "uname", "-r").Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.TrimSpace(string(uname)); h.Kernel != want {
		t.Errorf("Kernel = %q, uname says %q", h.Kernel, want)
	}
	id, err := exec.CommandContext(t.Context(), "id", "-u").Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.TrimSpace(string(id)) == "0"; h.Root != want {
		t.Errorf("Root = %t, id says %s", h.Root, id)
	}
	if !slices.Contains([]string{"v2", "v1", "hybrid", "none"}, h.Cgroup) {
		t.Errorf("Cgroup = %q", h.Cgroup)
	}
	if !slices.Contains([]string{"0", "1", "2", "3", "none"}, h.PtraceScope) {
		t.Errorf("PtraceScope = %q", h.PtraceScope)
	}
}

func TestReadHostWithNothingInPath(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if h := ReadHost(); h.Go != "" || h.CCompiler != "" || h.MkfsErofs != "" {
		t.Errorf("found %+v in an empty folder", h)
	}
}
