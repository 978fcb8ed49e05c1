// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package job_test

import (
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/source/config"
)

// placesPlan has a command that fails and names lines of a changed file, of an unchanged one,
// and of none of the commit.
const placesPlan = `schema: fumehood.plan/v1
proposals:
  - id: check
    run: python3 places.py
  - {id: fine, run: cat README.md}
`

var placesFiles = map[string]string{"places.py": `import sys
print("notes/new.txt:1:1: error: changed")
print("README.md:2:1: error: unchanged")
print("../../../../evil/repo/x.c:3:1: error: outside")
print("https://evil.example/x.c:4:1: error: elsewhere")
sys.exit(1)
`}

// The comment links the lines that a failed command names: of all files of the commit in the
// job that has it, of changed ones in a job that only reports, and of no others.
func TestE2EActionCommentLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, placesFiles, nil)
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+placesPlan)
	body, blob := w.BotComment().Body, "/"+jobtest.Hub+"/blob/"+w.Head+"/"
	jobtest.CheckContains(t, "comment", body, blob+"notes/new.txt#L1", blob+"README.md#L2", "❌")
	jobtest.CheckLacks(t, "comment", body, blob+"..", `href="https://evil.example`, "/evil/repo/blob")
	if page := string(jobtest.ReadFile(t, s.Outputs["html"])); !strings.Contains(page, "Content-Security-Policy") || !strings.Contains(page, "sealed and complete") {
		t.Errorf("the page in the artifact is %.200q", page)
	}
	sarif := string(jobtest.ReadFile(t, s.Outputs["sarif"]))
	jobtest.CheckContains(t, "SARIF", sarif, `"uri": "README.md"`, `"uri": "notes/new.txt"`)
	jobtest.CheckLacks(t, "SARIF", sarif, "evil/repo/x.c\"", `"uri": "https`)
	jobtest.CheckContains(t, "JUnit", string(jobtest.ReadFile(t, s.Outputs["junit"])), `<testcase name="check"`, "<failure ")

	w = newWorld(t, true, placesFiles, nil)
	s = w.RunStep("pull_request", w.EventPayload("pull_request.opened.fork", nil), "INPUT_PLAN="+placesPlan)
	w.UploadArtifact(s, nil)
	w.RunReport(nil)
	body, blob = w.BotComment().Body, "/"+jobtest.Hub+"/blob/"+w.Head+"/"
	jobtest.CheckContains(t, "comment", body, "## fumehood: the fork's own run reports: 1 failed, 1 succeeded", blob+"notes/new.txt#L1", "<code>README.md:2</code>", "which that run wrote and signed itself")
	jobtest.CheckLacks(t, "comment", body, blob+"README.md", "✅", `href="https://evil.example`)
}

// The inputs and the default branch's configuration say how much the comment shows.
func TestE2EActionCommentDetail(t *testing.T) {
	t.Parallel()
	configured := jobtest.MergeFiles(placesFiles, map[string]string{config.Path: "schema: fumehood.config/v1\nsetup: none\ncomment: {detail: quiet}\n"})
	for name, tt := range map[string]struct {
		files map[string]string
		env   []string
		shown bool
	}{
		"neither":       {placesFiles, nil, true},
		"input":         {placesFiles, []string{"INPUT_COMMENT_DETAIL=quiet"}, false},
		"configuration": {configured, nil, false},
		"both":          {configured, []string{"INPUT_COMMENT_DETAIL=full"}, true},
	} {
		w := newWorld(t, false, tt.files, nil)
		s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), append(tt.env, "INPUT_PLAN="+placesPlan, "INPUT_COMMENT_LENGTH=6000")...)
		body := w.BotComment().Body
		if shown := strings.Contains(body, "<b>stdout</b>"); shown != tt.shown || len(body) > 9000 {
			t.Errorf("%s: output shown: %v; %d bytes\n%s", name, shown, len(body), s.Log)
		}
		jobtest.CheckContains(t, name, body, "README.md#L2")
	}
	w := newWorld(t, false, placesFiles, nil)
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+placesPlan, "INPUT_COMMENT_DETAIL=loud")
	if s.Code != cli.Stopped || !strings.Contains(s.Log, "comment-detail") {
		t.Errorf("exit %d\n%s", s.Code, s.Log)
	}
}

// With the configuration of the default branch, what a formatter prints about lines that the pull
// request changes is posted on them once, as a suggestion. The pull request's own says nothing.
func TestE2EActionLinters(t *testing.T) {
	t.Parallel()
	configured := map[string]string{config.Path: "schema: fumehood.config/v1\nsetup: none\ncomment: {lines: linters}\n"}
	changes := map[string]string{"bad.go": "package m\n\nfunc f() int { return  1 }\n"}
	const plan = "INPUT_PLAN=schema: fumehood.plan/v1\nproposals:\n  - {id: format, run: gofmt -d bad.go}\n"
	w := newWorld(t, false, configured, jobtest.MergeFiles(configured, changes))
	for range 2 {
		s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), plan)
		list := w.GH.ReviewComments(jobtest.PrNumber)
		if len(list) != 1 || list[0].Path != "bad.go" || list[0].Line != 3 || list[0].Edits != 0 || !strings.Contains(list[0].Body, "```suggestion\nfunc f() int { return 1 }\n```") {
			t.Fatalf("%+v\n%s", list, s.Log)
		}
	}
	w = newWorld(t, false, nil, jobtest.MergeFiles(configured, changes))
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), plan)
	if list := w.GH.ReviewComments(jobtest.PrNumber); len(list) != 0 {
		t.Errorf("not configured: %+v\n%s", list, s.Log)
	}
}
