// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/github/githubtest"
)

// THREATS 27: an artifact's statement about its own origin is never trusted, and an
// inconsistent artifact is not shown.
func TestE2EActionForgedArtifact(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		forge  func(w *world, files map[string][]byte)
		pieces []string
	}{
		"a pass for a fail": {func(_ *world, f map[string][]byte) {
			f[reportName] = bytes.ReplaceAll(f[reportName], []byte(`"exit_code": 1`), []byte(`"exit_code": 0`))
		}, []string{"report.malformed"}},
		"another pull request": {func(_ *world, f map[string][]byte) {
			f[reportName] = bytes.ReplaceAll(f[reportName], []byte(`"pr": 2`), []byte(`"pr": 3`))
		}, []string{"report.malformed"}},
		"another plan": {func(_ *world, f map[string][]byte) {
			f[planName] = []byte("schema: fumehood.plan/v1\nproposals:\n- {id: a, run: 'true'}\n")
		}, []string{"report.malformed"}},
		"no log":          {func(_ *world, f map[string][]byte) { delete(f, auditName) }, []string{"report.malformed"}},
		"no report":       {func(_ *world, f map[string][]byte) { delete(f, reportName) }, []string{"report.malformed"}},
		"a log cut short": {func(_ *world, f map[string][]byte) { f[auditName] = f[auditName][:len(f[auditName])/2] }, []string{"report.malformed"}},
		"another commit": {func(w *world, f map[string][]byte) {
			f[reportName] = bytes.ReplaceAll(f[reportName], []byte(w.head), []byte(strings.Repeat("ab", 20)))
		}, []string{"report.malformed"}},
	}
	w := newWorld(t, true, nil, nil)
	s := w.act("pull_request", w.event("pull_request.opened.fork", nil))
	for _, name := range keysOneIn(t, 3, len(tests), tests) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			w.runID += 10
			w.upload(s, func(f map[string][]byte) { test.forge(w, f) })
			w.addRun("pull_request", "failure")
			r := w.report(nil)
			if r.code == exitOK || r.outputs["conclusion"] != "error" {
				t.Errorf("exit %d, outputs %q\n%s", r.code, r.outputs, r.log)
			}
			body := w.comment().Body
			want(t, "comment", body, test.pieces...)
			if strings.Contains(body, "notes/new.txt") {
				t.Errorf("the comment shows what was forged:\n%s", body)
			}
		})
	}
}

// THREATS 14: an earlier step's checkout is used only if it is at the commit and
// lacks the credential that actions/checkout stores by default.
func TestE2EActionExistingCheckout(t *testing.T) {
	t.Parallel()
	clone := func(w *world, commit string) string {
		dir := t.TempDir()
		w.gitIn("", "clone", "-q", "--no-checkout", w.dir+"/git/"+hub+".git", dir)
		w.gitIn("", "-C", dir, "fetch", "-q", "origin", "refs/pull/2/head")
		w.gitIn("", "-C", dir, "checkout", "-q", "--detach", commit)
		w.gitIn("", "-C", dir, "remote", "set-url", "origin", "https://github.com/"+hub)
		return dir
	}
	tests := []struct {
		name   string
		change func(w *world, dir string)
		code   string
	}{
		{"as it should be", func(*world, string) {}, ""},
		{"credential in the config", func(w *world, dir string) {
			w.gitIn("", "-C", dir, "config", "http.https://github.com/.extraheader", "AUTHORIZATION: basic eDp5")
		}, "checkout.credentials"},
		{"credential in a file that the config includes", func(w *world, dir string) {
			file := filepath.Join(w.dir, "git-credentials-1.config")
			w.gitIn("", "config", "--file", file, "http.https://github.com/.extraheader", "AUTHORIZATION: basic eDp5")
			w.gitIn("", "-C", dir, "config", "includeIf.gitdir:"+dir+"/.git.path", file)
		}, "checkout.credentials"},
		{"another commit", func(w *world, dir string) { w.gitIn("", "-C", dir, "checkout", "-q", w.base) }, "checkout.head"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, false, nil, nil)
			dir := clone(w, w.head)
			test.change(w, dir)
			if err := os.WriteFile(filepath.Join(dir, "made-by-an-earlier-step.txt"), []byte("x"), 0o644); err != nil {
				t.Fatal(err)
			}
			s := w.act("pull_request", w.event("pull_request.opened", nil), "INPUT_PLAN="+lookPlan, "GITHUB_SHA="+githubtest.SHA("merge"), "GITHUB_WORKSPACE="+filepath.Dir(dir), "INPUT_CHECKOUT="+filepath.Base(dir))
			if test.code == "" {
				want(t, "comment", w.comment().Body, "1 succeeded", "made-by-an-earlier-step.txt")
				return
			}
			if s.code != exitStopped {
				t.Errorf("exit %d\n%s", s.code, s.log)
			}
			want(t, "log", s.log, test.code)
			want(t, "comment", w.comment().Body, test.code)
			if test.code == "checkout.credentials" {
				want(t, "log", s.log, "persist-credentials: false")
			}
		})
	}
}

