// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli/runs"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/settings"
	"github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// checkFlags are the flags of check.
type checkFlags struct {
	plan     string
	policies runs.Policies
	format   cli.Format
}

func (c *invocation) checkCommand() *cobra.Command {
	var s checkFlags
	cmd := &cobra.Command{
		Use:     "check --plan FILE [flags]",
		GroupID: cli.GroupRun,
		Short:   "Decide the commands of a plan and run nothing",
		Long: `Decide each command of a plan and run nothing. With --output json, each line is one record:
the proposal, its analysis and the decision.

Exit codes: 0 everything is allowed, 1 a command is denied or needs approval`,
		Example: `  fumehood check --plan plan.yaml
  fumehood check --plan - --json < plan.json | jq -r '.decision.effect'`,
		Args: cli.NoArgs,
		RunE: c.Run(func([]string) int { return c.checkPlan(&s) }),
	}
	cmd.Flags().StringVar(&s.plan, "plan", "", "`FILE` plan with the commands, JSON or YAML; - for standard input")
	s.format.Define(cmd, cli.Text, cli.JSON, cli.Markdown)
	s.policies.Define(cmd)
	s.policies.DefineContext(cmd, "")
	return cmd
}

func (c *invocation) checkPlan(s *checkFlags) int {
	if s.plan == "" {
		return c.ReportMisuse("check needs --plan")
	}
	p, code, ok := runs.ReadPlan(&c.Invocation, s.plan, nil)
	if !ok {
		return code
	}
	policies, err := s.policies.Read(c.Ctx)
	if err != nil {
		return c.Stop(err)
	}
	about, _, err := s.policies.ReadContext()
	if err != nil {
		return c.Stop(err)
	}
	g, err := runs.NewGate(c.Ctx, gate.Options{DecideOnly: true, Policies: settings.ForGate(policies),
		Subject: gate.Subject{Context: about}})
	if err != nil {
		return c.Stop(err)
	}
	defer g.Close()
	records, err := g.Check(c.Ctx, p)
	if err != nil {
		return c.Stop(err)
	}
	c.PrintWarnings(g.Warnings()...)
	return c.ExitCode(decidedCode(records), c.printRecords(records, s.format))
}

func (c *invocation) printRecords(records []proposal.Record, format cli.Format) error {
	return c.PrintAnswer(format, func() error {
		for _, r := range records {
			if err := c.PrintJSON(json.Marshal(r)); err != nil {
				return err
			}
		}
		return nil
	}, func(w io.Writer) error {
		for _, r := range records {
			report.Decision(w, r)
		}
		return nil
	})
}

// decidedCode is the exit code for decisions of which nothing has run.
func decidedCode(records []proposal.Record) int {
	for _, r := range records {
		if r.Decision.Effect != proposal.Allow {
			return exitRefused
		}
	}
	return exitOK
}
