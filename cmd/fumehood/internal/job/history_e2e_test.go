// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package job_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/github/githubtest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// importHistory adds to the base branch, and makes a branch of 30 commits, of which one
// merges the base branch. It returns its head, and the base branch's tip at that time, after
// which that branch moves on.
func (w world) importHistory() (head, base string) {
	w.T.Helper()
	var stream strings.Builder
	files, n := map[string]string{}, 0
	commit := func(branch, from, merge, name, line string) {
		n++
		files[branch+name] += line + "\n"
		fmt.Fprintf(&stream, "commit refs/heads/%s\nmark :%d\ncommitter a <a@example.com> %d +0000\ndata %d\n%s\n%s%sM 100644 inline %s\ndata %d\n%s\n",
			branch, n, 1700000000+n, len(line), line, from, merge, name, len(files[branch+name]), files[branch+name])
	}
	for i := range 10 {
		from := ""
		if i == 0 {
			from = "from refs/heads/master^0\n"
		}
		commit("master", from, "", "base.txt", fmt.Sprint("old ", i))
	}
	files["topicbase.txt"] = files["masterbase.txt"]
	for i := range 15 {
		from := ""
		if i == 0 {
			from = "from refs/heads/master\n"
		}
		commit("topic", from, "", "topic.txt", fmt.Sprint("topic ", i))
	}
	commit("master", "", "", "base.txt", "before the merge")
	files["topicbase.txt"] = files["masterbase.txt"]
	commit("topic", "", "merge refs/heads/master\n", "base.txt", "merge")
	for i := range 14 {
		commit("topic", "", "", "base.txt", fmt.Sprint("topic too ", i))
	}
	fmt.Fprintf(&stream, "reset refs/heads/then\nfrom refs/heads/master\n\n")
	for i := range 5 {
		commit("master", "", "", "other.txt", fmt.Sprint("moved ", i))
	}
	c := exec.Command("git", "--git-dir="+w.Repo, "fast-import", "--quiet")
	c.Stdin = strings.NewReader(stream.String())
	if out, err := c.CombinedOutput(); err != nil {
		w.T.Fatalf("%v: %s", err, out)
	}
	return w.GitIn(w.Repo, "rev-parse", "topic"), w.GitIn(w.Repo, "rev-parse", "then")
}

// What git says in the sandbox about a pull request of 30 commits with a merge, whose base has
// moved since, is what it says in a full clone.
func TestE2EActionHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	w.Head, w.Base = w.importHistory()
	w.GH.ChangePullRequest(jobtest.PrNumber, func(pr *githubtest.PR) { pr.Head.SHA, pr.Head.Ref, pr.Base.SHA = w.Head, "topic", w.Base })
	commands := []string{
		"git diff master...HEAD", "git diff --stat origin/master...HEAD", "git log --format='%H %s' master..HEAD", "git merge-base master HEAD", "git merge-base origin/master HEAD",
		"git blame base.txt", "git log --merges --format=%H", "git log --format=%H -- base.txt", "git rev-list --count master..HEAD", "git rev-parse --abbrev-ref HEAD", "git show --stat HEAD~14", "git status --short",
	}
	plan := "schema: fumehood.plan/v1\nproposals:\n"
	for i, command := range commands {
		plan += fmt.Sprintf("  - {id: c%d, run: %q}\n", i, command)
	}
	event := w.EventPayload("pull_request.opened.fork", func(p map[string]any) {
		p["pull_request"].(map[string]any)["head"].(map[string]any)["ref"] = "topic"
	})
	s := w.RunStep("pull_request", event, "INPUT_PLAN="+plan)
	data, err := os.ReadFile(s.Outputs["report"])
	if err != nil {
		t.Fatalf("%v\n%s", err, s.Log)
	}
	var report proposal.Report
	if err := json.Unmarshal(data, &report); err != nil || len(report.Records) != len(commands) || s.Outputs["conclusion"] != "success" {
		t.Fatalf("%v, outputs %q\n%s", err, s.Outputs, s.Log)
	}
	clone := filepath.Join(t.TempDir(), "clone")
	w.GitIn("", "clone", "-q", "--no-local", w.Repo, clone)
	w.GitIn("", "-C", clone, "checkout", "-q", "topic")
	for i, command := range commands {
		out := report.Records[i].Result.Stdout
		native := exec.Command("bash", "-c", command)
		native.Dir = clone
		full, err := native.Output()
		if inside := string(out.Head) + string(out.Tail); err != nil || out.Truncated || inside != string(full) || inside == "" && i < len(commands)-1 {
			t.Errorf("%s: %v\n%s\nin a full clone:\n%s", command, err, inside, full)
		}
	}
}
