// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/pkg/cli"
	"github.com/fumehood/fumehood/pkg/cli/runs"
	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/policy/lint"
	"github.com/fumehood/fumehood/pkg/policy/render"
)

// policyCheckFlags are the flags of policy check.
type policyCheckFlags struct {
	policies runs.Policies
	strict   bool
	format   cli.Format
}

func (c *invocation) policyCheckCommand() *cobra.Command {
	var s policyCheckFlags
	cmd := &cobra.Command{
		Use:   "check [flags]",
		Short: "Compile policies, list all their problems and count their rules",
		Long: `Compile policies, list all their problems and count their rules. Each policy is checked in the
role that its flag gives it. A run would not load what is "refused". It would load an "error",
which probably does not do what its author meant.

Exit codes: 0 no problems, 1 something is refused or an error, or with --strict a warning`,
		Example: `  fumehood policy check --policy ./policy
  fumehood policy check --organization ./org --policy ./policy --strict
  fumehood policy check --policy ./policy --json`,
		RunE: c.Run(func(args []string) int { return c.checkPolicy(&s, args) }),
	}
	cmd.Flags().BoolVar(&s.strict, "strict", false, "exit with 1 for warnings, too")
	s.format.Define(cmd, cli.Text, cli.JSON, cli.Markdown)
	s.policies.Define(cmd)
	return cmd
}

func (c *invocation) checkPolicy(s *policyCheckFlags, args []string) int {
	if len(args) > 0 {
		return c.Misuse("policy check takes no argument: name directories with --policy")
	}
	layers, err := s.policies.Layers(c.Ctx)
	if err != nil {
		return c.Stop(err)
	}
	review, err := policy.Check(c.Ctx, layers)
	if err != nil {
		return c.Stop(err)
	}
	return c.Exit(reviewCode(review, s.strict), c.printReview(review, s.format))
}

func reviewCode(r policy.Review, strict bool) int {
	if r.Count(lint.Refused)+r.Count(lint.Wrong) > 0 || strict && len(r.Problems) > 0 {
		return exitRefused
	}
	return exitOK
}

func (c *invocation) printReview(r policy.Review, format cli.Format) error {
	return c.Answer(format, func() error {
		encoder := json.NewEncoder(c.Stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}, func(w io.Writer) error { return render.Review(w, r) })
}
