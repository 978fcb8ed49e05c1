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
	var stream strings.Builder
	files, mark := map[string]string{}, 0
	write := func(branch, message string, parents ...int) int {
		mark++
		who := fmt.Sprintf("a <a@example.com> %d +0000", 1767322980+mark)
		fmt.Fprintf(&stream, "commit refs/heads/%s\nmark :%d\nauthor %s\ncommitter %s\ndata %d\n%s\n", branch, mark, who, who, len(message), message)
		for i, parent := range parents {
			fmt.Fprintf(&stream, "%s :%d\n", []string{"from", "merge"}[i], parent)
		}
		return mark
	}
	commit := func(branch, name, line string) int {
		n := write(branch, name+" "+line)
		files[branch+name] += line + "\n"
		fmt.Fprintf(&stream, "M 100644 inline %s\ndata %d\n%s\n", name, len(files[branch+name]), files[branch+name])
		return n
	}
	const topic = "topic/x"
	for i := range 20 {
		mark = commit("main", "base.txt", fmt.Sprint("old ", i))
	}
	fmt.Fprintf(&stream, "reset refs/heads/%s\nfrom :%d\n", topic, mark)
	var tip int
	for i := range 15 {
		tip = commit(topic, "topic.txt", fmt.Sprint("topic ", i))
	}
	merged := commit("main", "base.txt", "before the merge")
	write(topic, "merge", tip, merged)
	files[topic+"base.txt"] = files["mainbase.txt"]
	fmt.Fprintf(&stream, "M 100644 inline base.txt\ndata %d\n%s\n", len(files["mainbase.txt"]), files["mainbase.txt"])
	for i := range 14 {
		commit(topic, "base.txt", fmt.Sprint("topic too ", i))
	}
	for i := range 5 {
		commit("main", "other.txt", fmt.Sprint("moved ", i))
	}
	c := exec.Command("git", "--git-dir="+o.dir, "fast-import", "--quiet", "--force")
	c.Stdin = strings.NewReader(stream.String())
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("git fast-import: %v: %s", err, out)
	}
	return strings.TrimSpace(inside(t, o.dir, "rev-parse", topic)), strings.TrimSpace(inside(t, o.dir, "rev-parse", "main"))
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
	ancestor, why, err := s.FetchHistory(t.Context(), head, base)
	if err != nil || why != "" || ancestor == "" {
		t.Fatal(ancestor, why, err)
	}
	dir := filepath.Join(t.TempDir(), "tree")
	if _, err := s.Write(t.Context(), head, dir); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteRepository(t.Context(), dir, head, base, Branches{Head: "topic/x", Base: "main"}); err != nil {
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
	if _, _, err := s.FetchHistory(t.Context(), head, base); err == nil {
		t.Error("history of commits that were not fetched")
	}
	if err := s.Fetch(t.Context(), head, base); err != nil {
		t.Fatal(err)
	}
	if ancestor, why, err := s.FetchHistory(t.Context(), head, base); err != nil || ancestor != "" || !strings.Contains(why, "no commit in common") {
		t.Errorf("unrelated: %q, %q, %v", ancestor, why, err)
	}
	if err := os.RemoveAll(o.dir); err != nil {
		t.Fatal(err)
	}
	if ancestor, why, err := s.FetchHistory(t.Context(), head, base); err != nil || ancestor != "" || !strings.HasPrefix(why, "the history was not fetched: ") {
		t.Errorf("a server without the repository: %q, %q, %v", ancestor, why, err)
	}
	dir := filepath.Join(t.TempDir(), "tree")
	if _, err := s.Write(t.Context(), head, dir); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteRepository(t.Context(), dir, head, base, Branches{Head: "main", Base: "main"}); err != nil {
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
		refs := test.b.refFiles("1", "2")
		var got []string
		for _, name := range slices.Sorted(maps.Keys(refs)) { // HEAD is first
			got = append(got, name+"="+strings.TrimSpace(refs[name]))
		}
		if s := strings.Join(got, " "); s != test.want {
			t.Errorf("%+v: %s, want %s", test.b, s, test.want)
		}
	}
}
