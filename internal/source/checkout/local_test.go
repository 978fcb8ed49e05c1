// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/kit/testprogram"
)

// A clone is an ordinary repository, made with git.
type clone struct {
	t   *testing.T
	dir string
}

func newClone(t *testing.T) *clone {
	t.Helper()
	skipShort(t)
	c := &clone{t, t.TempDir()}
	c.git("init", "-q", "--template=", "-b", "main")
	return c
}

func (c *clone) git(args ...string) string {
	c.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", c.dir, "-c", "user.name=A", "-c", "user.email=a@example.invalid", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (c *clone) commit(files map[string]string) string {
	c.t.Helper()
	for name, content := range files {
		path := filepath.Join(c.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			c.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			c.t.Fatal(err)
		}
	}
	c.git("add", "-A")
	c.git("commit", "-q", "-m", "c")
	return c.git("rev-parse", "HEAD")
}

func (c *clone) open(dir string) *Local {
	c.t.Helper()
	l, err := OpenLocal(c.t.Context(), dir)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { l.Close() })
	return l
}

func isRego(name string) bool { return strings.HasSuffix(name, ".rego") }

func TestLocalCommit(t *testing.T) {
	t.Parallel()
	c := newClone(t)
	first := c.commit(map[string]string{"policy/a.rego": "one"})
	c.git("tag", "-a", "-m", "v1", "v1")
	second := c.commit(map[string]string{"policy/a.rego": "two"})
	c.git("branch", "feature/x", first)
	c.git("update-ref", "refs/remotes/origin/main", first)
	c.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
	c.git("branch", "both", second)
	c.git("tag", "both", first)
	tests := []struct{ revision, want, code string }{
		{"HEAD", second, ""}, {"main", second, ""}, {"v1", first, ""}, {"feature/x", first, ""}, {"origin/main", first, ""}, {"refs/remotes/origin/HEAD", first, ""},
		{"HEAD~1", first, ""}, {"main^", first, ""}, {second, second, ""}, {first[:10], first, ""}, {"refs/tags/both", first, ""},
		{"both", "", CodeLocal}, {"missing", "", CodeLocal}, {"HEAD~9", "", CodeLocal}, {strings.Repeat("12", 20), "", CodeLocal}, {"--all", "", CodeLocal},
		{"HEAD:policy", "", CodeLocal}, {"HEAD^{tree}", "", CodeLocal}, {"a b", "", CodeLocal}, {"../HEAD", "", CodeLocal}, {"refs/../../HEAD", "", CodeLocal},
		{"@{-1}", "", CodeLocal}, {":/x", "", CodeLocal}, {"a\nb", "", CodeLocal}, {"", "", CodeLocal}, {"HEAD~99999", "", CodeLocal},
	}
	linked := filepath.Join(t.TempDir(), "tree")
	c.git("worktree", "add", "-q", "--detach", linked, second)
	for _, packed := range sample.EveryNth(t, []bool{false, true}, 1, 10) {
		if packed {
			c.git("pack-refs", "--all")
		}
		for _, dir := range []string{c.dir, filepath.Join(c.dir, "policy"), linked} {
			l := c.open(dir)
			for _, tt := range tests {
				got, err := l.Commit(t.Context(), tt.revision)
				if got != tt.want || code(err) != tt.code {
					t.Errorf("%q: %q, %v", tt.revision, got, err)
				}
			}
		}
	}
}

