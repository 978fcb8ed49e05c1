// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/split"
	"github.com/fumehood/fumehood/pkg/plan"
)

// splitFlags are the flags of split.
type splitFlags struct {
	plan      string
	durations string
	parts     int
}

func (c *invocation) splitCommand() *cobra.Command {
	var s splitFlags
	cmd := &cobra.Command{
		Use:     "split --plan FILE --parts N [flags]",
		GroupID: cli.GroupRun,
		Short:   "Split a plan into parts for the jobs of a GitHub matrix",
		Long: `Split a plan into at most N parts that take about the same time, and print the matrix of a
GitHub Actions job for them. Commands that need each other stay together, and those of set-up
are in every part. A plan that is not valid is one part: its run shows what is wrong.`,
		Example: `  fumehood split --plan plan.yaml --parts 4
  fumehood split --plan plan.yaml --parts 4 --durations durations.json`,
		Args: cli.NoArgs,
		RunE: c.Run(func([]string) int { return c.splitPlan(&s) }),
	}
	cmd.Flags().StringVar(&s.plan, "plan", "", "`FILE` plan with the commands, JSON or YAML; - for standard input")
	cmd.Flags().IntVar(&s.parts, "parts", 0, "`N` maximum number of parts, from 1 to 256")
	cmd.Flags().StringVar(&s.durations, "durations", "",
		"`FILE` durations of earlier runs, which the action's phase report writes")
	return cmd
}

func (c *invocation) splitPlan(s *splitFlags) int {
	if s.plan == "" || s.parts < 1 || s.parts > split.MaxParts {
		return c.ReportMisuse("split needs --plan, and --parts from 1 to 256")
	}
	document, name, err := plan.ReadFile(s.plan, c.Stdin)
	if err != nil {
		return c.ReportMisuse(fmt.Sprintf("cannot read plan: %v", err))
	}
	matrix, err := split.MakeMatrix(document, name, s.parts, c.readDurations(s.durations).Took)
	if err != nil {
		return c.Stop(err)
	}
	return c.ExitCode(exitOK, c.PrintJSON(matrix, nil))
}

// readDurations reads a file, if one is given. One that cannot be used is ignored with a warning.
func (c *invocation) readDurations(path string) split.Durations {
	if path == "" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		c.PrintWarnings(fmt.Sprintf("durations are ignored: %v", err))
		return nil
	}
	defer f.Close()
	d, err := split.ReadDurations(f)
	if err != nil {
		c.PrintWarnings(fmt.Sprintf("durations are ignored: %v", err))
	}
	return d
}
