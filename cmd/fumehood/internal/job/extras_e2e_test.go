// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package job_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/github/githubtest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	moduleRepo  = "octocat/lib"
	largeText   = "a large file\n"
	extrasPlan  = "INPUT_PLAN=schema: fumehood.plan/v1\nproposals:\n  - {id: look, run: cat lib/lib.txt big.bin}\n  - {id: status, run: git status --short}\n"
	extrasField = "schema: fumehood.config/v1\nsetup: none\n"
)

// addExtras gives the pull request's head a submodule and a Git LFS file, which the git server
// serves: the submodule to anyone, the file to those with the job's token. It returns the
// requests to the submodule's repository that had a credential.
func (w world) addExtras(url string) (leaked *[]string) {
	w.T.Helper()
	oid := fmt.Sprintf("%x", sha256.Sum256([]byte(largeText)))
	lib := filepath.Join(w.Dir, "git", moduleRepo+".git")
	w.GitIn("", "init", "-q", "--bare", "--template=", lib)
	pinned := w.Commit(lib, "lib", "", map[string]string{"lib.txt": "of the submodule\n"})
	w.Commit(w.Repo, "files", "", jobtest.MergeFiles(jobtest.BaseFiles, jobtest.HeadFiles, map[string]string{
		".gitmodules": "[submodule \"lib\"]\n\tpath = lib\n\turl = " + url + "\n",
		"big.bin":     fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", oid, len(largeText)),
	}))
	w.GitIn(w.Repo, "update-index", "--add", "--cacheinfo", "160000,"+pinned+",lib")
	w.Head = w.GitIn(w.Repo, "commit-tree", w.GitIn(w.Repo, "write-tree"), "-m", "extras", "-p", w.Base)
	w.GH.ChangePullRequest(jobtest.PrNumber, func(pr *githubtest.PR) { pr.Head.SHA = w.Head })
	leaked = &[]string{}
	w.Git.BeforeEach(func(rw http.ResponseWriter, r *http.Request) bool {
		_, password, _ := r.BasicAuth()
		switch {
		case strings.HasPrefix(r.URL.Path, "/"+moduleRepo):
			if r.Header.Get("Authorization") != "" {
				*leaked = append(*leaked, r.URL.Path)
			}
			r.SetBasicAuth("x", jobtest.JobToken)
		case r.URL.Path == "/"+jobtest.Hub+".git/info/lfs/objects/batch" && password == jobtest.JobToken:
			fmt.Fprintf(rw, `{"objects":[{"oid":%q,"size":%d,"actions":{"download":{"href":%q}}}]}`, oid, len(largeText), w.Git.URL+"/large")
			return true
		case r.URL.Path == "/large":
			fmt.Fprint(rw, largeText)
			return true
		}
		return false
	})
	return leaked
}

// The default branch's configuration, never the pull request's, has submodules and large files
// fetched; without it the comment says what is missing and what to add.
func TestE2EActionExtras(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, map[string]string{".github/fumehood.yml": extrasField + "checkout: {submodules: true, lfs: true}\n"})
	leaked := w.addExtras("../../../../" + moduleRepo)
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), extrasPlan)
	if s.Outputs["conclusion"] != "failure" {
		t.Errorf("without the setting: outputs %q\n%s", s.Outputs, s.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "lib: submodule", "<code>big.bin:</code> Git LFS", "checkout: {submodules: true, lfs: true}")
	w.Push("master", map[string]string{".github/fumehood.yml": extrasField + "checkout: {submodules: true, lfs: true}\n"})
	s = w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), extrasPlan)
	body := w.BotComment().Body
	if s.Outputs["conclusion"] != "success" || strings.Contains(body, "Not in the workspace") || len(*leaked) > 0 {
		t.Errorf("outputs %q, credentials sent to %q\n%s\n%s", s.Outputs, *leaked, s.Log, body)
	}
	jobtest.CheckContains(t, "comment", body, "of the submodule", strings.TrimSpace(largeText), "<b>stdout</b>, 30 bytes")
}

// THREATS 16: a submodule on another server is not fetched, and is named with the reason.
func TestE2EActionHostileSubmodule(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, map[string]string{".github/fumehood.yml": extrasField + "checkout: {submodules: true}\n"}, nil)
	w.addExtras("http://127.0.0.1:1/" + moduleRepo)
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened.fork", nil), "INPUT_PLAN=schema: fumehood.plan/v1\nproposals:\n  - {id: look, run: ls -A lib}\n")
	if s.Outputs["conclusion"] != "success" {
		t.Errorf("outputs %q\n%s", s.Outputs, s.Log)
	}
	jobtest.CheckContains(t, "summary", s.Summary, "its URL is on another server", "checkout: {lfs: true}")
}

// The default branch says what is hidden, and the pull request cannot show it: neither a file that it changes nor the
// earlier content is in the sandbox, the log or the comment. The rest of its history is.
func TestE2EActionHide(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, map[string]string{"secrets/x": "SECRET of the base\n"},
		map[string]string{"secrets/x": "SECRET of the head\n", ".github/fumehood.yml": extrasField + "hide: [nothing]\n"})
	w.Push("master", map[string]string{".github/fumehood.yml": extrasField + "hide: [secrets]\n"})
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), `INPUT_PLAN=schema: fumehood.plan/v1
proposals:
  - {id: status, run: "git status --short && git log --oneline && git diff --name-only origin/base HEAD && git diff origin/base HEAD -- ':!secrets' ':!.github'"}
  - {id: tree, run: cat secrets/x}
  - {id: head, run: "git show HEAD:secrets/x"}
  - {id: base, run: "git show origin/base:secrets/x"}
`)
	data, err := os.ReadFile(s.Outputs["report"])
	if err != nil {
		t.Fatalf("%v\n%s", err, s.Log)
	}
	body := w.BotComment().Body
	for name, text := range map[string]string{"report": string(data), "comment": body, "console": s.Log} {
		if strings.Contains(text, "SECRET") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
	var report proposal.Report
	if err := json.Unmarshal(data, &report); err != nil || len(report.Records) != 4 {
		t.Fatalf("%v\n%s", err, s.Log)
	}
	for i, r := range report.Records {
		if r.Result == nil || r.Result.Succeeded() != (i == 0) {
			t.Errorf("%s: %+v", r.Proposal.ID, r.Result)
		}
	}
	jobtest.CheckContains(t, "names", string(report.Records[0].Result.Stdout.Head), "secrets/x\n")
}
