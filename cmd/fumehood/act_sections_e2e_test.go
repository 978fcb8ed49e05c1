// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Commands of the workflows below: the first fails on the pull request and succeeds on its base.
const (
	redStep   = "grep -qx 'echo hello' greet.sh"
	greenStep = "cat README.md"
)

// ciWorkflow has two jobs. The green one ends last.
const ciWorkflow = `name: ci
on: [pull_request, merge_group]
permissions: {}
jobs:
  unit:
    runs-on: ubuntu-24.04
    permissions: {contents: read, pull-requests: write, checks: write}
    steps:
      - uses: fumehood/fumehood@v1
        with:
          check-run: true
          plan: |
            schema: fumehood.plan/v1
            proposals: [{id: unit, run: "UNIT"}]
  lint:
    needs: unit
    if: always()
    runs-on: ubuntu-24.04
    permissions: {contents: read, pull-requests: write, checks: write}
    steps:
      - uses: fumehood/fumehood@v1
        with:
          check-run: true
          plan: |
            schema: fumehood.plan/v1
            proposals: [{id: lint, run: cat README.md}]
`

// systemsWorkflow has a job with the name of one of ciWorkflow, and the jobs of a matrix. The red leg
// ends first.
const systemsWorkflow = `name: systems
on: pull_request
permissions: {}
jobs:
  unit:
    runs-on: ubuntu-24.04
    permissions: {contents: read, pull-requests: write}
    steps:
      - uses: fumehood/fumehood@v1
        with:
          plan: |
            schema: fumehood.plan/v1
            proposals: [{id: unit, run: cat README.md}]
  system:
    needs: unit
    strategy:
      fail-fast: false
      max-parallel: 1
      matrix:
        include:
          - {name: musl, command: "grep -qx 'echo hello' greet.sh"}
          - {name: glibc, command: cat README.md}
    runs-on: ubuntu-24.04
    permissions: {contents: read, pull-requests: write}
    steps:
      - uses: fumehood/fumehood@v1
        with:
          name: ${{ matrix.name }}
          plan: |
            schema: fumehood.plan/v1
            proposals: [{id: system, run: "${{ matrix.command }}"}]
`

// reviewerWorkflow has a reviewer that proposes nothing.
const reviewerWorkflow = `name: reviewer
on: pull_request
permissions: {}
jobs:
  review:
    runs-on: ubuntu-24.04
    outputs:
      plan: ${{ steps.review.outputs.plan }}
    steps:
      - id: review
        run: echo 'plan={"schema":"fumehood.plan/v1","proposer":"a reviewer","proposals":[]}' >>"$GITHUB_OUTPUT"
  run:
    needs: review
    if: ${{ !cancelled() && needs.review.result != 'skipped' }}
    runs-on: ubuntu-24.04
    permissions: {contents: read, pull-requests: write}
    steps:
      - uses: fumehood/fumehood@v1
        with:
          plan: ${{ needs.review.outputs.plan }}
          reviewer-result: ${{ needs.review.result }}
`

// addWorkflow adds a workflow to the project.
func (s *stage) addWorkflow(name, text string) {
	s.T.Helper()
	s.must(os.WriteFile(filepath.Join(s.project, ".github/workflows", name), []byte(text), 0o644))
}

// No green job of a real runner replaces a red one of the same commit: not another job, another
// workflow, another leg of a matrix, a bot's run, or the same run again; and a reviewer that proposes
// nothing replaces none. There is one comment.
func TestE2EActSections(t *testing.T) {
	t.Parallel()
	s := newStage(t, false, nil, nil)
	s.addWorkflow("ci.yml", strings.ReplaceAll(ciWorkflow, "UNIT", redStep))
	s.addWorkflow("systems.yml", systemsWorkflow)
	s.addWorkflow("reviewer.yml", reviewerWorkflow)
	opened := s.EventPayload("pull_request.opened", nil)
	heading := func(after string, r actRun, want string, sections ...string) {
		t.Helper()
		if got := s.CommentHeading(); got != want {
			t.Fatalf("after %s: %q, want %q\n%s\n%s", after, got, want, s.BotComment().Body, r.log)
		}
		for _, section := range sections {
			if !strings.Contains(s.BotComment().Body, "\n### "+section+"\n") {
				t.Errorf("after %s: no section %q\n%s", after, section, s.BotComment().Body)
			}
		}
	}
	const red = "❌ `ci / unit`: 1 failed"

	r := s.play("ci.yml", "pull_request", opened)
	ran := s.RunID
	heading("two jobs", r, "## ❌ fumehood: 1 failed, 1 succeeded", red, "✅ `ci / lint`: 1 succeeded")
	r = s.play("systems.yml", "pull_request", opened)
	heading("another workflow and a matrix", r, "## ❌ fumehood: 2 failed, 3 succeeded", red,
		"✅ `systems / unit`: 1 succeeded", "❌ `systems / system / musl`: 1 failed", "✅ `systems / system / glibc`: 1 succeeded")
	r = s.asks("Codertocat", "/fumehood run "+greenStep)
	heading("a bot's run", r, "## ❌ fumehood: 2 failed, 4 succeeded", red, "✅ run requested by `Codertocat`: 1 succeeded")
	s.SetPermissions("contents:read", "pull_requests:write", "actions:read", "checks:write")
	r = s.play("reviewer.yml", "pull_request", opened)
	heading("a reviewer that proposes nothing", r, "## ❌ fumehood: 2 failed, 4 succeeded", red, "➖ `reviewer / run`: no commands were proposed")
	if strings.Contains(r.log, "::error") || strings.Contains(r.log, "::warning") || r.code != 0 {
		t.Errorf("exit %d\n%s", r.code, r.log)
	}

	s.edit("ci.yml", redStep, greenStep)
	s.local = append(s.local, "--job", "unit")
	r = s.play("ci.yml", "pull_request", opened, fmt.Sprint("GITHUB_RUN_ID=", ran))
	heading("the same attempt once more", r, "## ❌ fumehood: 2 failed, 4 succeeded", red)
	s.AdvanceClock()
	r = s.play("ci.yml", "pull_request", opened, fmt.Sprint("GITHUB_RUN_ID=", ran), "GITHUB_RUN_ATTEMPT=2")
	heading("a second attempt", r, "## ❌ fumehood: 1 failed, 5 succeeded", "✅ `ci / unit`: 1 succeeded", "❌ `systems / system / musl`: 1 failed", "➖ `reviewer / run`: no commands were proposed")
}
