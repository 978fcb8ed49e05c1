// SPDX-License-Identifier: Apache-2.0

//go:build linux && nightly

package main

import (
	"strings"
	"testing"
)

// THREATS 67: a push to the default branch leaves its layer for actions/cache/save, and other
// jobs only read. What was restored and is not that layer is refused, and set-up runs.
func TestNightlyActionLayers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, layeredFiles, nil)
	opened := w.event("pull_request.opened", nil)
	s, made := w.actLayers("push", w.pushed("master"), nil, "GITHUB_REF=refs/heads/master")
	if s.code != exitOK || s.fromLayer(t) || len(made) != 1 {
		t.Fatalf("push: exit %d, made %d\n%s", s.code, len(made), s.log)
	}
	if s, after := w.actLayers("pull_request", opened, made, "GITHUB_REF=refs/pull/2/merge"); s.code != exitOK || !s.fromLayer(t) || len(after) != 1 {
		t.Errorf("pull_request: exit %d, %d files\n%s", s.code, len(after), s.log)
	}
	// Nothing was restored: set-up runs, and what it leaves ends with the run.
	if s, after := w.actLayers("pull_request", opened, nil, "GITHUB_REF=refs/heads/master"); s.code != exitOK || s.fromLayer(t) || len(after) != 0 {
		t.Errorf("pull_request without a layer: exit %d, left %d\n%s", s.code, len(after), s.log)
	}
	name := onlyName(made)
	other := w.push("master", map[string]string{"go.mod": "module x\n\ngo 1.20\n"})
	s, replay := w.actLayers("push", w.pushed("master"), nil, "GITHUB_REF=refs/heads/master", "GITHUB_SHA="+other)
	if s.code != exitOK || len(replay) != 1 || onlyName(replay) == name {
		t.Fatalf("push of another lock file: exit %d, made %d\n%s", s.code, len(replay), s.log)
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
		if s.code != exitOK || s.fromLayer(t) || !strings.Contains(s.log, "layers.") {
			t.Errorf("%s: exit %d\n%s", what, s.code, s.log)
		}
	}
	// The job that reports a fork's run does not doubt a layer of the default branch.
	fork := newWorld(t, true, layeredFiles, nil)
	s, _ = fork.actLayers("pull_request", fork.event("pull_request.opened.fork", nil), made)
	if s.code != exitOK || !s.fromLayer(t) {
		t.Fatalf("fork: exit %d\n%s", s.code, s.log)
	}
	fork.upload(s, nil)
	fork.permit("contents:read", "pull_requests:write", "actions:read")
	r := fork.report(nil, layeredPlan)
	if body := fork.comment().Body; r.code != exitOK || !strings.Contains(body, "from layer <code>sha256:") || strings.Contains(body, "differs from") {
		t.Errorf("the report of a fork's run: exit %d\n%s\n%s", r.code, r.log, body)
	}
	if s, _ := w.actLayers("push", w.pushed("other"), nil, "GITHUB_REF=refs/heads/other"); s.outputs["conclusion"] != "skipped" {
		t.Errorf("a push to another branch: %q\n%s", s.outputs, s.log)
	}
}

// A repository without layers ignores what was restored, and no other event leaves a layer.
func TestNightlyActionLayersReadOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, layeredFiles, nil)
	w.permit("contents:read", "pull_requests:write", "checks:write", "actions:read")
	for event, payload := range map[string][]byte{
		"merge_group": w.group(nil), "workflow_dispatch": w.event("workflow_dispatch.bare", func(p map[string]any) {
			p["repository"].(map[string]any)["id"], p["repository"].(map[string]any)["full_name"] = hubID, hub
		}),
	} {
		sha := w.base
		if event == "merge_group" {
			sha = w.head
		}
		s, after := w.actLayers(event, payload, nil, "GITHUB_SHA="+sha, "GITHUB_REF=refs/heads/master")
		if s.code != exitOK || s.fromLayer(t) || len(after) != 0 {
			t.Errorf("%s: exit %d, left %d\n%s", event, s.code, len(after), s.log)
		}
	}
	id := w.gh.AddComment(prNumber, "Codertocat", "/fumehood run cat README.md")
	w.actor = "Codertocat"
	if s, after := w.actLayers("issue_comment", w.commentEvent(id), nil, "INPUT_PLAN=", "GITHUB_REF=refs/heads/master"); s.code != exitOK || s.fromLayer(t) || len(after) != 0 {
		t.Errorf("issue_comment: exit %d, left %d\n%s", s.code, len(after), s.log)
	}
	fork := newWorld(t, true, layeredFiles, nil)
	fork.permit("contents:read", "pull_requests:read")
	if s, after := fork.actLayers("pull_request", fork.event("pull_request.opened.fork", nil), nil, "GITHUB_REF=refs/heads/master"); s.code != exitOK || s.fromLayer(t) || len(after) != 0 {
		t.Errorf("fork: exit %d, left %d\n%s", s.code, len(after), s.log)
	}
	w.push("master", map[string]string{".github/fumehood.yml": layeredConfig})
	s, after := w.actLayers("push", w.pushed("master"), nil, "GITHUB_REF=refs/heads/master")
	if s.code != exitOK || s.fromLayer(t) || len(after) != 0 || !strings.Contains(s.log, "input layers-cache has no effect") {
		t.Errorf("without layers: exit %d, left %d\n%s", s.code, len(after), s.log)
	}
}
