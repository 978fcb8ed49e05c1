// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

// inside runs git as a command in the sandbox would, in another user's directory.
func inside(t *testing.T, dir string, arguments ...string) string {
	t.Helper()
	c := exec.Command("git", arguments...)
	c.Dir = dir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1"}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("git %q: %v: %s", arguments, err, out)
	}
	return string(out)
}

func TestRepository(t *testing.T) {
	t.Parallel()
	for _, digits := range []int{40, 64} {
		o := newOrigin(t, digits)
		hi := o.blob("hi\n")
		sub := strings.Repeat("1", digits)
		base := o.commit("base", o.tree("100644 a.txt", hi), o.commit("older", o.tree("100644 old", hi)))
		head := o.commit("head", o.tree("100644 a.txt", o.blob("ho\n"), "100644 bad\nname", hi, `100644 c:\x`, hi, "120000 out", o.blob("/etc/passwd"), "100755 run", hi, "160000 sub", sub), base)
		server := serve(t, o.root)
		server.token = token
		s := open(t, Source{URL: server.url, Token: token}, Limits{})
		if err := s.Fetch(t.Context(), base, head); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "tree")
		if _, err := s.Write(t.Context(), head, dir); err != nil {
			t.Fatal(err)
		}
		if err := s.WriteRepository(t.Context(), dir, head, base, Branches{}); err != nil {
			t.Fatal(err)
		}
		if got := inside(t, dir, "status", "--porcelain"); got != "" {
			t.Errorf("status: %q", got)
		}
		if got := inside(t, dir, "log", "--format=%H %s"); got != head+" head\n"+base+" base\n" {
			t.Errorf("log: %q", got)
		}
		if got := inside(t, dir, "diff", "--stat", "origin/base", "HEAD", "--", "a.txt"); !strings.Contains(got, "1 file changed") {
			t.Errorf("diff: %q", got)
		}
		if got := inside(t, dir, "diff", "--name-status", "origin/base...HEAD", "--", "a.txt"); got != "M\ta.txt\n" {
			t.Errorf("diff from the merge base: %q", got)
		}
		if got := inside(t, dir, "rev-parse", "HEAD", "refs/remotes/origin/base", "--abbrev-ref", "HEAD"); got != head+"\n"+base+"\nHEAD\n" {
			t.Errorf("rev-parse: %q", got)
		}
		if got := inside(t, dir, "fsck", "--strict"); strings.Contains(got, "error") {
			t.Errorf("fsck: %q", got)
		}
		checkClean(t, filepath.Join(dir, ".git"), server.url)
		existing, err := InspectWorkTree(t.Context(), dir, []string{head}, func(string) string { return "" })
		if err != nil || existing.Changed != 0 || existing.Untracked != 0 {
			t.Errorf("our own is not fit: %+v, %v", existing, err)
		}
		wantCode(t, s.WriteRepository(t.Context(), dir, head, base, Branches{}), CodeWrite)
	}
}

// checkClean looks for files that Repository does not make, and for references to
// the origin.
func checkClean(t *testing.T, dir, url string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		if want := map[bool]fs.FileMode{true: fs.ModeDir | 0o755, false: 0o644}[d.IsDir()]; info.Mode() != want {
			t.Errorf("%s has mode %s", name, info.Mode())
		}
		if d.IsDir() {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.Contains(string(content), token) || strings.Contains(string(content), url) {
			t.Errorf("%s leads back", name)
		}
		switch {
		case name == "HEAD" || name == "config" || name == "index" || name == "shallow" || name == "refs/remotes/origin/base":
		case strings.HasPrefix(name, "objects/pack/pack-"):
		default:
			t.Errorf("unexpected %s", name)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestRepositoryRefuses(t *testing.T) {
	lanetest.SkipShort(t)
	o, head := oneCommit(t)
	s, _ := o.store(Limits{})
	if err := s.Fetch(t.Context(), head); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	wantCode(t, s.WriteRepository(t.Context(), dir, head, strings.Repeat("1", 40), Branches{}), CodeCommit)
	wantCode(t, s.WriteRepository(t.Context(), dir, head, "main", Branches{}), CodeCommit)
	wantCode(t, s.WriteRepository(t.Context(), dir, "HEAD", "", Branches{}), CodeCommit)
	wantCode(t, s.WriteRepository(t.Context(), dir+"/none", head, "", Branches{}), CodeWrite)
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}
