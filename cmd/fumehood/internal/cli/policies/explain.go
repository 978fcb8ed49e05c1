// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli/runs"
	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/internal/policy/explain"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// explainFlags are the flags of policy explain.
type explainFlags struct {
	subject  subject
	rules    bool
	input    inputFlags
	policies runs.Policies
	format   cli.Format
}

func explainCommand(c *cli.Invocation) *cobra.Command {
	var s explainFlags
	cmd := &cobra.Command{
		Use:   "explain [flags] ['COMMAND']",
		Short: "Decide one command, and explain why it is refused and what would be allowed",
		Long: `Decide one command: effect, reasons and grant. For one that is refused, explain what nearly
matched, and what would be allowed. Every command that is shown as allowed has been decided, as
if it were proposed alone. With --rules, list the rules of each layer that matched instead.

With --input, --point or --from, print what rules get as input, as JSON, and decide nothing. With
--describe or --schema, print what fields the input has.

` + subjectUsage + `
Exit codes: 0 allow, or the input was printed, 1 deny or ask, 3 cannot decide`,
		Example: `  fumehood policy explain 'go test -exec ./x ./...'
  fumehood policy explain --policy ./policy --plan plan.yaml --id unit
  fumehood policy explain --json 'sudo make' | jq '.decision.reasons[0].retry'
  fumehood policy explain --rules --policy ./policy --phase setup --network registry:npm 'npm ci'
  fumehood policy explain --rules --json --argv -- git log -5 | jq .decision.effect
  echo '{"pr": {"fork": true}, "actor": {"permission": "read"}}' | fumehood policy explain --pr -
  fumehood policy explain --input 'go test ./...'
  fumehood policy explain --point command 'go test ./...' > input.json
  fumehood policy explain --input --over 'exec={"path": "/usr/bin/curl"}'
  fumehood policy explain --from audit.jsonl
  fumehood policy explain --describe command
  fumehood policy explain --schema command > command.schema.json`,
	}
	cmd.Flags().BoolVar(&s.rules, "rules", false,
		"list the rules that matched, and look for nothing that would be allowed")
	s.format.Define(cmd, cli.Text, cli.JSON, cli.Markdown)
	s.subject.defineFlags(cmd)
	s.input.defineFlags(cmd)
	s.policies.Define(cmd)
	s.policies.DefineContext(cmd, subjectTitle)
	cmd.RunE = c.Run(func(args []string) int { return explainSubject(c, &s, cmd, args) })
	return cmd
}

// explainSubject reads the subject of the command line, and decides it or prints its input.
func explainSubject(c *cli.Invocation, s *explainFlags, cmd *cobra.Command, args []string) int {
	args, code, ok := s.subject.remainingArgs(c, cmd, args)
	if !ok {
		return code
	}
	if s.input.isAsked() {
		return printInput(c, s, cmd, args)
	}
	if code, ok := s.subject.readSubject(c, args); !ok {
		return code
	}
	engine, err := s.policies.NewEngine(c.Ctx)
	if err != nil {
		return c.Stop(err)
	}
	all, err := s.subject.Explain(c.Ctx, explain.NewAdviser(engine, order.AnalyzeProposal), !s.rules)
	if err != nil {
		return c.Stop(err)
	}
	c.PrintWarnings(engine.Warnings()...)
	return c.ExitCode(explainedCode(all), printExplanations(c, all, s.format, !s.rules))
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
	return c.PrintAnswer(format, func() error {
		for _, x := range all {
			if err := c.PrintJSON(json.Marshal(x)); err != nil {
				return err
			}
		}
		return nil
	}, func(w io.Writer) error {
		return writeExplanations(w, all,
			explanationStyle{deep: deep, color: format.Is(cli.Text) && terminal.WantsColors(c.Stdout)})
	})
}
