// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/github/githubtest"
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
func (w *world) addExtras(url string) (leaked *[]string) {
	w.t.Helper()
	oid := fmt.Sprintf("%x", sha256.Sum256([]byte(largeText)))
	lib := filepath.Join(w.dir, "git", moduleRepo+".git")
	w.gitIn("", "init", "-q", "--bare", "--template=", lib)
	pinned := w.commit(lib, "lib", "", map[string]string{"lib.txt": "of the submodule\n"})
	w.commit(w.repo, "files", "", merged(baseFiles, headFiles, map[string]string{
		".gitmodules": "[submodule \"lib\"]\n\tpath = lib\n\turl = " + url + "\n",
		"big.bin":     fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", oid, len(largeText)),
	}))
	w.gitIn(w.repo, "update-index", "--add", "--cacheinfo", "160000,"+pinned+",lib")
	w.head = w.gitIn(w.repo, "commit-tree", w.gitIn(w.repo, "write-tree"), "-m", "extras", "-p", w.base)
	w.gh.Change(prNumber, func(pr *githubtest.PR) { pr.Head.SHA = w.head })
	leaked = &[]string{}
	w.git.Before(func(rw http.ResponseWriter, r *http.Request) bool {
		_, password, _ := r.BasicAuth()
		switch {
		case strings.HasPrefix(r.URL.Path, "/"+moduleRepo):
			if r.Header.Get("Authorization") != "" {
				*leaked = append(*leaked, r.URL.Path)
			}
			r.SetBasicAuth("x", jobToken)
		case r.URL.Path == "/"+hub+".git/info/lfs/objects/batch" && password == jobToken:
			fmt.Fprintf(rw, `{"objects":[{"oid":%q,"size":%d,"actions":{"download":{"href":%q}}}]}`, oid, len(largeText), w.git.URL+"/large")
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
	leaked := w.addExtras("../../" + moduleRepo)
	s := w.act("pull_request", w.event("pull_request.opened", nil), extrasPlan)
	if s.outputs["conclusion"] != "failure" {
		t.Errorf("without the setting: outputs %q\n%s", s.outputs, s.log)
	}
	want(t, "comment", w.comment().Body, "lib: submodule", "<code>big.bin:</code> Git LFS", "checkout: {submodules: true, lfs: true}")
	w.push("master", map[string]string{".github/fumehood.yml": extrasField + "checkout: {submodules: true, lfs: true}\n"})
	s = w.act("pull_request", w.event("pull_request.opened", nil), extrasPlan)
	body := w.comment().Body
	if s.outputs["conclusion"] != "success" || strings.Contains(body, "Not in the workspace") || len(*leaked) > 0 {
		t.Errorf("outputs %q, credentials sent to %q\n%s\n%s", s.outputs, *leaked, s.log, body)
	}
	want(t, "comment", body, "of the submodule", strings.TrimSpace(largeText), "<b>stdout</b>, 30 bytes")
}

// THREATS 16: a submodule on another server is not fetched, and is named with the reason.
func TestE2EActionHostileSubmodule(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, map[string]string{".github/fumehood.yml": extrasField + "checkout: {submodules: true}\n"}, nil)
	w.addExtras("http://127.0.0.1:1/" + moduleRepo)
	s := w.act("pull_request", w.event("pull_request.opened.fork", nil), "INPUT_PLAN=schema: fumehood.plan/v1\nproposals:\n  - {id: look, run: ls -A lib}\n")
	if s.outputs["conclusion"] != "success" {
		t.Errorf("outputs %q\n%s", s.outputs, s.log)
	}
	want(t, "summary", s.summary, "its URL is on another server", "checkout: {lfs: true}")
}