// The check run has the conclusion, and annotations on lines of the pull request's files.
func TestE2EActionCheckRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, map[string]string{"go.mod": "module example.com/m\n\ngo 1.21\n", "bad.go": "package m\n\nfunc f() int { return \"x\" }\n"})
	w.permit("contents:read", "pull_requests:write", "checks:write")
	plan := "schema: fumehood.plan/v1\nproposals:\n  - {id: vet, run: go vet ./...}\n"
	s := w.act("pull_request", w.event("pull_request.opened", nil), "INPUT_PLAN="+plan, "INPUT_CHECK_RUN=true")
	runs := w.gh.CheckRuns(w.head)
	if len(runs) != 1 || runs[0].Conclusion != "failure" || len(runs[0].Annotations) == 0 || runs[0].Annotations[0].Path != "bad.go" || runs[0].Annotations[0].StartLine != 3 {
		t.Errorf("check runs %+v\n%s", runs, s.log)
	}
}

// With network: policy, a rule of the repository can grant what a plan requests,
// also for a fork. The gateway refuses and reports everything else. Without that
// input nothing is granted.
func TestE2EActionNetwork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, map[string]string{".github/fumehood/hosts.rego": `package fumehood.proposal

# METADATA
# title: An address that the gateway always refuses
# custom: {rule: house.hosts}
network contains {"rule": "house.hosts", "host": h} if {
	some h in input.proposal.network
	h == "127.0.0.1:9"
}
`}, map[string]string{"connect.sh": "(: < /dev/tcp/198.51.100.7/9) || true\n"})
	plan := "schema: fumehood.plan/v1\nproposals:\n  - {id: try, network: ['127.0.0.1:9'], run: bash connect.sh}\n"
	event := w.event("pull_request.opened.fork", nil)
	if s := w.act("pull_request", event, "INPUT_PLAN="+plan); s.outputs["denied"] != "1" {
		t.Errorf("without the input: outputs %q\n%s", s.outputs, s.log)
	}
	s := w.act("pull_request", event, "INPUT_PLAN="+plan, "INPUT_NETWORK=policy")
	if s.outputs["allowed"] != "1" || s.code != exitOK {
		t.Fatalf("outputs %q\n%s", s.outputs, s.log)
	}
	w.upload(s, nil)
	w.report(nil, "INPUT_NETWORK=policy")
	want(t, "comment", w.comment().Body, "tried to reach hosts that are not allowed", "198.51.100.7:9", "egress.address")
}

// However much commands print, the report can be read: their output is in a
// separate artifact.
func TestE2EActionNoisyFork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	much := either("30k", "30k", "60M")
	plan := fmt.Sprintf("schema: fumehood.plan/v1\nproposals:\n  - {id: noise, run: head -c %[1]s /dev/urandom}\n  - {id: more, run: head -c %[1]s /dev/urandom}\n", much)
	s := w.act("pull_request", w.event("pull_request.opened.fork", nil), "INPUT_PLAN="+plan)
	entries, err := os.ReadDir(s.outputs["artifact-path"])
	if err != nil || len(entries) != 6 || s.outputs["files-name"] != "files-of-fumehood-fumehood" {
		t.Errorf("%d files in the artifact (%v), outputs %q", len(entries), err, s.outputs)
	}
	w.upload(s, nil)
	r := w.report(nil)
	if r.outputs["conclusion"] != "success" {
		t.Errorf("outputs %q\n%s", r.outputs, r.log)
	}
	want(t, "comment", w.comment().Body, "2 succeeded")
	want(t, "summary", s.summary, "files-of-fumehood")
}
