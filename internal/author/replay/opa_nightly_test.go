// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package replay_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/author/replay"
	"github.com/fumehood/fumehood/internal/author/starter"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/internal/policy/opatest"
	"github.com/fumehood/fumehood/policies"
)

// TestNightlyRealOPA: the real opa checks, formats and tests the shipped policy, what init writes
// and what suggest writes, with the capabilities that policy authors have. The shipped
// policy's own tests call fumehood's built-ins, which only fumehood policy test has.
func TestNightlyRealOPA(t *testing.T) {
	capabilities, err := module.EditorCapabilities()
	if err != nil {
		t.Fatal(err)
	}
	initial, err := starter.WritePolicy(t.TempDir(), starter.PolicyKinds())
	if err != nil {
		t.Fatal(err)
	}
	suggestion, _ := suggested(t, engineOf(t), ran("go test -race ./pkg/a", "npm run lint", "CI=1 make build", "git log --oneline | head -n 5"), replay.Wanted{AtLeast: 1})
	for name, c := range map[string]struct {
		dir   string
		tests int // at least so many
	}{
		"shipped": {writeFiles(t, shippedFiles(t)), 0}, "init": {initial.Dir, 2 * len(starter.PolicyKinds())}, "suggest": {writeFiles(t, suggestion.Files()), 0},
	} {
		t.Run(name, func(t *testing.T) {
			list := filepath.Join(t.TempDir(), "capabilities.json")
			if err := os.WriteFile(list, capabilities, 0o644); err != nil {
				t.Fatal(err)
			}
			opatest.Run(t, "check", "--strict", "--capabilities", list, c.dir)
			if out := opatest.Run(t, "fmt", "--list", c.dir); out != "" {
				t.Errorf("opa fmt would change:\n%s", out)
			}
			if c.tests == 0 {
				return
			}
			if out := opatest.Run(t, "test", "--verbose", "--capabilities", list, c.dir); strings.Count(out, ": PASS (") < c.tests {
				t.Errorf("fewer than %d tests passed:\n%s", c.tests, out)
			}
		})
	}
}

// shippedFiles are the files of the shipped policy with its tests.
func shippedFiles(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := fs.WalkDir(policies.FS, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files[name], err = fs.ReadFile(policies.FS, name)
		}
		return err
	})
	if err != nil || len(files) < 100 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	return files
}

// writeFiles writes files to a new directory and returns its path.
func writeFiles(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
