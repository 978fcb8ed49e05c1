// SPDX-License-Identifier: Apache-2.0

package githubtest_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/github/githubtest"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

// git runs git without the user's or the system's configuration.
func git(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	c := exec.Command("git", args...)
	c.Dir = dir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=octocat", "GIT_AUTHOR_EMAIL=octocat@example.com", "GIT_COMMITTER_NAME=octocat", "GIT_COMMITTER_EMAIL=octocat@example.com"}
	out, err := c.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// hosted is a repository with one commit that is on no branch, as is often true of
// a pull request's head by the time it is fetched.
func hosted(t *testing.T) (root, sha string) {
	t.Helper()
	root = t.TempDir()
	bare := filepath.Join(root, "Codertocat", "Hello-World.git")
	if out, err := git(t, root, "init", "-q", "--bare", bare); err != nil {
		t.Fatal(out)
	}
	tree, err := git(t, bare, "hash-object", "-w", "-t", "tree", "/dev/null")
	if err != nil {
		t.Fatal(tree)
	}
	sha, err = git(t, bare, "commit-tree", "-m", "Initial commit", tree)
	if err != nil {
		t.Fatal(sha)
	}
	return root, sha
}

func fetch(t *testing.T, url, sha string, config ...string) (string, error) {
	t.Helper()
	to := t.TempDir()
	if out, err := git(t, to, "init", "-q"); err != nil {
		t.Fatal(out)
	}
	return git(t, to, append(config, "fetch", "-q", "--depth=1", url, sha)...)
}

func TestGitServer(t *testing.T) {
	lanetest.SkipShort(t)
	root, sha := hosted(t)
	g := githubtest.NewGitServer(t, root)
	for _, url := range []string{"/Codertocat/Hello-World", "/Codertocat/Hello-World.git"} {
		if out, err := fetch(t, g.URL+url, sha); err != nil {
			t.Errorf("%s: %v: %s", url, err, out)
		}
	}
	log := g.Requests()
	if len(log) < 4 || log[0].Protocol != "version=2" || log[0].Authorization != "" || log[0].Status != 200 {
		t.Errorf("got %+v", log)
	}
	if out, err := fetch(t, g.URL+"/Codertocat/Hello-World", githubtest.CommitID("nowhere")); err == nil {
		t.Errorf("fetched what is not there: %s", out)
	}
	if out, err := fetch(t, g.URL+"/octocat/nothing", sha); err == nil {
		t.Errorf("fetched from nowhere: %s", out)
	}
}

func TestGitServerWantsToken(t *testing.T) {
	lanetest.SkipShort(t)
	root, sha := hosted(t)
	g := githubtest.NewGitServer(t, root)
	g.RequireToken("Codertocat/Hello-World", "ghs_secret")
	url := g.URL + "/Codertocat/Hello-World"
	const basic = "AUTHORIZATION: basic eC1hY2Nlc3MtdG9rZW46Z2hzX3NlY3JldA==" // x-access-token:ghs_secret
	if out, err := fetch(t, url, sha); err == nil {
		t.Errorf("fetched without the token: %s", out)
	}
	if got := g.Requests(); got[len(got)-1].Status != http.StatusUnauthorized {
		t.Errorf("got %+v", got)
	}
	if out, err := fetch(t, url, sha, "-c", "http."+g.URL+"/.extraheader="+basic); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if got := g.Requests(); !strings.Contains(got[len(got)-1].Authorization, "basic eC1") {
		t.Errorf("got %+v", got)
	}
	if out, err := git(t, t.TempDir(), "-c", "http."+g.URL+"/.extraheader="+"AUTHORIZATION: basic eC1hY2Nlc3MtdG9rZW46Z2hzX3B1YmxpYw==", "ls-remote", url); err == nil {
		t.Errorf("another token will do: %s", out)
	}
}

func TestGitServerRedirects(t *testing.T) {
	root, sha := hosted(t)
	real, front := githubtest.NewGitServer(t, root), githubtest.NewGitServer(t, root)
	front.BeforeEach(func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, real.URL+r.URL.RequestURI(), http.StatusFound)
		return true
	})
	if out, err := fetch(t, front.URL+"/Codertocat/Hello-World", sha); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if len(front.Requests()) == 0 || len(real.Requests()) == 0 {
		t.Errorf("got %v, %v", front.Requests(), real.Requests())
	}
}

func TestGitServerTakesNoPush(t *testing.T) {
	root, sha := hosted(t)
	g := githubtest.NewGitServer(t, root)
	bare := filepath.Join(root, "Codertocat", "Hello-World.git")
	if out, err := git(t, bare, "push", g.URL+"/Codertocat/Hello-World", sha+":refs/heads/master"); err == nil {
		t.Errorf("pushed: %s", out)
	}
}

// With a repository behind it, the API reports what that has: also after a push, a rename of
// the default branch, and of a pull request's files only what changed since the merge base.
func TestServerOnGit(t *testing.T) {
	root, base := hosted(t)
	bare := filepath.Join(root, "Codertocat", "Hello-World.git")
	run := func(args ...string) string {
		t.Helper()
		out, err := git(t, bare, args...)
		if err != nil {
			t.Fatal(out)
		}
		return out
	}
	file := func(name string) string {
		run("read-tree", "--empty")
		run("update-index", "--add", "--cacheinfo", "100644,"+run("hash-object", "-w", "-t", "blob", "/dev/null")+","+name)
		return run("write-tree")
	}
	head := run("commit-tree", "-m", "mine", "-p", base, file("mine.txt"))
	tip := run("commit-tree", "-m", "theirs", "-p", base, file("docs/theirs.txt"))
	run("update-ref", "refs/heads/trunk", tip)
	run("symbolic-ref", "HEAD", "refs/heads/trunk")
	s := githubtest.New(t, githubtest.Options{Git: bare})
	s.AddWorkflowToken(token, "contents:read", "pull-requests:read")
	s.AddPR(githubtest.PR{Number: 2, Head: githubtest.Ref{SHA: head}, Base: githubtest.Ref{Ref: "trunk", SHA: tip}})
	for path, words := range map[string]string{
		"": `"default_branch":"trunk"`, "/branches/trunk": tip, "/git/ref/heads/trunk": tip, "/commits/" + base: base, "/commits/trunk": tip,
		"/contents/docs/theirs.txt": `"size":0`, "/contents/docs?ref=trunk": "theirs.txt", "/contents/mine.txt?ref=" + head: `"size":0`,
	} {
		if a := ask(t, s, "GET", home+path, token, ""); a.status != 200 || !strings.Contains(a.body, words) {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if body := ask(t, s, "GET", home+"/pulls/2/files", token, "").body; !strings.Contains(body, "mine.txt") || strings.Contains(body, "theirs.txt") {
		t.Errorf("files: %s", body)
	}
	run("update-ref", "refs/heads/trunk", head)
	if body := ask(t, s, "GET", home+"/branches/trunk", token, "").body; !strings.Contains(body, head) {
		t.Errorf("after a push: %s", body)
	}
}
