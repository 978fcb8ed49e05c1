// SPDX-License-Identifier: Apache-2.0

package action

import (
	"fmt"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// The YAML that fixes a problem. Each constant is a part of a workflow that can be
// pasted as it is.
const (
	yamlPullRequest = `on: pull_request
permissions:
  contents: read
  pull-requests: write
`
	yamlTwoWorkflows = `# .github/workflows/fumehood.yml
name: fumehood
on: pull_request
permissions:
  contents: read
  pull-requests: read
jobs:
  run:
    runs-on: ubuntu-24.04
    steps:
      - uses: fumehood/fumehood@v1
        with:
          phase: run
          plan: plan.json
---
# .github/workflows/fumehood-report.yml
name: fumehood report
on:
  workflow_run:
    workflows: [fumehood]
    types: [completed]
permissions:
  actions: read
  contents: read
  pull-requests: write
jobs:
  report:
    runs-on: ubuntu-24.04
    steps:
      - uses: fumehood/fumehood@v1
        with:
          phase: report
`
	yamlThreeJobs = `permissions: {}
jobs:
  trigger:
    runs-on: ubuntu-24.04
    permissions:
      actions: read
      contents: read
      pull-requests: write
    outputs:
      run: ${{ steps.fumehood.outputs.run }}
      request: ${{ steps.fumehood.outputs.request }}
    steps:
      - id: fumehood
        uses: fumehood/fumehood@v1
        with:
          phase: trigger
  run:
    needs: trigger
    if: needs.trigger.outputs.run == 'true'
    runs-on: ubuntu-24.04
    permissions:
      contents: read
      pull-requests: read
    steps:
      - uses: fumehood/fumehood@v1
        with:
          phase: run
          request: ${{ needs.trigger.outputs.request }}
  report:
    needs: [trigger, run]
    if: always() && needs.trigger.outputs.run == 'true'
    runs-on: ubuntu-24.04
    permissions:
      actions: read
      contents: read
      pull-requests: write
    steps:
      - uses: fumehood/fumehood@v1
        with:
          phase: report
          request: ${{ needs.trigger.outputs.request }}
`
	yamlRunner = `runs-on: ubuntu-24.04
`
	yamlReadOnly = `permissions:
  contents: read
  pull-requests: read
`
	yamlToken = `permissions:
  contents: read
  pull-requests: read
steps:
  - uses: fumehood/fumehood@v1
    with:
      github-token: ${{ github.token }}
`
	yamlPlan = `steps:
  - uses: fumehood/fumehood@v1
    with:
      plan: plan.json
`
	yamlAuto = `with:
  phase: auto
`
)

func refusal(code, message, prose, yaml string) error {
	return &proposal.StopError{Code: code, Message: message, Hint: prose + ":\n\n" + yaml}
}

func refuseTarget() error {
	return refusal("event.pull-request-target",
		"pull_request_target gives this job secrets and a writing token: no code of a pull request runs beside those",
		"use two workflows, one that runs without secrets and one that posts without running", yamlTwoWorkflows)
}

func refuseWorkflowRun() error {
	return refusal("action.workflow-run", "a workflow on workflow_run has secrets and a writing token: no code of a pull request runs beside those",
		"run on pull_request and only report on workflow_run", yamlTwoWorkflows)
}

func refuseOneJob(e Event) error {
	message := "the code of this pull request is a fork's, and this job may have a writing token"
	if e.PR == nil {
		message = "it is not known whose code this pull request has, and this job may have a writing token"
	}
	return refusal("action.fork-one-job", message, "split the workflow into jobs that have only what each needs", yamlThreeJobs)
}

func refuseTrigger(e Event) error {
	return refusal("action.phase", fmt.Sprintf("phase trigger is for issue_comment, and this is %s", e.Name), "let the event decide", yamlAuto)
}

func refusePhase(in Inputs) error {
	return refusal("action.phase", quoted(in.Phase)+" is no phase", "let the event decide", yamlAuto)
}

func refuseRepository(r Runner, e Event) error {
	return &proposal.StopError{Code: "event.repository",
		Message: fmt.Sprintf("the event is about repository %s and the job belongs to %s", quoted(e.Repository.Name), quoted(r.Repository)),
		Hint:    "neither GITHUB_REPOSITORY nor GITHUB_EVENT_PATH may be set by a step or an env: block"}
}

func refuseEventName(r Runner, e Event) error {
	return &proposal.StopError{Code: "event.name",
		Message: fmt.Sprintf("the payload was read as %s and the job's event is %s", quoted(e.Name), quoted(r.EventName)),
		Hint:    "GITHUB_EVENT_NAME must not be set by a step or an env: block"}
}

func refuseOS(r Runner) error {
	return refusal("runner.os", fmt.Sprintf("the sandbox needs Linux, and this runner has %s", quoted(r.OS)), "use a Linux runner", yamlRunner)
}

func refuseArch(r Runner) error {
	return refusal("runner.arch", fmt.Sprintf("the sandbox needs X64 or ARM64, and this runner has %s", quoted(r.Arch)),
		"use such a runner", yamlRunner)
}

func refuseContainer() error {
	return refusal("runner.container", "this job runs in a container, where the sandbox cannot start",
		"remove container: from the job, and let the tools come from the runner", yamlRunner)
}

func refuseUser() error {
	return refusal("runner.root", "the sandbox has to be started by root, and sudo -n does not work here",
		"use a GitHub-hosted runner, or let the runner's user use sudo without a password", yamlRunner)
}

func refuseOIDC() error {
	return refusal("action.oidc", "this job can ask for an OIDC identity (id-token: write) and would run a fork's code",
		"take id-token: write from the job that runs it", yamlReadOnly)
}

func refusePersonalToken() error {
	return refusal("action.personal-token", "github-token is a classic personal token, in a job that would run a fork's code",
		"use the job's own token", yamlToken)
}

func refuseNoPlan() error {
	return refusal("action.no-plan", "there is nothing to run: input plan is empty",
		"name the file that an earlier step has written, or write the plan itself", yamlPlan)
}
