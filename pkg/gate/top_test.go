// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBelowTop(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"repo/.git", "repo/a b/c", "plain/.git", "plain/a", "tree/a"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"repo/.git/HEAD": "ref: refs/heads/main\n", "tree/.git": "gitdir: /elsewhere\n"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for dir, want := range map[string]string{"repo": "", "tree": "", "plain/a": "", "nowhere": "",
		"repo/a b/c": "--workspace " + root + "/repo, and cwd: 'a b/c' in", "tree/a": "--workspace " + root + "/tree, and cwd: a in"} {
		got := belowTop(filepath.Join(root, dir))
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", dir, got, want)
		}
	}
}
