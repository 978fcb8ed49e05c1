// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli/runs"
	"github.com/fumehood/fumehood/internal/author/replay"
	"github.com/fumehood/fumehood/internal/gate/order"
)

// replayFlags are the flags of policy replay.
type replayFlags struct {
	policies runs.Policies
	past     pastFlags
	failOn   string
	format   cli.Format
}

func replayCommand(c *cli.Invocation) *cobra.Command {
	var s replayFlags
	cmd := &cobra.Command{
		Use:   "replay LOG|REPORT|DIR… [flags]",
		Short: "Decide past runs again and list what would change",
		Long: `Decide past runs again and list what would change. The past is read from audit logs, reports,
and directories of them. Each proposal is decided again under the policies that flags name,
and so are the programs and connections of commands that would still run. Different limits
are a change, too. A log that does not verify is refused.

Exit codes: 0 no change that --fail-on names, 1 at least one, 3 the past or the policy cannot
be read`,
		Example: `  fumehood policy replay ~/.local/state/fumehood --policy ./policy
  fumehood policy replay audit.jsonl --organization ./org --fail-on looser
  fumehood policy replay runs/ --policy ./policy --json | jq '.changes[] | select(.to.effect == "deny")'`,
		Args: cli.SomeArgs("a log, a report or a directory of them"),
		RunE: c.Run(func(args []string) int { return replayPast(c, &s, args) }),
	}
	cmd.Flags().StringVar(&s.failOn, "fail-on", "any",
		"`KIND` exit with 1 for changes of this kind: any, stricter (or allow->deny), looser (or deny->allow), none")
	s.format.Define(cmd, cli.Text, cli.JSON, cli.Markdown)
	s.past.defineFlags(cmd)
	s.policies.Define(cmd)
	cli.CompleteValues(cmd, "fail-on", "any", "stricter", "looser", "none")
	return cmd
}

// pastFlags are the flags of replay and suggest about the past runs that they read.
type pastFlags struct {
	key        string
	unverified bool
}

func (s *pastFlags) defineFlags(cmd *cobra.Command) {
	cli.DefineGroup(cmd, "Trust flags", func(f *pflag.FlagSet) {
		f.StringVar(&s.key, "key", "", "`KEY` verifier key that every log must be signed with (default: the log's own)")
		f.BoolVar(&s.unverified, "unverified", false, "read a log that does not verify up to its first fault")
	})
	cli.NoFiles(cmd, "key")
}

func (s *pastFlags) readPast(paths []string) (replay.Past, error) {
	return replay.Read(paths, replay.Options{Parse: order.AnalyzeProposal, Key: s.key, Unverified: s.unverified})
}

func replayPast(c *cli.Invocation, s *replayFlags, paths []string) int {
	fails := replay.FailOn(s.failOn)
	if fails == nil {
		return c.ReportMisuse(fmt.Sprintf("invalid value %q for --fail-on: use any, stricter, looser or none",
			s.failOn))
	}
	past, outcome, err := decideAgain(c, paths, s)
	if err != nil {
		return c.Stop(err)
	}
	if err := printOutcome(c, past, outcome, s.format); err != nil {
		return c.Stop(err)
	}
	if slices.ContainsFunc(outcome.Changes, fails) {
		return cli.Refused
	}
	return cli.OK
}

// decideAgain reads the past runs and decides them again.
func decideAgain(c *cli.Invocation, paths []string, s *replayFlags) (replay.Past, replay.Outcome, error) {
	// Every decision leaves much garbage and the heap is small. Collecting it each time it
	// grows by half would take a third of the time.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	engine, err := s.policies.NewEngine(c.Ctx)
	if err != nil {
		return replay.Past{}, replay.Outcome{}, err
	}
	past, err := s.past.readPast(paths)
	if err != nil {
		return past, replay.Outcome{}, err
	}
	outcome, err := replay.Redecide(c.Ctx, past, engine,
		runs.NewProgress(c.Stderr).ProposalsPrinter(past.CountProposals()))
	c.PrintWarnings(engine.Warnings()...)
	return past, outcome, err
}

func printOutcome(c *cli.Invocation, past replay.Past, o replay.Outcome, format cli.Format) error {
	if !format.Is(cli.JSON) {
		c.PrintNotes(past.Notes()...)
		if speed := o.Speed(); speed != "" {
			runs.NewProgress(c.Stderr).PrintDetail(speed)
		}
	}
	return c.PrintAnswer(format, func() error { return c.Print(o.JSON(past)) }, o.Write)
}
