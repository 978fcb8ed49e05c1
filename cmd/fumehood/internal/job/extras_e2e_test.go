// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package job_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/github/githubtest"
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
