// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package job_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/github/githubtest"
	"github.com/fumehood/fumehood/internal/kit/sample"
)

// THREATS 27: an artifact's statement about its own origin is never trusted, and an
// inconsistent artifact is not shown.
func TestE2EActionForgedArtifact(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		forge  func(w world, files map[string][]byte)
		pieces []string
	}{
		"a pass for a fail": {func(_ world, f map[string][]byte) {
			f[jobtest.ReportName] = bytes.ReplaceAll(f[jobtest.ReportName], []byte(`"exit_code": 1`), []byte(`"exit_code": 0`))
		}, []string{"report.malformed"}},
		"another pull request": {func(_ world, f map[string][]byte) {
			f[jobtest.ReportName] = bytes.ReplaceAll(f[jobtest.ReportName], []byte(`"pr": 2`), []byte(`"pr": 3`))
		}, []string{"report.malformed"}},
		"another plan": {func(_ world, f map[string][]byte) {
			f[jobtest.PlanName] = []byte("schema: fumehood.plan/v1\nproposals:\n- {id: a, run: 'true'}\n")
		}, []string{"report.malformed"}},
		"no log":    {func(_ world, f map[string][]byte) { delete(f, jobtest.AuditName) }, []string{"report.malformed"}},
		"no report": {func(_ world, f map[string][]byte) { delete(f, jobtest.ReportName) }, []string{"report.malformed"}},
		"a log cut short": {func(_ world, f map[string][]byte) {
			f[jobtest.AuditName] = f[jobtest.AuditName][:len(f[jobtest.AuditName])/2]
		}, []string{"report.malformed"}},
		"another commit": {func(w world, f map[string][]byte) {
			f[jobtest.ReportName] = bytes.ReplaceAll(f[jobtest.ReportName], []byte(w.Head), []byte(strings.Repeat("ab", 20)))
		}, []string{"report.malformed"}},
	}
	w := newWorld(t, true, nil, nil)
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened.fork", nil))
	for _, name := range sample.EveryNthKey(t, tests, 3, len(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			w.RunID += 10
			w.UploadArtifact(s, func(f map[string][]byte) { test.forge(w, f) })
			w.AddRun("pull_request", "failure")
			r := w.RunReport(nil)
			if r.Code == cli.OK || r.Outputs["conclusion"] != "error" {
				t.Errorf("exit %d, outputs %q\n%s", r.Code, r.Outputs, r.Log)
			}
			body := w.BotComment().Body
			jobtest.CheckContains(t, "comment", body, test.pieces...)
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
	clone := func(w world, commit string) string {
		dir := t.TempDir()
		w.GitIn("", "clone", "-q", "--no-checkout", w.Dir+"/git/"+jobtest.Hub+".git", dir)
		w.GitIn("", "-C", dir, "fetch", "-q", "origin", "refs/pull/2/head")
		w.GitIn("", "-C", dir, "checkout", "-q", "--detach", commit)
		w.GitIn("", "-C", dir, "remote", "set-url", "origin", "https://github.com/"+jobtest.Hub)
		return dir
	}
	tests := []struct {
		name   string
		change func(w world, dir string)
		code   string
	}{
		{"as it should be", func(world, string) {}, ""},
		{"credential in the config", func(w world, dir string) {
			w.GitIn("", "-C", dir, "config", "http.https://github.com/.extraheader", "AUTHORIZATION: basic eDp5")
		}, "checkout.credentials"},
		{"credential in a file that the config includes", func(w world, dir string) {
			file := filepath.Join(w.Dir, "git-credentials-1.config")
			w.GitIn("", "config", "--file", file, "http.https://github.com/.extraheader", "AUTHORIZATION: basic eDp5")
			w.GitIn("", "-C", dir, "config", "includeIf.gitdir:"+dir+"/.git.path", file)
		}, "checkout.credentials"},
		{"another commit", func(w world, dir string) { w.GitIn("", "-C", dir, "checkout", "-q", w.Base) }, "checkout.head"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, false, nil, nil)
			dir := clone(w, w.Head)
			test.change(w, dir)
			if err := os.WriteFile(filepath.Join(dir, "made-by-an-earlier-step.txt"), []byte("x"), 0o644); err != nil {
				t.Fatal(err)
			}
			s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+jobtest.LookPlan, "GITHUB_SHA="+githubtest.CommitID("merge"), "GITHUB_WORKSPACE="+filepath.Dir(dir), "INPUT_CHECKOUT="+filepath.Base(dir))
			if test.code == "" {
				jobtest.CheckContains(t, "comment", w.BotComment().Body, "1 succeeded", "made-by-an-earlier-step.txt")
				return
			}
			if s.Code != cli.Stopped {
				t.Errorf("exit %d\n%s", s.Code, s.Log)
			}
			jobtest.CheckContains(t, "log", s.Log, test.code)
			jobtest.CheckContains(t, "comment", w.BotComment().Body, test.code)
			if test.code == "checkout.credentials" {
				jobtest.CheckContains(t, "log", s.Log, "persist-credentials: false")
			}
		})
	}
}

