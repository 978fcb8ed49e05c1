// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package install

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestE2EPrewarmerGrowsTheFileTable(t *testing.T) {
	dir := fakeRunsc(t)
	if note := buildPrewarmer(t.Context(), dir); note != "" {
		t.Fatalf("this test needs a C compiler: %s", note)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, prewarmerName), "/bin/cat", "not-cat", "/proc/self/status", "/proc/self/environ")
	cmd.Env = []string{"CANARY=seen"}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot run cat through the prewarmer: %v", err)
	}
	for _, want := range []string{"FDSize:\t256\n", "CANARY=seen"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("through the prewarmer cat does not see %q:\n%s", want, out)
		}
	}
}

func TestE2EPrewarmerWithoutAProgram(t *testing.T) {
	dir := fakeRunsc(t)
	if note := buildPrewarmer(t.Context(), dir); note != "" {
		t.Fatalf("this test needs a C compiler: %s", note)
	}
	for name, args := range map[string][]string{"no argument": {}, "no name": {"/bin/true"}, "no such program": {"/nonexistent", "x"}} {
		err := exec.CommandContext(t.Context(), filepath.Join(dir, prewarmerName), args...).Run()
		if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 127 {
			t.Errorf("%s: %v, want exit status 127", name, err)
		}
	}
}
