// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/pkg/cli"
	"github.com/fumehood/fumehood/pkg/demotools"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/report/progress"
	"github.com/fumehood/fumehood/pkg/rootfs"
	"github.com/fumehood/fumehood/testdata/demo"
)

func (c *invocation) demoCommand() *cobra.Command {
	var s runFlags
	cmd := &cobra.Command{
		Use:     "demo [flags]",
		GroupID: groupSetup,
		Short:   "Run the full pipeline on a sample pull request",
		Long: `Run the full pipeline on a sample pull request: some commands succeed, one fails, and policy
denies some. --output markdown prints the comment as the GitHub Action would post it.

If fumehood was built from source, the first run also builds fumehood-runsc.

Exit codes: 0 the pipeline ran to its end, 3 it could not`,
		Example: `  fumehood demo
  fumehood demo --output markdown
  fumehood demo --json | jq .totals`,
		Args: cli.NoArgs,
		RunE: c.Run(func([]string) int { return c.runDemo(&s) }),
	}
	s.defineCommon(cmd)
	return cmd
}

// runDemo returns exitOK if the pipeline ran to its end, although the demo's commands
// include one that fails and some that are denied.
func (c *invocation) runDemo(s *runFlags) int {
	p, problems := plan.Decode(demo.Plan, "plan.yaml")
	if len(problems) > 0 {
		panic("demo: internal error: " + plan.Describe("plan.yaml", problems[0]))
	}
	say := progress.New(c.Stderr).Notice
	say(fmt.Sprintf("a reviewer proposes %d commands on a small pull request; running them usually takes 5 to 15 s", len(p.Proposals)))
	p.Proposals = demotools.Keep(p.Proposals, say)
	dir, err := os.MkdirTemp("", "fumehood-demo-")
	if err != nil {
		return c.Stop(err)
	}
	defer os.RemoveAll(dir)
	if err := s.writeDemo(dir); err != nil {
		return c.Stop(err)
	}
	if code := c.gate(s, p); code == exitStopped {
		return code
	}
	return exitOK
}

// writeDemo writes the pull request and its repository's policy below dir.
func (s *runFlags) writeDemo(dir string) error {
	s.workspace, s.steps, s.buildCache = filepath.Join(dir, "billing"), true, rootfs.UserGoCache()
	policy := filepath.Join(dir, "policy")
	s.policies.Restricting = append(s.policies.Restricting, policy)
	if err := demo.WritePolicy(policy); err != nil {
		return err
	}
	return demo.Write(s.workspace)
}
