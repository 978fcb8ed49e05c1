// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli/runs"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/job"
)

// settle is set in tests only: every job of a repository must wait as long as the others.
var settle time.Duration

func (c *invocation) actionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "action",
		Short: "Run as a step of a GitHub Actions job; configured by the environment",
		Long: `Run as a step of a GitHub Actions job. action.yml starts it. It reads the runner's
variables (GITHUB_*, RUNNER_*), the event file and the action's inputs (INPUT_PLAN,
INPUT_POLICY and others, as action.yml maps them), and writes outputs, step summary,
comment and check run. From the command line, use fumehood run.`,
		Example: `  fumehood run --plan plan.yaml --workspace .      the same gate, from the command line`,
		Args:    cli.NoArgs,
		RunE:    c.Run(func([]string) int { return c.runAction() }),
	}
}

// runAction returns exitOK only for a conclusion that everything passed.
func (c *invocation) runAction() int {
	self, err := os.Executable()
	if err != nil {
		return c.Stop(err)
	}
	conclusion, err := job.Do(c.Ctx, job.Options{Getenv: os.Getenv, Stdout: c.Stdout, Program: self,
		Version: fumehoodVersion(), Compile: runs.NewEngine, Settle: settle})
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
