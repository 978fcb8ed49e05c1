// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"time"

	"github.com/fumehood/fumehood/pkg/job"
)

// settle is set in tests only: every job of a repository must wait as long as the others.
var settle time.Duration

func actionCommand() *command {
	return &command{
		name:     "action",
		synopsis: "what the GitHub Action does in a job; everything comes by the environment",
		usage: `

Reads the runner's variables (GITHUB_*, RUNNER_*), the event file and the action's
inputs (INPUT_PLAN, INPUT_POLICY, … as action.yml maps them), and writes outputs,
step summary, comment and check run. It is started by action.yml; from a desk use
fumehood run.

examples:
  fumehood run --plan plan.yaml --workspace .      the same gate, from a desk
`,
		run: runAction,
	}
}

// runAction never exits with a code that says nothing went wrong unless a conclusion does.
func runAction(c *invocation) int {
	f := c.Flags()
	if code, ok := c.Parse(f); !ok {
		return code
	}
	self, err := os.Executable()
	if err != nil {
		return c.Stop(err)
	}
	conclusion, err := job.Do(c.Ctx, job.Options{Getenv: os.Getenv, Stdout: c.Stdout, Program: []string{self, "run"},
		Version: fumehoodVersion(), Compile: newEngine, Settle: settle})
	if err != nil {
		return c.Stop(err)
	}
	switch conclusion.Status {
	case job.Passed:
		return exitOK
	case job.Refused:
		return exitRefused
	}
	return exitStopped
}
