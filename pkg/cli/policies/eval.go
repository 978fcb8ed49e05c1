// SPDX-License-Identifier: Apache-2.0

//go:build linux

package policies

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/pkg/cli"
	"github.com/fumehood/fumehood/pkg/cli/runs"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/policy/explain"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/terminal"
)

func evalCommand(c *cli.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "eval [flags] ['COMMAND']",
		Short: "Decide one command: effect, reasons, grant, and which rules of which layer matched",
		Long: `Decide one command: effect, reasons, grant, and which rules of which layer matched.

` + subjectUsage + `
Exit codes: 0 allow, 1 deny or ask, 3 cannot decide`,
		Example: `  fumehood policy eval 'go test ./...'
  fumehood policy eval --policy ./policy --phase setup --network registry:npm 'npm ci'
  fumehood policy eval --json --argv -- git log -5 | jq .decision.effect
  echo '{"pr": {"fork": true}, "actor": {"permission": "read"}}' | fumehood policy eval --pr -`,
	}
	return decideCommand(c, cmd, false)
}

func explainCommand(c *cli.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain [flags] ['COMMAND']",
		Short: "Explain why a command is refused, what nearly matched, and what would be allowed",
		Long: `Explain why a command is refused, what nearly matched, and what would be allowed. Every
command that is shown as allowed has been decided, as if it were proposed alone.

` + subjectUsage + `
Exit codes: 0 allow, 1 deny or ask, 3 cannot decide`,
		Example: `  fumehood policy explain 'go test -exec ./x ./...'
  fumehood policy explain --policy ./policy --plan plan.yaml --id unit
  fumehood policy explain --json 'sudo make' | jq '.decision.reasons[0].retry'`,
	}
	return decideCommand(c, cmd, true)
}

// decideFlags are the flags of eval and explain.
type decideFlags struct {
	subject  subject
	policies runs.Policies
	format   cli.Format
}

// decideCommand gives cmd its flags and what it does. deep also finds alternatives.
func decideCommand(c *cli.Invocation, cmd *cobra.Command, deep bool) *cobra.Command {
	var s decideFlags
	s.subject.define(cmd)
	s.format.Define(cmd, cli.Text, cli.JSON, cli.Markdown)
	s.policies.Define(cmd)
	cmd.RunE = c.Run(func(args []string) int { return decideSubject(c, &s, cmd, args, deep) })
	return cmd
}

// decideSubject decides the subject of the command line.
func decideSubject(c *cli.Invocation, s *decideFlags, cmd *cobra.Command, args []string, deep bool) int {
	if code, ok := s.subject.read(c, cmd, args); !ok {
		return code
	}
	engine, err := s.policies.Engine(c.Ctx)
	if err != nil {
		return c.Stop(err)
	}
	all, err := s.subject.Explain(c.Ctx, explain.NewAdviser(engine, gate.Analyze), deep)
	if err != nil {
		return c.Stop(err)
	}
	c.Warn(engine.Warnings()...)
	return c.Exit(explainedCode(all), printExplanations(c, all, s.format, deep))
}

func explainedCode(all []explain.Explanation) int {
	for _, x := range all {
		if x.Decision.Effect != proposal.Allow {
			return cli.Refused
		}
	}
	return cli.OK
}

func printExplanations(c *cli.Invocation, all []explain.Explanation, format cli.Format, deep bool) error {
	return c.Answer(format, func() error {
		for _, x := range all {
			if err := c.PrintJSON(json.Marshal(x)); err != nil {
				return err
			}
		}
		return nil
	}, func(w io.Writer) error {
		return writeExplanations(w, all, explanationStyle{deep: deep, color: format.Is(cli.Text) && terminal.Colors(c.Stdout)})
	})
}