// The check run has the conclusion, and annotations on lines of the pull request's files.
func TestE2EActionCheckRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, map[string]string{"go.mod": "module example.com/m\n\ngo 1.21\n", "bad.go": "package m\n\nfunc f() int { return \"x\" }\n"})
	w.SetPermissions("contents:read", "pull_requests:write", "checks:write")
	plan := "schema: fumehood.plan/v1\nproposals:\n  - {id: vet, run: go vet ./...}\n"
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+plan, "INPUT_CHECK_RUN=true")
	runs := w.GH.CheckRuns(w.Head)
	if len(runs) != 1 || runs[0].Conclusion != "failure" || len(runs[0].Annotations) == 0 || runs[0].Annotations[0].Path != "bad.go" || runs[0].Annotations[0].StartLine != 3 {
		t.Errorf("check runs %+v\n%s", runs, s.Log)
	}
}

// With network: policy, a rule of the repository can grant what a plan requests,
// also for a fork. The gateway refuses and reports everything else. Without that
// input nothing is granted.
func TestE2EActionNetwork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, hostRule("127.0.0.1:9"), map[string]string{"connect.sh": "(: < /dev/tcp/198.51.100.7/9) || true\n"})
	plan := "schema: fumehood.plan/v1\nproposals:\n  - {id: try, network: ['127.0.0.1:9'], run: bash connect.sh}\n"
	event := w.EventPayload("pull_request.opened.fork", nil)
	if s := w.RunStep("pull_request", event, "INPUT_PLAN="+plan); s.Outputs["denied"] != "1" {
		t.Errorf("without the input: outputs %q\n%s", s.Outputs, s.Log)
	}
	s := w.RunStep("pull_request", event, "INPUT_PLAN="+plan, "INPUT_NETWORK=policy")
	if s.Outputs["allowed"] != "1" || s.Code != cli.OK {
		t.Fatalf("outputs %q\n%s", s.Outputs, s.Log)
	}
	w.UploadArtifact(s, nil)
	w.RunReport(nil, "INPUT_NETWORK=policy")
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "tried to reach hosts that are not allowed", "198.51.100.7:9", "egress.address")
}

// However much commands print, the report can be read: their output is in a
// separate artifact.
func TestE2EActionNoisyFork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	much := map[bool]string{false: "30k", true: "60M"}[sample.IsWhole()]
	plan := fmt.Sprintf("schema: fumehood.plan/v1\nproposals:\n  - {id: noise, run: head -c %[1]s /dev/urandom}\n  - {id: more, run: head -c %[1]s /dev/urandom}\n", much)
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened.fork", nil), "INPUT_PLAN="+plan)
	entries, err := os.ReadDir(s.Outputs["artifact-path"])
	if err != nil || len(entries) != 6 || s.Outputs["files-name"] != "files-of-fumehood-fumehood" {
		t.Errorf("%d files in the artifact (%v), outputs %q", len(entries), err, s.Outputs)
	}
	w.UploadArtifact(s, nil)
	r := w.RunReport(nil)
	if r.Outputs["conclusion"] != "success" {
		t.Errorf("outputs %q\n%s", r.Outputs, r.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "2 succeeded")
	jobtest.CheckContains(t, "summary", s.Summary, "files-of-fumehood")
}
