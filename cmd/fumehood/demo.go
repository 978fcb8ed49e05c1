// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/demotools"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/report/progress"
	"github.com/fumehood/fumehood/testdata/demo"
)

func demoCommand() *command {
	return &command{
		name:     "demo",
		synopsis: "run the full pipeline on a sample pull request and print the comment",
		usage: `[flags]

The first run from source builds fumehood-runsc, once.

examples:
  fumehood demo
  fumehood demo --json | jq .totals
`,
		run: runDemo,
	}
}

// runDemo exits with 0 when the pipeline ran to its end: some commands are denied and
// one test fails.
func runDemo(c *invocation) int {
	var s runFlags
	f := c.Flags()
	s.defineCommon(f)
	if code, ok := c.Parse(f); !ok {
		return code
	}
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
	if err := s.layDemo(dir); err != nil {
		return c.Stop(err)
	}
	if code := c.gate(&s, p); code == exitStopped {
		return code
	}
	return exitOK
}

// layDemo writes the pull request and its repository's policy below dir.
func (s *runFlags) layDemo(dir string) error {
	s.workspace, s.steps, s.buildCache = filepath.Join(dir, "billing"), true, demotools.BuildCache()
	policy := filepath.Join(dir, "policy")
	s.policies.Restricting = append(s.policies.Restricting, policy)
	if err := demo.WritePolicy(policy); err != nil {
		return err
	}
	return demo.Write(s.workspace)
}
