// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// TestCheckTools names a tool that is another one inside, with the fix.
func TestCheckTools(t *testing.T) {
	dir := t.TempDir() // below /tmp, from which policy starts no programs
	bin := filepath.Join(dir, "x", "bin")
	for _, err := range []error{os.MkdirAll(bin, 0o755), os.Mkdir(filepath.Join(dir, "x", "lib"), 0o755), os.WriteFile(filepath.Join(bin, "bash"), []byte("#!/bin/sh"), 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	checks := checkTools(t.Context(), bin+":/usr/bin")
	if len(checks) != 2 || checks[0].State != OK || checks[1].State != Limited || checks[1].Fix == "" ||
		!strings.HasPrefix(checks[1].Detail, "bash is /usr/bin/bash inside, not "+bin+"/bash as in your PATH, because ") {
		t.Errorf("%+v", checks)
	}
	if checks := checkTools(t.Context(), "/usr/bin"); len(checks) != 1 {
		t.Errorf("%+v", checks)
	}
}

func TestCheckMachine(t *testing.T) {
	limits := proposal.Limits{Memory: 512 * proposal.MiB, CPUs: 1}
	for seen, want := range map[string]string{"MemTotal:         524288 kB\n2\n": "ok", "MemTotal:       24682736 kB\n8\n": "limited", "": "limited"} {
		if k := checkMachine(seen, limits); k.State != want || k.Detail == "" || (k.Fix == "") != (want == "ok") {
			t.Errorf("%q: %+v, want %s", seen, k, want)
		}
	}
}
