// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Patterns find files in the workspace only, also below directories whose names are patterns.
func TestMatchPattern(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	for _, name := range []string{"a.go", "src/b.go", "src/x/c.go", "src/x/d.txt", "[s]*/e.go", ".git/f.go", outside + "/g.go"} {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for pattern, want := range map[string]string{
		"*.go": "a.go", "src/*.go": "src/b.go", "**/*.go": ".git/f.go [s]*/e.go a.go src/b.go src/x/c.go", "src/**/*.go": "src/b.go src/x/c.go",
		"src/**": "src/b.go src/x src/x/c.go src/x/d.txt", "s*/**/c.go": "src/x/c.go", "**/x/*.txt": "src/x/d.txt", "out": "out", "**/g.go": "", "../**/g.go": "", "missing/**": "",
	} {
		got, err := matchPattern(root, pattern)
		if slices.Sort(got); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, %v, want %q", pattern, got, err, want)
		}
	}
	for _, pattern := range []string{"**/a/**/b", "[", "**/["} {
		if got, err := matchPattern(root, pattern); err == nil {
			t.Errorf("%s: %q", pattern, got)
		}
	}
}
