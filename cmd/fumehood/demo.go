// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli/runs"
	"github.com/fumehood/fumehood/internal/sandbox/rootfs"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/testdata/demo"
)

func (c *invocation) demoCommand() *cobra.Command {
	var s runs.Flags
	var asked bool
	cmd := &cobra.Command{
		Use:     "demo [flags]",
		GroupID: cli.GroupSetup,
		Short:   "Run the full pipeline on a sample pull request",
		Long: `Run the full pipeline on a sample pull request: some commands succeed, one fails, and policy
denies some. --output markdown prints the comment as the GitHub Action would post it.

With --review, a model reviews the pull request: its answers are recorded, its commands and the
reproducers of its findings really run, and the review that it leads to is printed.

If fumehood was built from source, the first run also builds fumehood-runsc.

Exit codes: 0 the pipeline ran to its end, 3 it could not`,
		Example: `  fumehood demo
  fumehood demo --output markdown
  fumehood demo --json | jq .totals
  fumehood demo --review`,
		Args: cli.NoArgs,
		RunE: c.Run(func([]string) int { return c.runDemo(&s, asked) }),
	}
	cmd.Flags().BoolVar(&asked, "review", false, "review the pull request with a recorded model instead")
	s.DefineCommon(cmd)
	return cmd
}

// runDemo returns exitOK if the pipeline ran to its end, although the demo's commands
// include one that fails and some that are denied.
func (c *invocation) runDemo(s *runs.Flags, asked bool) int {
	dir, err := os.MkdirTemp("", "fumehood-demo-")
	if err != nil {
		return c.Stop(err)
	}
	defer os.RemoveAll(dir)
	if err := writeDemo(s, dir); err != nil {
		return c.Stop(err)
	}
	if asked {
		return c.demoReview(s, dir)
	}
	p, problems := plan.Decode(demo.Plan, "plan.yaml")
	if len(problems) > 0 {
		panic("demo: internal error: " + plan.Describe("plan.yaml", problems[0]))
	}
	say := runs.NewProgress(c.Stderr).PrintNotice
	say(fmt.Sprintf("a reviewer proposes %d commands on a small pull request; running them usually takes 5 to 15 s",
		len(p.Proposals)))
	p.Proposals = keepInstalled(p.Proposals, say)
	if code := s.Run(&c.Invocation, p); code == exitStopped {
		return code
	}
	return exitOK
}

// writeDemo writes the pull request and its repository's policy below dir.
func writeDemo(s *runs.Flags, dir string) error {
	s.Workspace, s.BuildCache = filepath.Join(dir, "billing"), rootfs.UserGoCache()
	policy := filepath.Join(dir, "policy")
	s.Policies.Restricting = append(s.Policies.Restricting, policy)
	if err := demo.WritePolicy(policy); err != nil {
		return err
	}
	return demo.Write(s.Workspace)
}
