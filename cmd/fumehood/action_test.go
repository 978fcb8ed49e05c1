// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
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
