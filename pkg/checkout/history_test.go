// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A branched repository has a pull request of 30 commits, one of which merges the base
// branch, which moves on after it.
func branched(t *testing.T, o *origin) (head, base string) {
	t.Helper()
	work := filepath.Join(t.TempDir(), "work")
	n := 0
	git := func(args ...string) {
		t.Helper()
		c := exec.Command("git", args...)
		c.Dir = work
		date := fmt.Sprintf("2026-01-02T03:%02d:%02dZ", n/60, n%60)
		n++
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
			"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_AUTHOR_DATE=" + date, "GIT_COMMITTER_DATE=" + date}
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	commit := func(name, line string) {
		t.Helper()
		f, err := os.OpenFile(filepath.Join(work, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		fmt.Fprintln(f, line)
		git("add", name)
		git("commit", "-q", "-m", name+" "+line)
	}
	if err := os.MkdirAll(work, 0o755); err != nil {
		t.Fatal(err)
	}
	git("init", "-q", "-b", "main", ".")
	for i := range 20 {
		commit("base.txt", fmt.Sprint("old ", i))
	}
	git("checkout", "-q", "-b", "topic/x")
	for i := range 15 {
		commit("topic.txt", fmt.Sprint("topic ", i))
	}
	git("checkout", "-q", "main")
	commit("base.txt", "before the merge")
	git("checkout", "-q", "topic/x")
	git("merge", "-q", "--no-ff", "-m", "merge", "main")
	for i := range 14 {
		commit("base.txt", fmt.Sprint("topic too ", i))
	}
	git("checkout", "-q", "main")
	for i := range 5 {
		commit("other.txt", fmt.Sprint("moved ", i))
	}
	git("push", "-q", "--force", o.dir, "main:refs/heads/main", "topic/x:refs/heads/topic/x")
	return strings.TrimSpace(inside(t, o.dir, "rev-parse", "topic/x")), strings.TrimSpace(inside(t, o.dir, "rev-parse", "main"))
}

// What git says about a pull request is what it says in a full clone.
func TestHistory(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, 40)
	head, base := branched(t, o)
	s, _ := o.store(Limits{})
	if err := s.Fetch(t.Context(), head, base); err != nil {
		t.Fatal(err)
	}
	ancestor, why, err := s.History(t.Context(), head, base)
	if err != nil || why != "" || ancestor == "" {
		t.Fatal(ancestor, why, err)
	}
	dir := filepath.Join(t.TempDir(), "tree")
	if _, err := s.Write(t.Context(), head, dir); err != nil {
		t.Fatal(err)
	}
	if err := s.Repository(t.Context(), dir, head, base, Branches{Head: "topic/x", Base: "main"}); err != nil {
		t.Fatal(err)
	}
	clone := filepath.Join(t.TempDir(), "clone")
	inside(t, o.dir, "clone", "-q", "--no-local", o.dir, clone)
	inside(t, clone, "checkout", "-q", "topic/x")
	inside(t, clone, "branch", "-f", "main", "origin/main")
	for _, args := range []string{
		"diff main...HEAD", "diff --stat origin/main...HEAD", "log --format=%H%x20%s main..HEAD", "log --format=%H%x20%s", "merge-base main HEAD",
		"blame base.txt", "log --merges --format=%H", "rev-parse --abbrev-ref HEAD", "status --porcelain", "log -p --format=%s -- topic.txt", "rev-list --count main..HEAD", "show HEAD~3", "diff main HEAD",
	} {
		if ours, full := inside(t, dir, strings.Fields(args)...), inside(t, clone, strings.Fields(args)...); ours != full || ours == "" && !strings.HasPrefix(args, "status") {
			t.Errorf("git %s:\n%s\nin a full clone:\n%s", args, ours, full)
		}
	}
	if got := strings.TrimSpace(inside(t, dir, "merge-base", "main", "HEAD")); got != ancestor {
		t.Errorf("History says %s, git merge-base %s", ancestor, got)
	}
	if got := inside(t, dir, "fsck", "--strict"); strings.Contains(got, "error") {
		t.Errorf("fsck: %q", got)
	}
}

// Without a common ancestor, and where the server refuses, the commits stay usable.
func TestNoHistory(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, 40)
	head := o.commit("head", o.tree("100644 a.txt", o.blob("a\n")))
	base := o.commit("base", o.tree("100644 b.txt", o.blob("b\n")))
	s, _ := o.store(Limits{})
	if _, _, err := s.History(t.Context(), head, base); err == nil {
		t.Error("history of commits that were not fetched")
	}
	if err := s.Fetch(t.Context(), head, base); err != nil {
		t.Fatal(err)
	}
	if ancestor, why, err := s.History(t.Context(), head, base); err != nil || ancestor != "" || !strings.Contains(why, "no commit in common") {
		t.Errorf("unrelated: %q, %q, %v", ancestor, why, err)
	}
	if err := os.RemoveAll(o.dir); err != nil {
		t.Fatal(err)
	}
	if ancestor, why, err := s.History(t.Context(), head, base); err != nil || ancestor != "" || !strings.HasPrefix(why, "the history was not fetched: ") {
		t.Errorf("a server without the repository: %q, %q, %v", ancestor, why, err)
	}
	dir := filepath.Join(t.TempDir(), "tree")
	if _, err := s.Write(t.Context(), head, dir); err != nil {
		t.Fatal(err)
	}
	if err := s.Repository(t.Context(), dir, head, base, Branches{Head: "main", Base: "main"}); err != nil {
		t.Fatal(err)
	}
	if got := inside(t, dir, "diff", "--name-status", "main", "HEAD"); got != "A\ta.txt\nD\tb.txt\n" {
		t.Errorf("diff: %q", got)
	}
}

// Names of branches are a stranger's: they become files only where they can mean nothing else.
func TestBranches(t *testing.T) {
	for _, test := range []struct {
		b    Branches
		want string // the names, and HEAD's content
	}{
		{Branches{}, "HEAD=1 refs/remotes/origin/base=2"},
		{Branches{Head: "topic", Base: "main"}, "HEAD=ref: refs/heads/topic refs/heads/main=2 refs/heads/topic=1 refs/remotes/origin/base=2 refs/remotes/origin/main=2"},
		{Branches{Head: "main", Base: "main"}, "HEAD=1 refs/heads/main=2 refs/remotes/origin/base=2 refs/remotes/origin/main=2"},
		{Branches{Head: "main/x", Base: "main"}, "HEAD=1 refs/heads/main=2 refs/remotes/origin/base=2 refs/remotes/origin/main=2"},
		{Branches{Head: "x", Base: "base/y"}, "HEAD=ref: refs/heads/x refs/heads/base/y=2 refs/heads/x=1 refs/remotes/origin/base=2"},
		{Branches{Head: "../../hooks/pre-commit", Base: "../x"}, "HEAD=1 refs/remotes/origin/base=2"},
		{Branches{Head: "-b", Base: "a b\n"}, "HEAD=1 refs/remotes/origin/base=2"},
		{Branches{Head: ".git", Base: "x.lock"}, "HEAD=1 refs/remotes/origin/base=2"},
	} {
		refs := test.b.refs("1", "2")
		var got []string
		for _, name := range slices.Sorted(maps.Keys(refs)) { // HEAD is first
			got = append(got, name+"="+strings.TrimSpace(refs[name]))
		}
		if s := strings.Join(got, " "); s != test.want {
			t.Errorf("%+v: %s, want %s", test.b, s, test.want)
		}
	}
}
