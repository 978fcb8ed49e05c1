// SPDX-License-Identifier: Apache-2.0

package action

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/pkg/proposal"
)

var hostedRunner = map[string]string{
	"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "Codertocat/Hello-World", "GITHUB_SERVER_URL": "https://github.com",
	"GITHUB_API_URL": "https://api.github.com", "GITHUB_EVENT_NAME": "pull_request",
	"GITHUB_EVENT_PATH": "/home/runner/work/_temp/_github_workflow/event.json",
	"GITHUB_WORKSPACE":  "/home/runner/work/Hello-World/Hello-World", "RUNNER_TEMP": "/home/runner/work/_temp",
	"RUNNER_TOOL_CACHE": "/opt/hostedtoolcache", "GITHUB_WORKFLOW": "🛡️ fumehood", "GITHUB_JOB": "run",
	"GITHUB_WORKFLOW_REF": "Codertocat/Hello-World/.github/workflows/fumehood.yml@refs/pull/2/merge",
	"GITHUB_SHA":          "ec26c3e57ca3a959ca5aad62de7213c562f8c821", "RUNNER_OS": "Linux", "RUNNER_ARCH": "X64",
	"RUNNER_ENVIRONMENT": "github-hosted", "GITHUB_RUN_ID": "1658821493", "GITHUB_RUN_NUMBER": "3", "GITHUB_RUN_ATTEMPT": "1",
	"GITHUB_OUTPUT":       "/home/runner/work/_temp/_runner_file_commands/set_output_1",
	"GITHUB_STEP_SUMMARY": "/home/runner/work/_temp/_runner_file_commands/step_summary_1",
}

func runnerWith(pairs ...string) func(string) string {
	env := maps.Clone(hostedRunner)
	for i := 0; i < len(pairs); i += 2 {
		env[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return env[name] }
}

func TestRunner(t *testing.T) {
	want := Runner{
		Repository: "Codertocat/Hello-World", ServerURL: "https://github.com", APIURL: "https://api.github.com", EventName: "pull_request",
		EventPath: "/home/runner/work/_temp/_github_workflow/event.json", Workspace: "/home/runner/work/Hello-World/Hello-World",
		Temp: "/home/runner/work/_temp", ToolCache: "/opt/hostedtoolcache", Workflow: "🛡️ fumehood", Job: "run",
		WorkflowRef: "Codertocat/Hello-World/.github/workflows/fumehood.yml@refs/pull/2/merge",
		SHA:         "ec26c3e57ca3a959ca5aad62de7213c562f8c821", OS: "Linux", Arch: "X64", Environment: "github-hosted",
		RunID: 1658821493, RunNumber: 3, Attempt: 1,
		Output:  "/home/runner/work/_temp/_runner_file_commands/set_output_1",
		Summary: "/home/runner/work/_temp/_runner_file_commands/step_summary_1",
	}
	got, err := ReadRunner(runnerWith())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("runner (-want +got):\n%s", diff)
	}
}

func TestRunnerTakes(t *testing.T) {
	for name, pairs := range map[string][]string{
		"GitHub Enterprise":       {"GITHUB_API_URL", "https://ghe.example/api/v3", "GITHUB_SERVER_URL", "https://ghe.example/"},
		"a loopback server":       {"GITHUB_API_URL", "http://127.0.0.1:4010"},
		"what act leaves empty":   {"GITHUB_SHA", "", "GITHUB_WORKFLOW_REF", "", "RUNNER_ENVIRONMENT", "", "RUNNER_TOOL_CACHE", ""},
		"a SHA-256 repository":    {"GITHUB_SHA", strings.Repeat("ab", 32)},
		"debugging":               {"RUNNER_DEBUG", "1"},
		"an enterprise's account": {"GITHUB_REPOSITORY", "octocat_acme/.github"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := ReadRunner(runnerWith(pairs...))
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(r.ServerURL, "/") || r.Debug != (name == "debugging") {
				t.Errorf("runner %+v", r)
			}
		})
	}
}

func TestRunnerRefuses(t *testing.T) {
	for name, pair := range map[string][2]string{
		"owner only": {"GITHUB_REPOSITORY", "Codertocat"}, "three parts": {"GITHUB_REPOSITORY", "a/b/c"},
		"upwards": {"GITHUB_REPOSITORY", "a/.."}, "an option": {"GITHUB_REPOSITORY", "-a/b"}, "a newline": {"GITHUB_REPOSITORY", "a/b\n"},
		"no repository": {"GITHUB_REPOSITORY", ""}, "another scheme": {"GITHUB_API_URL", "file:///etc"}, "no host": {"GITHUB_SERVER_URL", "https://"},
		"a user in the address": {"GITHUB_SERVER_URL", "https://x@github.com"}, "a query": {"GITHUB_API_URL", "https://github.com/?a=b"},
		"an empty query": {"GITHUB_API_URL", "https://github.com/?"}, "a fragment": {"GITHUB_API_URL", "https://github.com/#"},
		"run zero": {"GITHUB_RUN_ID", "0"}, "no attempt": {"GITHUB_RUN_ATTEMPT", ""}, "a negative number": {"GITHUB_RUN_NUMBER", "-1"},
		"another base": {"GITHUB_RUN_ID", "0x1"}, "a huge number": {"GITHUB_RUN_ID", "99999999999999999999"},
		"a relative path": {"GITHUB_OUTPUT", "out"}, "no summary": {"GITHUB_STEP_SUMMARY", ""}, "a control character": {"GITHUB_WORKSPACE", "/a\nb"},
		"a short SHA": {"GITHUB_SHA", "ec26c3e"}, "an event": {"GITHUB_EVENT_NAME", "Pull Request"}, "a job": {"GITHUB_JOB", "a b"},
		"a workflow of two lines": {"GITHUB_WORKFLOW", "a\n::error::b"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := ReadRunner(runnerWith(pair[0], pair[1]))
			var stop *proposal.StopError
			if !errors.As(err, &stop) || stop.Code != "runner.variable" || !strings.Contains(stop.Message, pair[0]) || stop.Hint == "" {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(Runner{}, r); diff != "" {
				t.Errorf("a refused runner is returned: %s", diff)
			}
		})
	}
	for _, value := range []string{"", "false", "1"} {
		_, err := ReadRunner(runnerWith("GITHUB_ACTIONS", value))
		var stop *proposal.StopError
		if !errors.As(err, &stop) || stop.Code != "runner.not-a-runner" {
			t.Errorf("GITHUB_ACTIONS=%q: %v", value, err)
		}
	}
}
