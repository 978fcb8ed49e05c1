// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package main

import (
	"strings"
	"testing"
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
				w.permit("contents:read", "pull_requests:read")
			}
			s := w.act("pull_request", w.event(event, nil), "INPUT_PLAN="+partlyInvalid)
			if s.code != exitRefused || s.outputs["conclusion"] != "failure" {
				t.Fatalf("exit %d, outputs %q\n%s", s.code, s.outputs, s.log)
			}
			want(t, "log", s.log, "proposals[1].timeout", "runs before")
			if fork {
				w.upload(s, nil)
				w.permit("contents:read", "pull_requests:write", "actions:read")
				w.report(nil)
			}
			body := w.comment().Body
			want(t, "comment", body, "3 denied, 1 not run, 2 succeeded", "3 proposals of the plan are invalid", "<code>refused-4</code>",
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
	s := w.ask("Codertocat", "/fumehood run\n```fumehood\n"+partlyInvalid+"```\n")
	if s.code != exitRefused {
		t.Errorf("exit %d\n%s", s.code, s.log)
	}
	want(t, "comment", w.comment().Body, "3 denied, 1 not run, 2 succeeded", "invalid value")
	w.ask("Codertocat", "/fumehood explain slow")
	want(t, "answer", w.comment().Body, "plan.proposal", "soon")
}
