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
          fail-on: error
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
          fail-on: error
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
          fail-on: error
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
      run: npm test # or plan: plan.json
`
	yamlFindings = `steps:
  - uses: fumehood/fumehood@v1
    with:
      phase: review
      findings: findings.json
`
	yamlOwnBranches = `if: github.event.pull_request.head.repo.full_name == github.repository
`
	yamlModel = `steps:
  - uses: fumehood/fumehood@v1
    with:
      phase: find
      provider: anthropic
      model: claude-sonnet-4-6
    env:
      ANTHROPIC_API_KEY: ${{ secrets.ANTHROPIC_API_KEY }}
`
	yamlRounds = `with:
  max-rounds: 1
`
	yamlComment = `on:
  issue_comment:
    types: [created]
`
	yamlAuto = `with:
  phase: auto
`
)

func refuseWithYAML(code, message, prose, yaml string) error {
	return &proposal.StopError{Code: code, Message: message, Hint: prose + ":\n\n" + yaml}
}

func refuseTarget() error {
	return refuseWithYAML("event.pull-request-target",
		"pull_request_target gives this job secrets and a token with write access, so it must not run a pull request's code",
		"use two workflows: one runs commands without secrets, the other posts results and runs no commands", yamlTwoWorkflows)
}

func refuseWorkflowRun() error {
	return refuseWithYAML("action.workflow-run",
		"a workflow on workflow_run has secrets and a token with write access, so it must not run a pull request's code",
		"run commands on pull_request and only report on workflow_run", yamlTwoWorkflows)
}

func refuseOneJob(e Event) error {
	message := "this pull request is from a fork, and this job may have a token with write access"
	if e.PR == nil {
		message = "the origin of this pull request's code is unknown, and this job may have a token with write access"
	}
	return refuseWithYAML("action.fork-one-job", message,
		"split the workflow into jobs with only the permissions that each needs", yamlThreeJobs)
}

func refuseTrigger(e Event) error {
	return refuseWithYAML("action.phase",
		fmt.Sprintf("phase trigger requires a comment or a review: this is %s", e.Name),
		"let the event choose the phase", yamlAuto)
}

func refusePhase(in Inputs) error {
	return refuseWithYAML("action.phase", "invalid phase "+quoteUntrusted(in.Phase), "let the event choose the phase",
		yamlAuto)
}

func refuseRepository(r Runner, e Event) error {
	return &proposal.StopError{Code: "event.repository",
		Message: fmt.Sprintf("the event is for repository %s but the job is in %s", quoteUntrusted(e.Repository.Name),
			quoteUntrusted(r.Repository)),
		Hint: "remove GITHUB_REPOSITORY and GITHUB_EVENT_PATH from steps and env: blocks"}
}

func refuseGroup(r Runner, e Event) error {
	return &proposal.StopError{Code: "event.mismatch",
		Message: fmt.Sprintf("the merge queue's commit is %.12s but the job is for %.12s", e.Group.Head.SHA, r.SHA),
		Hint:    "remove GITHUB_SHA and GITHUB_EVENT_PATH from steps and env: blocks"}
}

func refuseEventName(r Runner, e Event) error {
	return &proposal.StopError{Code: "event.name",
		Message: fmt.Sprintf("the payload was read as %s but the job's event is %s", quoteUntrusted(e.Name),
			quoteUntrusted(r.EventName)),
		Hint: "remove GITHUB_EVENT_NAME from steps and env: blocks"}
}

func refuseOS(r Runner) error {
	return refuseWithYAML("runner.os",
		fmt.Sprintf("the sandbox requires Linux: this runner has %s", quoteUntrusted(r.OS)), "use a Linux runner",
		yamlRunner)
}

func refuseArch(r Runner) error {
	return refuseWithYAML("runner.arch",
		fmt.Sprintf("the sandbox requires X64 or ARM64: this runner has %s", quoteUntrusted(r.Arch)),
		"use a runner with one of them", yamlRunner)
}

func refuseContainer() error {
	return refuseWithYAML("runner.container", "this job runs in a container, where the sandbox cannot start",
		"remove container: from the job and install the tools on the runner", yamlRunner)
}

func refuseUser() error {
	return refuseWithYAML("runner.root", "root must start the sandbox, and sudo -n does not work here",
		"use a GitHub-hosted runner, or allow the runner's user to use sudo without a password", yamlRunner)
}

func refuseUpload() error {
	return refuseWithYAML("runner.artifacts",
		"the job that reports needs this job's artifact, and GitHub Enterprise Server does not support the version of actions/upload-artifact that this action uses",
		"upload the artifact in the next step, with actions/upload-artifact@v3 and this step's outputs artifact-name and artifact-path, and give", "with:\n  upload: false\n")
}

func refuseOIDC() error {
	return refuseWithYAML("action.oidc",
		"this job would run a fork's code but can request an OIDC token (id-token: write)",
		"remove id-token: write from the job that runs it", yamlReadOnly)
}

func refusePersonalToken() error {
	return refuseWithYAML("action.personal-token",
		"this job would run a fork's code but github-token is a person's: a personal access token, or one that an app got from a person",
		"use the job's own token", yamlToken)
}

func refuseNoPlan() error {
	return refuseWithYAML("action.no-plan", "nothing to run: the inputs plan and run are empty",
		"give commands, or the path of a plan that an earlier step writes", yamlPlan)
}

func refuseNoFindings() error {
	return refuseWithYAML("action.no-findings", "nothing to review: input findings is empty",
		"give the path of the file that an earlier step writes, or the findings themselves, or name a model with the inputs provider and model", yamlFindings)
}

func refuseTwoReviewers() error {
	return refuseWithYAML("action.two-reviewers",
		"the inputs findings and provider are both set: a review has one source of findings",
		"remove one of them", yamlFindings)
}

func refuseModelBesideCode() error {
	return refuseWithYAML("action.model-beside-code",
		"a model is asked in the job that runs the code only for pull requests from branches of this repository: this one is from a fork, of unknown origin, or was requested by a comment",
		"use the workflow .github/examples/review.yml in fumehood's repository: one job has the key and runs no code, one runs the code and has neither key nor a token that can write, one posts. Give this job the condition", yamlOwnBranches)
}

func refuseFind() error {
	return refuseWithYAML("action.workflow-run",
		"a workflow on workflow_run would ask the model about every pull request that anyone opens",
		"let a maintainer's comment start the review, as in .github/examples/review.yml", yamlComment)
}

func refuseNoModel() error {
	return refuseWithYAML("action.no-model", "there is no model to ask: input provider or model is empty",
		"name both, and give the key in env", yamlModel)
}

func refuseRounds(n int) error {
	return refuseWithYAML("action.rounds", fmt.Sprintf("phase find asks the model once, and input max-rounds is %d", n),
		"remove the input", yamlRounds)
}

func refuseSplit(e Event) error {
	return refuseWithYAML("action.split",
		fmt.Sprintf("phase split splits the input plan before it runs, and %s brings another plan or none", e.Name),
		"split on events of the pull request", yamlPullRequest)
}
