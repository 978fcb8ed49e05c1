// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"strings"
	"testing"
)

// The set-up is the base commit's. A pull request that changes the configuration file
// changes nothing for itself.
func TestActionSetup(t *testing.T) {
	t.Parallel()
	config := func(text string) string {
		return "schema: fumehood.config/v1\nregistries: none\nsetup:\n  - mkdir -p deps && echo " + text + " > deps/made\n"
	}
	plan := "INPUT_PLAN=schema: fumehood.plan/v1\nproposals:\n  - {id: look, run: cat deps/made}\n"
	w := newWorld(t, false, map[string]string{".github/fumehood.yml": config("from the base")}, map[string]string{".github/fumehood.yml": config("from the pull request")})
	s := w.act("pull_request", w.event("pull_request.opened", nil), plan)
	body := w.comment().Body
	if s.code != exitOK || s.outputs["conclusion"] != "success" || strings.Contains(body, "from the pull request") {
		t.Errorf("exit %d, outputs %q\n%s\n%s", s.code, s.outputs, s.log, body)
	}
	want(t, "comment", body, "setup-1", "from the base")

	s = w.act("pull_request", w.event("pull_request.opened", nil), plan, "INPUT_SETUP=none")
	if s.code != exitRefused || strings.Contains(w.comment().Body, "setup-1") {
		t.Errorf("with setup none: exit %d\n%s", s.code, w.comment().Body)
	}
}

// A configuration that cannot be used stops the run and is named in the comment.
func TestActionSetupWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, map[string]string{".github/fumehood.yml": "schema: fumehood.config/v1\nsetup: sometimes\n"}, nil)
	s := w.act("pull_request", w.event("pull_request.opened", nil))
	if s.code != exitStopped || s.outputs["conclusion"] != "error" {
		t.Errorf("exit %d, outputs %q\n%s", s.code, s.outputs, s.log)
	}
	want(t, "comment", w.comment().Body, "config.invalid", ":2:")
}

// A pull request alone brings no configuration.
func TestActionSetupOfPullRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, map[string]string{".github/fumehood.yml": "schema: fumehood.config/v1\nregistries: none\nsetup: [echo from the pull request]\n"})
	w.act("pull_request", w.event("pull_request.opened", nil))
	if body := w.comment().Body; strings.Contains(body, "from the pull request") || strings.Contains(body, "setup-1") {
		t.Errorf("the pull request's set-up ran:\n%s", body)
	}
}
