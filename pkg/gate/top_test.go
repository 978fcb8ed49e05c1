// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/source/checkout"
	"github.com/fumehood/fumehood/pkg/proposal"
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
		if want == "" {
			continue
		}
		g := &Gate{o: Options{Workspace: filepath.Join(root, dir), Hide: []string{"src/keys"}}}
		if _, err := g.visibleWorkspace(t.Context()); proposal.FailureOf(err).Code != checkout.CodeHide {
			t.Errorf("%s: hidden paths: %v", dir, err)
		}
	}
}
