// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"strings"
	"testing"
)

// The one-job form: a pull request of the same repository, from event to comment.
func TestActionSameRepository(t *testing.T) {
	w := newWorld(t, false, nil, nil)
	s := w.act("pull_request", w.event("pull_request.opened", nil))
	if s.code != exitRefused || s.outputs["conclusion"] != "failure" || s.outputs["sha"] != w.head {
		t.Errorf("exit %d, outputs %q\n%s", s.code, s.outputs, s.log)
	}
	want(t, "comment", w.comment().Body, "<!-- fumehood:report -->", w.head[:12], "curl", "denied")
	want(t, "summary", s.summary, "curl")
	if s.outputs["comment-url"] == "" || s.outputs["allowed"] != "2" || s.outputs["denied"] != "1" || s.outputs["failed"] != "1" {
		t.Errorf("outputs %q", s.outputs)
	}
}

// A fork's pull request: a run without any right to write, whose artifact another
// workflow reports, without the code.
func TestActionFork(t *testing.T) {
	w := newWorld(t, true, nil, nil)
	w.permit("contents:read", "pull_requests:read")
	s := w.act("pull_request", w.event("pull_request.opened.fork", nil))
	if s.code != exitRefused || len(w.gh.Comments(prNumber)) != 0 {
		t.Errorf("exit %d, %d comments\n%s", s.code, len(w.gh.Comments(prNumber)), s.log)
	}
	want(t, "summary", s.summary, "curl", "denied")
	w.upload(s, nil)
	w.permit("contents:read", "pull_requests:write", "actions:read")
	r := w.report(nil)
	if r.code != exitRefused || r.outputs["conclusion"] != "failure" {
		t.Errorf("exit %d, outputs %q\n%s", r.code, r.outputs, r.log)
	}
	body := w.comment().Body
	want(t, "comment", body, w.head[:12], "curl", "sealed and complete", "Self-reported")
	if strings.Contains(body, "another policy") {
		t.Errorf("the comment doubts an honest report:\n%s", body)
	}
}

// THREATS 27: what an artifact says is never believed about where it comes from, and
// not shown when it is not of one piece.
func TestActionForgedArtifact(t *testing.T) {
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
	for name, test := range tests {
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
