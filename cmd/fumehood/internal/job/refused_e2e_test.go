// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package job_test

import (
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
)

const partlyInvalid = `schema: fumehood.plan/v1
proposals:
  - {id: look, run: cat README.md}
  - {id: slow, run: cat README.md, timeout: soon}
  - {id: twin, run: cat README.md}
  - {id: twin, run: sort README.md}
  - {id: after, run: cat README.md, needs: [slow]}
  - {id: first, run: mkdir made, phase: setup}
`

// A proposal with a mistake is refused alone: the comment shows the mistake with its place,
// and what the others did. The job that reports a fork's run agrees.
func TestE2EActionRefusedProposal(t *testing.T) {
	t.Parallel()
	for name, fork := range map[string]bool{"in one job": false, "from a fork": true} {
		t.Run(name, func(t *testing.T) {
			w, event := newWorld(t, fork, nil, nil), "pull_request.opened"
			if fork {
				event += ".fork"
				w.SetPermissions("contents:read", "pull_requests:read")
			}
			s := w.RunStep("pull_request", w.EventPayload(event, nil), "INPUT_PLAN="+partlyInvalid)
			if s.Code != cli.Refused || s.Outputs["conclusion"] != "failure" {
				t.Fatalf("exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
			}
			jobtest.CheckContains(t, "log", s.Log, "proposals[1].timeout", "runs before")
			if fork {
				w.UploadArtifact(s, nil)
				w.SetPermissions("contents:read", "pull_requests:write", "actions:read")
				w.RunReport(nil)
			}
			body := w.BotComment().Body
			jobtest.CheckContains(t, "comment", body, "3 denied, 1 not run, 2 succeeded", "3 proposals of the plan are invalid", "<code>refused-4</code>",
				"<code>proposals[1].timeout</code> (line 4, column 45): invalid value", "which did not succeed")
			if strings.Contains(body, "differs from") || strings.Contains(body, "does not match") {
				t.Errorf("the comment doubts an honest report:\n%s", body)
			}
		})
	}
}

// A comment's plan runs without the proposals that are invalid.
func TestE2EBotRefusedProposal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	s := w.AskBot("Codertocat", "/fumehood run\n```fumehood\n"+partlyInvalid+"```\n")
	if s.Code != cli.Refused {
		t.Errorf("exit %d\n%s", s.Code, s.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "3 denied, 1 not run, 2 succeeded", "invalid value")
	w.AskBot("Codertocat", "/fumehood explain slow")
	jobtest.CheckContains(t, "answer", w.BotComment().Body, "plan.proposal", "soon")
}
