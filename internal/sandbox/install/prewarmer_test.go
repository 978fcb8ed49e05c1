// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/testprogram"
)

// fakeRunsc makes the files on which buildPrewarmer tests its result.
func fakeRunsc(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, sidecarDir), 0o755); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\necho runsc version " + GVisorVersion + "\n"
	testprogram.WriteExecutable(t, filepath.Join(dir, runscName), script)
	return dir
}

func TestWithoutACompilerTheNoteSaysTheCost(t *testing.T) {
	for name, setUp := range map[string]func(t *testing.T, bin string){
		"no compiler": func(*testing.T, string) {},
		"one that cannot": func(t *testing.T, bin string) {
			testprogram.WriteExecutable(t, filepath.Join(bin, "cc"), "#!/bin/sh\nexit 1\n")
		},
		"one that builds nonsense": func(t *testing.T, bin string) {
			script := "#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\nprintf '#!/bin/sh\\n' > \"$2\"\n"
			testprogram.WriteExecutable(t, filepath.Join(bin, "cc"), script)
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
