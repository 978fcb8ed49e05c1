// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// code returns the code of a StopError, or a description of any other error.
func code(err error) string {
	var stopped *proposal.StopError
	var none *NotFound
	switch {
	case err == nil:
		return ""
	case errors.As(err, &stopped):
		return stopped.Code
	case errors.As(err, &none):
		return "not found"
	}
	return "no code: " + err.Error()
}

func wantCode(t *testing.T, err error, want string) {
	t.Helper()
	if got := code(err); got != want {
		t.Errorf("code %q, want %q: %v", got, want, err)
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	for _, digits := range []int{40, 64} {
		o := newOrigin(t, digits)
		hi, run := o.blob("hi\n"), o.blob("#!/bin/sh\n")
		sub := o.tree("100644 deep.txt", hi, "120000 up", o.blob("../a.txt"))
		head := o.commit("head", o.tree("100644 a.txt", hi, "120000 link", o.blob("sub/deep.txt"), "100755 run.sh", run, "40000 sub", sub))
		s, _ := o.store(Limits{})
		if err := s.Fetch(t.Context(), head); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "tree")
		tree, err := s.Write(t.Context(), head, dir)
		if err != nil {
			t.Fatal(err)
		}
		if tree.Files != 3 || tree.Symlinks != 2 || tree.Bytes != 16 || tree.SHA != head || len(tree.ID) != digits || len(tree.Left) != 0 {
			t.Errorf("tree %+v", tree)
		}
		want := map[string]string{"a.txt": "hi\n", "run.sh": "#!/bin/sh\n", "link": "-> sub/deep.txt", "sub/deep.txt": "hi\n", "sub/up": "-> ../a.txt"}
		if diff := cmp.Diff(want, files(t, dir)); diff != "" {
			t.Error(diff)
		}
		info, err := os.Stat(filepath.Join(dir, "run.sh"))
		if err != nil || info.Mode() != 0o755 {
			t.Errorf("run.sh: %v %v", info.Mode(), err)
		}
		_, err = s.Write(t.Context(), head, dir)
		wantCode(t, err, CodeWrite)
	}
}

func TestWriteUnder(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	o := newOrigin(t, 40)
	rego := o.blob("package p\n")
	policy := o.tree("100644 a.rego", rego, "120000 out.rego", o.blob("../../a.txt"))
	head := o.commit("head", o.tree("40000 .fumehood", o.tree("40000 policies", policy), "100644 a.txt", rego, "120000 link", o.blob(".fumehood")))
	s, _ := o.store(Limits{})
	if err := s.Fetch(t.Context(), head); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "p")
	tree, err := s.WriteUnder(t.Context(), head, ".fumehood/policies", dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a.rego": "package p\n"}, files(t, dir)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Left{{"out.rego", BadLink, "to ../../a.txt"}}, tree.Left); diff != "" || tree.ID != policy {
		t.Error(diff, tree.ID)
	}
	for _, c := range []struct{ name, folder, want string }{
		{"absent", "policies", "not found"},
		{"absent below", ".fumehood/other/x", "not found"},
		{"below a file", "a.txt/x", "not found"},
		{"a file", "a.txt", CodeTree},
		{"a link", "link", CodeTree},
		{"through a link", "link/policies", CodeTree},
		{"climbing", "../x", CodeTree},
		{"absolute", "/etc", CodeTree},
		{"not clean", ".fumehood//policies", CodeTree},
		{"dot", ".", CodeTree},
	} {
		t.Run(c.name, func(t *testing.T) {
			absent := filepath.Join(t.TempDir(), "p")
			_, err := s.WriteUnder(t.Context(), head, c.folder, absent)
			wantCode(t, err, c.want)
			if _, err := os.Lstat(absent); !os.IsNotExist(err) {
				t.Error("the folder was made")
			}
		})
	}
}

func TestFetchRefuses(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, 40)
	blob := o.blob("x")
	tree := o.tree("100644 f", blob)
	head := o.commit("c", tree)
	tag := o.object("tag", "object "+head+"\ntype commit\ntag v1\ntagger A <a@example.invalid> 1700000000 +0000\n\nv1\n")
	for _, c := range sample.EveryNth(t, []struct{ name, sha, want string }{
		{"a tag", tag, CodeCommit},
		{"a blob", blob, CodeCommit},
		{"a tree", tree, CodeCommit},
		{"of another repository", strings.Repeat("12", 20), CodeCommit},
		{"short", head[:12], CodeCommit},
		{"upper case", strings.ToUpper(head), CodeCommit},
		{"a branch", "main", CodeCommit},
		{"a refspec", head + ":refs/heads/x", CodeCommit},
		{"an option", "--upload-pack=touch x", CodeCommit},
		{"of the other kind", strings.Repeat("1", 64), CodeFetch},
		{"empty", "", CodeCommit},
		{"with a newline", head + "\n", CodeCommit},
	}, 3, 10) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, _ := o.store(Limits{})
			wantCode(t, s.Fetch(t.Context(), c.sha), c.want)
			_, err := s.Write(t.Context(), c.sha, filepath.Join(t.TempDir(), "d"))
			wantCode(t, err, CodeCommit)
		})
	}
}

