// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func TestHiddenPathsCheck(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"", "/", ".", "..", "*", "**", "/*", "*/*", "**/*", "a/**/b", "**/a/b", "a**", "[a]", "a?", `a\b`, "!a", " a", "a ",
		"a\nb", "a\x00", "../a", "a/../b", "a//b", "//a", "\xff", "a\u202eb", `"a"`} {
		if (HiddenPaths{p}).Check() == nil {
			t.Errorf("%q is valid", p)
		}
	}
	h := HiddenPaths{"secrets/**", "*.pem", "/top", "**/any", "dir/", "a/*/c", "#x", "ü*"}
	if err := h.Check(); err != nil {
		t.Fatal(err)
	}
}

// Match and git read patterns alike: of each file with its own content, the copy has both or nothing.
func TestCopyVisiblePatterns(t *testing.T) {
	t.Parallel()
	c := newClone(t)
	files := map[string]string{}
	for _, name := range []string{"secrets/x", "secrets/deep/er/y", "lib/secrets/z", "secretsx/a", "Secrets/x", "a.pem", "src/b.pem", "src/b.pem.txt", ".pem", "dir.pem/in",
		"top", "src/top", "any/1", "src/any/2", "src/deep/any", "a/b/c", "a/b/d/c", "a/c", "#x", "über", "x/über/1", "x.y", "src/#x", "a b/c d", "-x", "x-", "$x", "(x)", "a+b", "*", "e*f"} {
		files[name] = "content of " + name
	}
	c.commit(files)
	for _, h := range []HiddenPaths{{"secrets/**"}, {"secrets"}, {"/secrets/"}, {"*.pem"}, {"/*.pem"}, {"/top", "**/any"}, {"a/*/c"}, {"*/b"}, {"#x", "ü*"}, {"x*", "*x"}, {"a*"}, {"src"},
		{"a b", "-x", "$x", "(x)", "a+b"}, {"src/**", "a/b"}, {"a/b/**"}, {"**/secrets/**"}, {"a/*"}} {
		if err := h.Check(); err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(t.TempDir(), "copy")
		if err := h.CopyVisible(t.Context(), c.dir, to); err != nil {
			t.Fatalf("%q: %v", h, err)
		}
		objects := everyObject(t, to)
		for name, content := range files {
			_, err := os.Lstat(filepath.Join(to, name))
			if in, there := strings.Contains(objects, content+"\n"), err == nil; in == h.Match(name) || there == h.Match(name) {
				t.Errorf("%q: %q is hidden: %t, but in the repository: %t, in the tree: %t", h, name, h.Match(name), in, there)
			}
		}
	}
}