func TestLocalFolder(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	c := newClone(t)
	sha := c.commit(map[string]string{"policy/a.rego": "one", "policy/lib/b.rego": "two", "policy/README.md": "x", "c.rego": "three"})
	l := c.open(c.dir)
	got, left, err := l.ReadDir(t.Context(), sha, "policy", isRego, Limits{})
	if err != nil || len(left) > 0 {
		t.Fatal(left, err)
	}
	want := []Content{{"a.rego", []byte("one")}, {"lib/b.rego", []byte("two")}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, tt := range []struct {
		folder string
		limits Limits
		code   string
	}{
		{"other", Limits{}, "not found"}, {"c.rego", Limits{}, CodeTree}, {"../x", Limits{}, CodeTree}, {"", Limits{}, ""},
		{"policy", Limits{Files: 1}, CodeLimit}, {"policy", Limits{File: 2}, CodeLimit}, {"policy", Limits{Bytes: 5}, CodeLimit},
	} {
		_, _, err := l.ReadDir(t.Context(), sha, tt.folder, isRego, tt.limits)
		wantCode(t, err, tt.code)
	}
}

// TestLocalUnfit: anything that is not a regular file is reported, wanted or not.
func TestLocalUnfit(t *testing.T) {
	t.Parallel()
	sub := newClone(t)
	sub.commit(map[string]string{"a.rego": "x"})
	c := newClone(t)
	if err := os.MkdirAll(filepath.Join(c.dir, "policy"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(c.dir, "policy/link.rego")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("policy", filepath.Join(c.dir, "alias")); err != nil {
		t.Fatal(err)
	}
	c.git("submodule", "--quiet", "add", sub.dir, "policy/sub")
	sha := c.commit(map[string]string{"policy/a.rego": "x", "policy/large.rego": "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("0", 64) + "\nsize 9\n"})
	l := c.open(c.dir)
	_, left, err := l.ReadDir(t.Context(), sha, "policy", isRego, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var why []string
	for _, l := range left {
		why = append(why, l.Path+": "+string(l.Why))
	}
	want := []string{"link.rego: a symlink", "sub: " + string(Submodule), "large.rego: " + string(LargeFile)}
	if diff := cmp.Diff(want, why); diff != "" {
		t.Error(diff)
	}
	for _, folder := range []string{"alias", "policy/sub", "alias/lib"} {
		_, _, err := l.ReadDir(t.Context(), sha, folder, isRego, Limits{})
		wantCode(t, err, CodeTree)
	}
}

// TestLocalRunsNothing: no program that the repository's configuration names is
// started, and replaced objects, grafts and the environment have no effect.
func TestLocalRunsNothing(t *testing.T) {
	c := newClone(t)
	good := c.commit(map[string]string{"policy/a.rego": "good"})
	evil := c.commit(map[string]string{"policy/a.rego": "evil"})
	ran := filepath.Join(t.TempDir(), "ran")
	script := filepath.Join(t.TempDir(), "script")
	testprogram.WriteExecutable(t, script, "#!/bin/sh\ntouch "+ran+"\n")
	for _, set := range []string{"core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.gitProxy", "uploadpack.packObjectsHook", "core.askPass", "alias.cat-file", "filter.x.smudge"} {
		c.git("config", set, script)
	}
	c.git("config", "extensions.partialClone", "origin")
	c.git("config", "remote.origin.url", "ext::"+script)
	c.git("config", "remote.origin.promisor", "true")
	c.git("replace", good, evil)
	blob := c.git("rev-parse", evil+":policy/a.rego")
	t.Setenv("GIT_DIR", "/nonexistent")
	t.Setenv("GIT_OBJECT_DIRECTORY", "/nonexistent")
	t.Setenv("GIT_EXTERNAL_DIFF", script)
	l := c.open(c.dir)
	sha, err := l.Commit(t.Context(), good)
	if err != nil || sha != good {
		t.Fatal(sha, err)
	}
	got, _, err := l.ReadDir(t.Context(), good, "policy", isRego, Limits{})
	if err != nil || len(got) != 1 || string(got[0].Bytes) != "good" {
		t.Errorf("%q %v", got, err)
	}
	if err := os.Remove(filepath.Join(c.dir, ".git/objects", blob[:2], blob[2:])); err != nil {
		t.Fatal(err)
	}
	_, _, err = c.open(c.dir).ReadDir(t.Context(), evil, "policy", isRego, Limits{})
	if err == nil {
		t.Error("a missing file was read")
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a program of the configuration ran")
	}
}

func TestLocalOpen(t *testing.T) {
	_, err := OpenLocal(t.Context(), t.TempDir())
	wantCode(t, err, CodeLocal)
	_, err = OpenLocal(t.Context(), "/nonexistent/x")
	wantCode(t, err, CodeLocal)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: /nonexistent\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = OpenLocal(t.Context(), dir)
	wantCode(t, err, CodeLocal)
}
