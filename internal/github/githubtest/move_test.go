// SPDX-License-Identifier: Apache-2.0

package githubtest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/github/githubtest"
)

// Pushes, deleted branches and deleted forks change pull requests as on GitHub: an open one
// follows its branch, its base commit only with it, and a closed one stays.
func TestMoves(t *testing.T) {
	dir := t.TempDir()
	git := func(repo string, args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"--git-dir=" + filepath.Join(dir, repo)}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	commit := func(repo, message string, parents ...string) string {
		tree := git(repo, "hash-object", "-t", "tree", "-w", "/dev/null")
		return git(repo, append([]string{"commit-tree", tree, "-m", message}, parents...)...)
	}
	for _, repo := range []string{"home", "fork"} {
		git(repo, "init", "-q", "--bare", "--template=", "-b", "master")
	}
	first, head := commit("home", "first"), commit("fork", "head")
	git("home", "update-ref", "refs/heads/master", first)
	git("fork", "update-ref", "refs/heads/b", head)

	s := githubtest.New(t, githubtest.Options{Git: filepath.Join(dir, "home")})
	s.AddRepository(githubtest.Repository{Name: "octocat/Hello-World", Fork: true, Git: filepath.Join(dir, "fork")})
	from := githubtest.Ref{Repository: "octocat/Hello-World", Ref: "b"}
	for range 2 {
		s.OpenPR(githubtest.PR{Head: from, Base: githubtest.Ref{Ref: "master"}})
	}
	check := func(what string, number int, state, head, base string) {
		t.Helper()
		if pr := s.PullRequest(number); pr.State != state || pr.Head.SHA != head || pr.Base.SHA != base || git("home", "cat-file", "-t", head) != "commit" {
			t.Errorf("%s: %+v, want %s, %s, %s", what, pr, state, head, base)
		}
	}
	second := commit("home", "second", "-p", first)
	s.PushCommit("Codertocat/Hello-World", "master", second)
	check("the base moved alone", 1, "open", head, first)
	s.ChangePullRequest(2, func(pr *githubtest.PR) { pr.State = "closed" })
	forced := commit("fork", "forced")
	s.PushCommit("octocat/Hello-World", "b", forced)
	check("the head was force-pushed", 1, "open", forced, second)
	check("a closed one stays", 2, "closed", head, first)
	s.DeleteBranch("octocat/Hello-World", "b")
	check("the branch is gone", 1, "closed", forced, second)
	s.DeleteFork("octocat/Hello-World")
	if pr := s.PullRequest(1); pr.Head.Repository != "-" {
		t.Errorf("the fork is gone: %+v", pr)
	}
}
