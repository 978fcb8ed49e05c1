// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeRunsc makes the files on which buildPrewarmer tests its result.
func fakeRunsc(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, sidecarDir), 0o755); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\necho runsc version " + GVisorVersion + "\n"
	if err := os.WriteFile(filepath.Join(dir, runscName), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestPrewarmerGrowsTheFileTable(t *testing.T) {
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

func TestPrewarmerWithoutAProgram(t *testing.T) {
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

func TestWithoutACompilerTheNoteSaysTheCost(t *testing.T) {
	for name, setUp := range map[string]func(t *testing.T, bin string){
		"no compiler": func(*testing.T, string) {},
		"one that cannot": func(t *testing.T, bin string) {
			if err := os.WriteFile(filepath.Join(bin, "cc"), []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		},
		"one that builds nonsense": func(t *testing.T, bin string) {
			script := "#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\nprintf '#!/bin/sh\\n' > \"$2\"\n"
			if err := os.WriteFile(filepath.Join(bin, "cc"), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, bin := fakeRunsc(t), t.TempDir()
			setUp(t, bin)
			t.Setenv("PATH", bin)
			if note := buildPrewarmer(t.Context(), dir); !strings.Contains(note, prewarmerCost) {
				t.Errorf("note = %q, want it to say %q", note, prewarmerCost)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, sidecarDir, "*")); len(left) != 0 {
				t.Errorf("%q were left in gvisor-bin, where runsc would run them", left)
			}
		})
	}
}