func TestFetchTwice(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	o := newOrigin(t, 40)
	head := o.commit("c", o.tree("100644 f", o.blob("x")))
	s, server := o.store(Limits{})
	for range 2 {
		if err := s.Fetch(t.Context(), head, head); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(server.requests()); n > 3 {
		t.Errorf("%d requests; the second Fetch asked again", n)
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, 40)
	head := o.commit("c", o.tree("100644 f", o.blob("x")))
	s, _ := o.store(Limits{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Fetch(ctx, head); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := s.Fetch(t.Context(), head); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "d")
	if _, err := s.Write(ctx, head, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Error("a part was left")
	}
}

// TestConcurrent uses one store from several goroutines, for the race detector.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, 40)
	var heads []string
	for i := range 4 {
		heads = append(heads, o.commit("c", o.tree("100644 f", o.blob(strings.Repeat("x", i)))))
	}
	s, _ := o.store(Limits{})
	var group sync.WaitGroup
	for i, head := range heads {
		group.Go(func() {
			if err := s.Fetch(t.Context(), head, heads[0]); err != nil {
				t.Error(err)
				return
			}
			dir := filepath.Join(t.TempDir(), "head")
			_, err := s.Write(t.Context(), head, dir)
			if content, unread := os.ReadFile(filepath.Join(dir, "f")); err != nil || unread != nil || len(content) != i {
				t.Errorf("%q, %v, %v", content, err, unread)
			}
		})
	}
	group.Wait()
}

func TestDescribe(t *testing.T) {
	tree := Tree{Left: []Left{{"a\n::error::\u202e", BadName, ""}, {"out", BadLink, "to /etc/\x1b[2Jpasswd"}, {strings.Repeat("x", 300), LongName, ""}}}
	for range 30 {
		tree.Left = append(tree.Left, Left{"m", Submodule, "at 1"})
	}
	got := tree.Describe()
	want := []string{"a↵::error::⟨U+202E⟩: name refused", "out: symlink refused: it points outside the tree or is ambiguous (to /etc/⟨ESC⟩[2Jpasswd)"}
	if diff := cmp.Diff(want, got[:2]); diff != "" {
		t.Error(diff)
	}
	if len(got) != 21 || got[20] != "and 13 more" || len(got[2]) > 300 {
		t.Errorf("%d lines, the last %q", len(got), got[len(got)-1])
	}
	if got := (Tree{}).Describe(); len(got) != 0 {
		t.Error(got)
	}
}

// TestPolicyAtBase: THREATS 5. The policy is read from the base commit, whatever
// the pull request does to the policy's directory.
func TestPolicyAtBase(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, 40)
	policy := func(text string) string {
		return o.tree("40000 .fumehood", o.tree("100644 a.rego", o.blob(text)))
	}
	base := o.commit("base", policy("base\n"))
	for _, c := range sample.EveryNth(t, []struct{ name, tree string }{
		{"edited", policy("evil\n")},
		{"gone", o.tree("100644 x", o.blob("x"))},
		{"a link", o.tree("120000 .fumehood", o.blob("evil"), "40000 evil", o.tree("100644 a.rego", o.blob("evil\n")))},
		{"a file", o.tree("100644 .fumehood", o.blob("evil\n"))},
		{"of another case too", o.tree("40000 .FUMEHOOD", o.tree("100644 a.rego", o.blob("evil\n")), "40000 .fumehood", o.tree("100644 a.rego", o.blob("evil\n")))},
	}, 1, 10) {
		t.Run(c.name, func(t *testing.T) {
			head := o.commit(c.name, c.tree, base)
			s, _ := o.store(Limits{})
			if err := s.Fetch(t.Context(), head, base); err != nil {
				t.Fatal(err)
			}
			outer := t.TempDir()
			if _, err := s.Write(t.Context(), head, outer+"/work"); err != nil {
				t.Fatal(err)
			}
			if _, err := s.WriteUnder(t.Context(), base, ".fumehood", outer+"/policy"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]string{"a.rego": "base\n"}, files(t, outer+"/policy")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestUmask: the sandbox's user is a different one, and must be able to read the files.
func TestUmask(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	o := newOrigin(t, 40)
	head := o.commit("c", o.tree("40000 d", o.tree("100644 f", o.blob("x"), "100755 x", o.blob("x"))))
	s, server := o.store(Limits{})
	if err := s.Fetch(t.Context(), head); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "d")
	if _, err := s.Write(t.Context(), head, dir); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteRepository(t.Context(), dir, head, "", Branches{}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{".": os.ModeDir | 0o755, "d": os.ModeDir | 0o755, "d/f": 0o644, "d/x": 0o755, ".git": os.ModeDir | 0o755} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	checkClean(t, filepath.Join(dir, ".git"), server.url)
}

// TestCannotWrite: a full disk is not reported as a bad commit.
func TestCannotWrite(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	full, err := os.OpenRoot("/dev")
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	f, err := full.OpenFile("full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := &target{file: f}
	if _, err := out.Write([]byte("x")); err == nil || out.err == nil {
		t.Error("/dev/full took a byte")
	}
	w := writer{root: root, made: map[string]bool{".": true}, exact: map[os.FileMode]bool{}, buffer: make([]byte, 16), in: root, inPath: "."}
	n := node{entry: entry{name: "f"}, path: "f"}
	if _, err := w.writeFile(n, 1, strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	_, err = w.writeFile(n, 1, strings.NewReader("x"))
	wantCode(t, err, CodeWrite)
}