// everyObject returns the contents of all objects of a repository.
func everyObject(t *testing.T, dir string) string {
	t.Helper()
	out, err := exec.Command("git", "-c", "safe.directory=*", "-C", dir, "cat-file", "--batch-all-objects", "--batch").Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// No content that has only hidden paths is in the copy, wherever the repository has it, and what needs none works.
func TestCopyVisible(t *testing.T) {
	t.Parallel()
	c := newClone(t)
	c.commit(map[string]string{"secrets/x": "SECRET one", "src/a": "one", "key.pem": "SECRET key", "secrets/shared": "shared", "src/shared": "shared"})
	c.git("tag", "-a", "-m", "first", "v1")
	c.git("tag", "blob", "HEAD:secrets/x")
	c.git("tag", "-a", "-m", "tree", "tree", "HEAD:secrets")
	c.commit(map[string]string{"secrets/x": "SECRET two", "src/a": "two"})
	c.git("branch", "other")
	c.git("update-ref", "refs/remotes/origin/main", "HEAD")
	c.git("update-ref", "refs/notes/commits", "HEAD")
	c.git("pack-refs", "--all")
	c.git("mv", "secrets/x", "moved")
	c.git("commit", "-q", "-m", "move")
	c.git("reset", "-q", "--hard", "HEAD~1") // of which only the reflog knows
	c.commit(map[string]string{"src/c": "three"})
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	write("secrets/x", "SECRET stash")
	c.git("stash", "-q")
	write("secrets/staged", "SECRET staged")
	c.git("add", "secrets/staged")
	write("secrets/untracked", "SECRET untracked")
	write("src/run", "new")
	if err := os.Chmod(filepath.Join(c.dir, "src/run"), 0o750); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"link": "secrets/x", "secrets/link": "../src/a", "out": "/etc/passwd"} {
		if err := os.Symlink(target, filepath.Join(c.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	nested := &clone{t, filepath.Join(c.dir, "sub")}
	if err := os.Mkdir(nested.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	nested.git("init", "-q", "--template=", "-b", "main")
	nested.commit(map[string]string{"file": "SECRET nested"})
	nested.commit(map[string]string{"file": "plain"})

	past := time.Unix(1e9, 0)
	for _, dir := range []string{".", "src"} {
		must(t, os.Chmod(filepath.Join(c.dir, dir), 0o550))
		must(t, os.Chtimes(filepath.Join(c.dir, dir), past, past))
	}
	copied := &clone{t, filepath.Join(t.TempDir(), "copy")}
	if err := (HiddenPaths{"secrets/**", "*.pem"}).CopyVisible(t.Context(), c.dir, copied.dir); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{".", "src"} {
		info, err := os.Stat(filepath.Join(copied.dir, dir))
		if err != nil || info.Mode().Perm() != 0o550 || !info.ModTime().Equal(past) {
			t.Errorf("%s: %v, %v", dir, info, err)
		}
		must(t, errors.Join(os.Chmod(filepath.Join(c.dir, dir), 0o750), os.Chmod(filepath.Join(copied.dir, dir), 0o750)))
	}
	if objects := everyObject(t, copied.dir); strings.Contains(objects, "SECRET") {
		t.Errorf("objects:\n%s", objects)
	}
	err := filepath.WalkDir(copied.dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var data []byte
			if data, err = os.ReadFile(name); strings.Contains(string(data), "SECRET") {
				t.Errorf("%s has a secret", name)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(filepath.Join(copied.dir, "src/run")); err != nil || info.Mode() != 0o750 {
		t.Errorf("mode %v, %v", info, err)
	}
	if got := copied.git("status", "--porcelain"); got != "?? link\n?? out\n?? src/run\n?? sub/" {
		t.Errorf("status:\n%s", got)
	}
	for _, work := range []string{"fsck", "log -p -- src", "diff HEAD~1 HEAD", "show HEAD:src/c", "blame src/a", "grep one HEAD~2 -- src", "rev-parse v1 other origin/main",
		"ls-tree -r HEAD", "worktree add -q ../tree HEAD~1", "checkout -q -b new HEAD~2", "checkout -q main", "add src", "commit -q -m work", "stash list", "gc -q", "fsck --full"} {
		copied.git(strings.Fields(work)...)
	}
	if _, err := os.Lstat(filepath.Join(copied.dir, "../tree/secrets")); err == nil {
		t.Error("the new work tree has hidden paths")
	}
	for _, fails := range []string{"show HEAD:secrets/x", "cat-file -p HEAD~1:key.pem", "archive HEAD", "rev-parse stash", "rev-parse --verify blob", "rev-parse --verify tree", "rev-parse main@{2}", "show refs/notes/commits"} {
		cmd := exec.Command("git", append([]string{"-c", "safe.directory=*", "-C", copied.dir}, strings.Fields(fails)...)...)
		if out, err := cmd.CombinedOutput(); err == nil || strings.Contains(string(out), "SECRET") {
			t.Errorf("git %s: %v\n%s", fails, err, out)
		}
	}
}

// What cannot be hidden stops with a code.
func TestCopyVisibleFails(t *testing.T) {
	t.Parallel()
	partial := newClone(t)
	partial.commit(map[string]string{"secrets/x": "one", "a": "two"})
	blob := partial.git("rev-parse", "HEAD:a")
	broken := map[string]func(t *testing.T, dir string){
		"object": func(t *testing.T, dir string) {
			must(t, os.Remove(filepath.Join(dir, ".git/objects", blob[:2], blob[2:])))
		},
		"packed-refs": func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, ".git/packed-refs"), []byte("x\n"), 0o644))
		},
		"alternates": func(t *testing.T, dir string) {
			must(t, os.MkdirAll(filepath.Join(dir, ".git/objects/info"), 0o755))
			must(t, os.WriteFile(filepath.Join(dir, ".git/objects/info/alternates"), []byte(partial.dir+"/.git/objects\n"), 0o644))
		},
		"commondir": func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, ".git/commondir"), []byte(partial.dir+"/.git\n"), 0o644))
		},
	}
	for name, damage := range broken {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "clone")
			must(t, os.CopyFS(dir, os.DirFS(partial.dir)))
			damage(t, dir)
			err := (HiddenPaths{"secrets"}).CopyVisible(t.Context(), dir, filepath.Join(t.TempDir(), "copy"))
			if proposal.FailureOf(err).Code != CodeHide {
				t.Error(err)
			}
		})
	}
	if err := (HiddenPaths{"*"}).CopyVisible(t.Context(), partial.dir, filepath.Join(t.TempDir(), "copy")); proposal.FailureOf(err).Code != CodeHide {
		t.Error(err)
	}
}

// A clone without all history stays one, and a directory without a repository of its own, or a commit, has none.
func TestCopyVisibleShallow(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	c := newClone(t)
	for i := range 3 {
		c.commit(map[string]string{"a": fmt.Sprint(i), "secrets/x": fmt.Sprint("SECRET", i)})
	}
	shallow := &clone{t, filepath.Join(t.TempDir(), "shallow")}
	c.git("clone", "-q", "--depth=2", "file://"+c.dir, shallow.dir)
	copied := &clone{t, filepath.Join(t.TempDir(), "copy")}
	must(t, HiddenPaths{"secrets"}.CopyVisible(t.Context(), shallow.dir, copied.dir))
	if got := copied.git("rev-list", "--count", "HEAD"); got != "2" {
		t.Errorf("%s commits", got)
	}
	copied.git("fsck")
	for what, prepare := range map[string]func(dir string){
		"nothing":   func(string) {},
		"no commit": func(dir string) { (&clone{t, dir}).git("init", "-q", "--template=") },
		"a file": func(dir string) {
			must(t, os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: "+c.dir+"/.git\n"), 0o644))
		},
		"a link": func(dir string) { must(t, os.Symlink(filepath.Join(c.dir, ".git"), filepath.Join(dir, ".git"))) },
		"above":  func(dir string) { must(t, os.MkdirAll(dir, 0o755)) },
	} {
		dir := t.TempDir()
		if what == "above" {
			dir = filepath.Join(c.dir, "below")
		}
		prepare(dir)
		to := filepath.Join(t.TempDir(), "copy")
		must(t, HiddenPaths{"secrets"}.CopyVisible(t.Context(), dir, to))
		if list, err := os.ReadDir(to); err != nil || len(list) != 0 {
			t.Error(what, list, err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
