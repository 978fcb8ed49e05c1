// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package job_test

import (
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
)

// THREATS 67: a push to the default branch leaves its layer for actions/cache/save, and other
// jobs only read. What was restored and is not that layer is refused, and set-up runs.
func TestNightlyActionLayers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, layeredFiles, nil)
	opened := w.EventPayload("pull_request.opened", nil)
	s, made := w.actLayers("push", w.pushEvent("master"), nil, "GITHUB_REF=refs/heads/master")
	if s.Code != cli.OK || fromLayer(t, s) || len(made) != 1 {
		t.Fatalf("push: exit %d, made %d\n%s", s.Code, len(made), s.Log)
	}
	if s, after := w.actLayers("pull_request", opened, made, "GITHUB_REF=refs/pull/2/merge"); s.Code != cli.OK || !fromLayer(t, s) || len(after) != 1 {
		t.Errorf("pull_request: exit %d, %d files\n%s", s.Code, len(after), s.Log)
	}
	// Nothing was restored: set-up runs, and what it leaves ends with the run.
	if s, after := w.actLayers("pull_request", opened, nil, "GITHUB_REF=refs/heads/master"); s.Code != cli.OK || fromLayer(t, s) || len(after) != 0 {
		t.Errorf("pull_request without a layer: exit %d, left %d\n%s", s.Code, len(after), s.Log)
	}
	name := onlyName(made)
	other := w.Push("master", map[string]string{"go.mod": "module x\n\ngo 1.20\n"})
	s, replay := w.actLayers("push", w.pushEvent("master"), nil, "GITHUB_REF=refs/heads/master", "GITHUB_SHA="+other)
	if s.Code != cli.OK || len(replay) != 1 || onlyName(replay) == name {
		t.Fatalf("push of another lock file: exit %d, made %d\n%s", s.Code, len(replay), s.Log)
	}
	for what, spoil := range map[string]func([]byte) []byte{
		"poisoned":  func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"truncated": func(b []byte) []byte { return b[:len(b)-1] },
		"replayed":  func([]byte) []byte { return replay[onlyName(replay)] },
		"swapped": func(b []byte) []byte {
			return []byte(strings.Replace(string(b), name[:64], strings.Repeat("0", 64), 1))
		},
	} {
		s, _ := w.actLayers("pull_request", opened, map[string][]byte{name: spoil([]byte(string(made[name])))})
		if s.Code != cli.OK || fromLayer(t, s) || !strings.Contains(s.Log, "layers.") {
			t.Errorf("%s: exit %d\n%s", what, s.Code, s.Log)
		}
	}
	// The job that reports a fork's run does not doubt a layer of the default branch.
	fork := newWorld(t, true, layeredFiles, nil)
	s, _ = fork.actLayers("pull_request", fork.EventPayload("pull_request.opened.fork", nil), made)
	if s.Code != cli.OK || !fromLayer(t, s) {
		t.Fatalf("fork: exit %d\n%s", s.Code, s.Log)
	}
	fork.UploadArtifact(s, nil)
	fork.SetPermissions("contents:read", "pull_requests:write", "actions:read")
	r := fork.RunReport(nil, layeredPlan)
	if body := fork.BotComment().Body; r.Code != cli.OK || !strings.Contains(body, "from layer <code>sha256:") || strings.Contains(body, "differs from") {
		t.Errorf("the report of a fork's run: exit %d\n%s\n%s", r.Code, r.Log, body)
	}
	if s, _ := w.actLayers("push", w.pushEvent("other"), nil, "GITHUB_REF=refs/heads/other"); s.Outputs["conclusion"] != "skipped" {
		t.Errorf("a push to another branch: %q\n%s", s.Outputs, s.Log)
	}
}

// A repository that has switched layers off ignores what was restored, and no other event leaves a layer.
func TestNightlyActionLayersReadOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, layeredFiles, nil)
	w.SetPermissions("contents:read", "pull_requests:write", "checks:write", "actions:read")
	for event, payload := range map[string][]byte{
		"merge_group": w.MergeGroupEvent(nil), "workflow_dispatch": w.EventPayload("workflow_dispatch.bare", func(p map[string]any) {
			p["repository"].(map[string]any)["id"], p["repository"].(map[string]any)["full_name"] = jobtest.HubID, jobtest.Hub
		}),
	} {
		sha := w.Base
		if event == "merge_group" {
			sha = w.Head
		}
		s, after := w.actLayers(event, payload, nil, "GITHUB_SHA="+sha, "GITHUB_REF=refs/heads/master")
		if s.Code != cli.OK || fromLayer(t, s) || len(after) != 0 {
			t.Errorf("%s: exit %d, left %d\n%s", event, s.Code, len(after), s.Log)
		}
	}
	id := w.GH.AddComment(jobtest.PrNumber, "Codertocat", "/fumehood run cat README.md")
	w.Actor = "Codertocat"
	if s, after := w.actLayers("issue_comment", w.CommentEvent(id), nil, "INPUT_PLAN=", "GITHUB_REF=refs/heads/master"); s.Code != cli.OK || fromLayer(t, s) || len(after) != 0 {
		t.Errorf("issue_comment: exit %d, left %d\n%s", s.Code, len(after), s.Log)
	}
	fork := newWorld(t, true, layeredFiles, nil)
	fork.SetPermissions("contents:read", "pull_requests:read")
	if s, after := fork.actLayers("pull_request", fork.EventPayload("pull_request.opened.fork", nil), nil, "GITHUB_REF=refs/heads/master"); s.Code != cli.OK || fromLayer(t, s) || len(after) != 0 {
		t.Errorf("fork: exit %d, left %d\n%s", s.Code, len(after), s.Log)
	}
	w.Push("master", map[string]string{".github/fumehood.yml": layeredConfig + "layers: false\n"})
	s, after := w.actLayers("push", w.pushEvent("master"), nil, "GITHUB_REF=refs/heads/master")
	if s.Code != cli.OK || fromLayer(t, s) || len(after) != 0 || !strings.Contains(s.Log, "input layers-cache has no effect: .github/fumehood.yml of the default branch has layers: false") {
		t.Errorf("without layers: exit %d, left %d\n%s", s.Code, len(after), s.Log)
	}
}
