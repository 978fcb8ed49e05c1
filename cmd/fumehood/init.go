// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/internal/author/starter"
	"github.com/fumehood/fumehood/internal/kit/terminal"
)

func (c *invocation) initCommand() *cobra.Command {
	var o starter.Options
	var format cli.Format
	cmd := &cobra.Command{
		Use:     "init [DIR] [flags]",
		GroupID: cli.GroupSetup,
		Short:   "Write a first configuration and workflow for a repository",
		Long: `Write .github/fumehood.yml and .github/workflows/fumehood.yml for the repository in DIR, the
current directory by default. The workflow's plan runs the tests that are found, for example
npm test or go test ./... . The configuration changes no default; its comments have the
set-up commands that are detected. If there are some, .github/workflows/fumehood-layers.yml
saves what they leave on the default branch, and pull requests begin with it. Existing files
are not overwritten.`,
		Example: `  fumehood init
  fumehood init ~/src/project --forks`,
		RunE:              c.Run(func(args []string) int { return c.initRepository(o, format, args) }),
		ValidArgsFunction: oneDirectory,
	}
	cmd.Flags().BoolVar(&o.Forks, "forks", false, "write two workflows, which also serve pull requests from forks")
	cmd.Flags().BoolVar(&o.Force, "force", false, "overwrite existing files")
	format.Define(cmd, cli.Text, cli.JSON, cli.Markdown)
	return cmd
}

// oneDirectory completes a command's only argument.
func oneDirectory(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}

func (c *invocation) initRepository(o starter.Options, format cli.Format, args []string) int {
	if len(args) > 1 {
		return c.ReportMisuse("init takes one directory")
	}
	wrote, err := starter.Write(append(args, ".")[0], o)
	if err != nil {
		return c.Stop(err)
	}
	if wrote.NoRepo {
		c.PrintWarnings(fmt.Sprintf("%s has no .git: GitHub reads workflows only at the top of a repository",
			terminal.QuoteWord(wrote.Dir)))
	}
	return c.ExitCode(exitOK, c.PrintAnswer(format, func() error { return c.PrintJSON(json.Marshal(wrote)) },
		func(w io.Writer) error {
			_, err := fmt.Fprint(w, wrote)
			return err
		}))
}
