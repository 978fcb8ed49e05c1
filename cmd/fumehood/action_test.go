// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
)

// fumehood action runs a step that the environment describes, and its exit code is the step's
// conclusion. What steps do is tested in cmd/fumehood/internal/job.
func TestAction(t *testing.T) {
	t.Parallel()
	w := jobtest.NewWorld(t, false, nil, nil)
	w.Process = true
	if s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil)); s.Code != cli.Refused || s.Outputs["conclusion"] != "failure" {
		t.Errorf("a command was denied: exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, w.Head[:12], "curl", "denied")
	if s := w.RunStep("issue_comment", w.EventPayload("issue_comment.created", nil)); s.Code != cli.OK || s.Outputs["conclusion"] != "skipped" {
		t.Errorf("nothing to do: exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
	}
	if s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_GITHUB_TOKEN="); s.Code != cli.Stopped || s.Outputs["conclusion"] != "error" {
		t.Errorf("no token: exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
	}
}
