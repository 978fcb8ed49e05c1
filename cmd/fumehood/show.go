// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/internal/evidence/report/timeline"
	"github.com/fumehood/fumehood/pkg/audit"
)

// showFlags are the flags of show.
type showFlags struct {
	trust  audit.Trust
	view   timeline.Options
	format cli.Format
}

func (c *invocation) showCommand() *cobra.Command {
	var s showFlags
	cmd := &cobra.Command{
		Use:     "show LOG [flags]",
		GroupID: cli.GroupEvidence,
		Short:   "List what happened in a run, in order, from its audit log",
		Long: `List what happened in a run, in order, from its audit log. Times are UTC.

Without --all, show omits programs that ended well, files below the workspace, HOME and
/tmp, and routine events without effect. With --output json, each line is one object: an
entry, or one event of an entry. The last one is the result of the verification.

Exit codes: 0 whole and sealed, also by a key that is not vouched for; 1 altered, cut off or not sealed;
3 cannot be read, or has no proposal with the --id`,
		Example: `  fumehood show audit.jsonl
  fumehood show audit.jsonl --id unit --all
  fumehood show audit.jsonl --json | jq 'select(.kind == "refused")'`,
		Args:              cli.RequireArgs(1, "a log"),
		ValidArgsFunction: cli.CompleteFirstFile,
		RunE:              c.Run(func(args []string) int { return c.showLog(&s, args[0]) }),
	}
	f := cmd.Flags()
	f.StringVar(&s.view.ID, "id", "", "`ID` show only the proposal with this id")
	f.BoolVar(&s.view.All, "all", false, "show every event")
	s.format.Define(cmd, cli.Text, cli.JSON, cli.Markdown)
	defineTrust(cmd, &s.trust, false)
	cli.NoFiles(cmd, "id")
	return cmd
}

func (c *invocation) showLog(s *showFlags, name string) int {
	log, err := audit.OpenFile(name)
	if err != nil {
		return c.Stop(err)
	}
	defer log.Close()
	s.view.JSON = s.format.Is(cli.JSON)
	var found audit.Finding
	write := func(w io.Writer) error {
		found, err = timeline.Write(w, log, s.trust, s.view)
		return err
	}
	if err := c.PrintAnswer(s.format, func() error { return write(c.Stdout) }, write); err != nil {
		return c.Stop(err)
	}
	return codeOf(found, found.Sealed())
}
