// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli/runs"
	"github.com/fumehood/fumehood/internal/author/replay"
	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// suggestFlags are the flags of policy suggest.
type suggestFlags struct {
	policies runs.Policies
	past     pastFlags
	wanted   replay.Wanted
	out      string
	format   cli.Format
}

func suggestCommand(c *cli.Invocation) *cobra.Command {
	var s suggestFlags
	cmd := &cobra.Command{
		Use:   "suggest LOG|DIR… [flags]",
		Short: "Write rules that allow what past runs ran, for a person to review",
		Long: `Write rules that allow what past runs ran, for a person to review: one file per tool, with
hosts and test cases. The past is read from audit logs. With --organization, the suggested
policy refuses everything else, and the default policy still refuses what it refuses.
Proposals without a suggestion are listed with the reason.`,
		Example: `  fumehood policy suggest ~/.local/state/fumehood --out seen
  fumehood policy test --organization seen
  fumehood run --plan plan.yaml --policy seen --observe     a trial: it refuses nothing
  fumehood run --plan plan.yaml --organization seen         in force
  fumehood policy suggest audit.jsonl --json | jq '.left'`,
		Args: cli.SomeArgs("a log or a directory of them"),
		RunE: c.Run(func(args []string) int { return suggestPolicy(c, &s, args) }),
	}
	f := cmd.Flags()
	f.BoolVar(&s.wanted.Refused, "refused", false,
		"also suggest rules for commands that were refused only because no rule knows them")
	f.IntVar(&s.wanted.AtLeast, "at-least", 1, "`N` omit commands that were seen less than N times")
	f.StringVar(&s.out, "out", "", "`DIR` write the policy to this new directory (default: print it)")
	s.format.Define(cmd, cli.Text, cli.JSON, cli.Markdown)
	s.past.defineFlags(cmd)
	s.policies.Define(cmd)
	cli.CompleteDirectories(cmd, "out")
	cli.NoFiles(cmd, "at-least")
	return cmd
}

func suggestPolicy(c *cli.Invocation, s *suggestFlags, paths []string) int {
	past, made, err := suggestRules(c, paths, s)
	if f := proposal.FailureOf(err); f != nil && f.Code == "suggest.empty" {
		c.PrintNotes(made.Notes()...)
	}
	if err == nil && s.out != "" {
		err = made.Write(s.out)
	}
	if err != nil {
		return c.Stop(err)
	}
	c.PrintNotes(replay.Past{Left: past.Left}.Notes()...)
	return c.ExitCode(cli.OK, printSuggestion(c, made, s))
}

func suggestRules(
	c *cli.Invocation, paths []string, of *suggestFlags,
) (past replay.Past, s replay.Suggestion, err error) {
	layers, err := of.policies.ReadLayers(c.Ctx)
	if err != nil {
		return past, s, err
	}
	if past, err = of.past.readPast(paths); err != nil {
		return past, s, err
	}
	s, err = replay.SuggestUnder(c.Ctx, past,
		replay.Policy{Layers: layers, New: runs.NewEngine, Parse: order.AnalyzeProposal}, of.wanted)
	return past, s, err
}

func printSuggestion(c *cli.Invocation, made replay.Suggestion, s *suggestFlags) error {
	if !s.format.Is(cli.JSON) {
		c.PrintNotes(made.Notes()...)
	}
	return c.PrintAnswer(s.format, func() error { return c.Print(made.JSON()) }, func(w io.Writer) error {
		if s.out == "" {
			made.Print(w)
			return nil
		}
		dir := terminal.EscapeLine(s.out)
		_, err := fmt.Fprintf(w, "%s, in %s; %s\n%s\n", made.CountMade(), dir, made.LeftOut(), made.Next(dir))
		return err
	})
}
