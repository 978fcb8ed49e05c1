// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package job_test

import (
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
)

// The set-up is the default branch's. A pull request that changes the configuration file
// changes nothing for itself.
func TestE2EActionSetup(t *testing.T) {
	t.Parallel()
	config := func(text string) string {
		return "schema: fumehood.config/v1\nregistries: none\nsetup:\n  - mkdir -p deps && echo " + text + " > deps/made\n"
	}
	plan := "INPUT_PLAN=schema: fumehood.plan/v1\nproposals:\n  - {id: look, run: cat deps/made}\n"
	w := newWorld(t, false, map[string]string{".github/fumehood.yml": config("from the base")}, map[string]string{".github/fumehood.yml": config("from the pull request")})
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), plan)
	body := w.BotComment().Body
	if s.Code != cli.OK || s.Outputs["conclusion"] != "success" || strings.Contains(body, "from the pull request") {
		t.Errorf("exit %d, outputs %q\n%s\n%s", s.Code, s.Outputs, s.Log, body)
	}
	jobtest.CheckContains(t, "comment", body, "setup-1", "from the base")

	s = w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), plan, "INPUT_SETUP=none")
	if s.Code != cli.Refused || strings.Contains(w.BotComment().Body, "setup-1") {
		t.Errorf("with setup none: exit %d\n%s", s.Code, w.BotComment().Body)
	}
}

// A configuration that cannot be used stops the run and is named in the comment.
func TestE2EActionSetupWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, map[string]string{".github/fumehood.yml": "schema: fumehood.config/v1\nsetup: sometimes\n"}, nil)
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil))
	if s.Code != cli.Stopped || s.Outputs["conclusion"] != "error" {
		t.Errorf("exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "config.invalid", ":2:")
}

// A pull request alone brings no configuration.
func TestE2EActionSetupOfPullRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, map[string]string{".github/fumehood.yml": "schema: fumehood.config/v1\nregistries: none\nsetup: [echo from the pull request]\n"})
	w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil))
	if body := w.BotComment().Body; strings.Contains(body, "from the pull request") || strings.Contains(body, "setup-1") {
		t.Errorf("the pull request's set-up ran:\n%s", body)
	}
}

// The job that reports a fork's run decides its set-up again, too, and doubts one that this
// repository's configuration does not give.
func TestE2EActionSetupFork(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"listed":   "schema: fumehood.config/v1\nregistries: none\nlimits: {memory: 1GiB}\nsetup: [echo set up]\n",
		"services": "schema: fumehood.config/v1\nsetup: none\nservices: [redis]\n",
		"detected": "schema: fumehood.config/v1\nregistries: none\n",
	} {
		w := newWorld(t, true, map[string]string{".github/fumehood.yml": text, "go.work": "go 1.24\n", "go.mod": "module x\n\ngo 1.24\n", "look.sh": "cat README.md\n"}, nil)
		w.SetPermissions("contents:read", "pull_requests:read")
		s := w.RunStep("pull_request", w.EventPayload("pull_request.opened.fork", nil), "INPUT_PLAN=schema: fumehood.plan/v1\nproposals:\n  - {id: look, run: bash ./look.sh}\n")
		if s.Code != cli.OK {
			t.Fatalf("%s: exit %d\n%s", name, s.Code, s.Log)
		}
		w.UploadArtifact(s, nil)
		w.SetPermissions("contents:read", "pull_requests:write", "actions:read")
		w.RunReport(nil)
		body := w.BotComment().Body
		jobtest.CheckContains(t, name, body, "sealed and complete", "Self-reported")
		if strings.Contains(body, "differs from") || strings.Contains(body, "proposals, the report") {
			t.Errorf("%s: the comment doubts an honest report:\n%s", name, body)
		}
		if name == "services" {
			jobtest.CheckContains(t, name, body, "service-redis")
		}
		if name == "listed" {
			jobtest.CheckContains(t, name, body, "setup-1")
			w.RunReport(nil, "INPUT_SETUP=none")
			jobtest.CheckContains(t, "with another setting", w.BotComment().Body, "the plan has 1 proposals, the report 2")
		}
	}
}

// A configuration file that is there but cannot be read is not taken for none.
func TestE2EActionSetupUnreadable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, map[string]string{".github/fumehood.yml": "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"}, nil)
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil))
	if s.Code != cli.Stopped {
		t.Errorf("exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "config.unreadable")
}
