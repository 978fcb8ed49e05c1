// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package grammar

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestNightlyRebuild builds the modules from their pinned sources and compares them, byte
// for byte, with the embedded ones.
func TestNightlyRebuild(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("bash", "source/build", dir).CombinedOutput(); err != nil {
		t.Fatalf("cannot build: %v\n%s", err, out)
	}
	for language := range machines {
		built, err := os.ReadFile(filepath.Join(dir, language+".wasm"))
		if err != nil {
			t.Fatal(err)
		}
		committed, err := modules.ReadFile(language + ".wasm")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(built, committed) {
			t.Errorf("%s.wasm is not what source/build makes", language)
		}
	}
}
