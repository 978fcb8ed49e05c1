// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/internal/evidence/retention"
	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/internal/kit/text"
)

// logsFlags are the flags of logs prune.
type logsFlags struct {
	format cli.Format
	dir    string
	size   string
	older  int
	dry    bool
}

func (c *invocation) logsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "logs",
		GroupID: cli.GroupEvidence,
		Short:   "Remove the audit logs and files of old runs",
		Long:    `Remove the audit logs and files of old runs, sessions and pods.`,
		Example: `  fumehood logs prune --older 30 --dry-run`,
	}
	cmd.AddCommand(c.logsPruneCommand())
	return cmd
}

func (c *invocation) logsPruneCommand() *cobra.Command {
	var s logsFlags
	cmd := &cobra.Command{
		Use:   "prune [flags]",
		Short: "Remove the audit logs and files of runs that are old, or take too much space",
		Long: `Remove the audit logs and files of runs, sessions and pods that are old, or take too much space, the
oldest first, and list them. A directory stays, and is listed with the reason, if a process writes its log, if the
log is not sealed or not valid, if a command, a program, a network access or a file in it was not allowed, if there
is a finding, if the run ended with an error, or if not all of what a command did is known. Copy what you want to
keep for longer: docs/EVIDENCE.md has the sizes.`,
		Example: `  fumehood logs prune --older 30 --max-size 2GiB --dry-run
  fumehood logs prune --older 14 --dir /var/lib/fumehood/pods
  fumehood logs prune --older 30 --json | jq -r '.[] | select(.kept) | .path'`,
		Args: cli.NoArgs,
	}
	f := cmd.Flags()
	cmd.RunE = c.Run(func([]string) int { return c.pruneLogs(&s) })
	f.IntVar(&s.older, "older", 0, "`DAYS` remove runs that ended this many days ago")
	f.StringVar(&s.size, "max-size", "", "`SIZE` remove the oldest until all take this many bytes, for example 500MiB or 5GB")
	f.BoolVar(&s.dry, "dry-run", false, "list them and remove nothing")
	f.StringVar(&s.dir, "dir", "", "`DIR` directory of the runs (default: ~/.local/state/fumehood)")
	s.format.Define(cmd, cli.Text, cli.JSON)
	cli.CompleteDirectories(cmd, "dir")
	cli.NoFiles(cmd, "max-size", "older")
	return cmd
}

func (c *invocation) pruneLogs(s *logsFlags) int {
	limit := retention.Limit{DryRun: s.dry}
	switch {
	case s.older < 0:
		return c.ReportMisuse("--older must not be negative")
	case s.older == 0 && s.size == "":
		return c.ReportMisuse("logs prune needs --older, --max-size or both")
	case s.older > 0:
		limit.Before = time.Now().AddDate(0, 0, -s.older)
	}
	if s.size != "" {
		size, err := text.ParseBytes(s.size)
		if err != nil {
			return c.ReportMisuse("--max-size " + err.Error())
		}
		limit.Bytes = int64(size)
	}
	state, err := process.StateHome()
	if err != nil && s.dir == "" {
		return c.Stop(err)
	}
	list, err := retention.Prune(c.Ctx, cmp.Or(s.dir, filepath.Join(state, "fumehood")), limit)
	if err != nil && list == nil {
		return c.Stop(err)
	}
	printErr := c.PrintAnswer(s.format,
		func() error { return c.printAnswer(append([]retention.Entry{}, list...)) },
		func(w io.Writer) error { return writePruned(w, list, s.dry) })
	return c.ExitCode(exitOK, errors.Join(printErr, err))
}

// writePruned writes a line for each directory, for people.
func writePruned(w io.Writer, list []retention.Entry, dry bool) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, e := range list {
		done := "removed"
		switch {
		case e.Kept != "":
			done = "kept: " + e.Kept
		case dry:
			done = "would be removed"
		}
		fmt.Fprintf(t, "%s\t%.1f MB\t%s\t%s\n", terminal.EscapeLine(e.Path), float64(e.Bytes)/1e6,
			e.Ended.Format(time.DateOnly), terminal.EscapeLine(done))
	}
	return t.Flush()
}
