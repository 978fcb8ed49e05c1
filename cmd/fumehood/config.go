// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli/runs"
	"github.com/fumehood/fumehood/internal/author/starter"
	"github.com/fumehood/fumehood/internal/gate/planning"
	"github.com/fumehood/fumehood/internal/sandbox/rootfs"
	"github.com/fumehood/fumehood/internal/source/config"
)

// configFlags are the flags of config.
type configFlags struct {
	file, setup string
	all         bool
	format      cli.Format
}

func (c *invocation) configCommand() *cobra.Command {
	var s configFlags
	cmd := &cobra.Command{
		Use:     "config [DIR] [flags]",
		GroupID: cli.GroupSetup,
		Short:   "Show the configuration in force and where each value comes from",
		Long: `Show the configuration in force for the repository in DIR, the current directory by default:
each value that is not the default, with its source (a line of the file, or a flag), and the
set-up commands that fumehood run would put before a command that may use everything; a plan
sets up what its commands touch. Nothing runs. Policy still decides each command.`,
		Example: `  fumehood config
  fumehood config ~/src/project --json
  fumehood config --config other.yml --setup none`,
		RunE:              c.Run(func(args []string) int { return c.showConfig(&s, args) }),
		ValidArgsFunction: oneDirectory,
	}
	f := cmd.Flags()
	f.StringVar(&s.file, "config", "",
		"`FILE` configuration, or none (default: .github/fumehood.yml of DIR, if it is there)")
	f.StringVar(&s.setup, "setup", "", "`MODE` auto or none, instead of the configured set-up")
	f.BoolVar(&s.all, "all", false, "show the values that are the default, too")
	s.format.Define(cmd, cli.Text, cli.JSON, cli.Markdown)
	cli.CompleteValues(cmd, "setup", "auto", "none")
	return cmd
}

func (c *invocation) showConfig(s *configFlags, args []string) int {
	if len(args) > 1 {
		return c.ReportMisuse("config takes one directory")
	}
	if runs.InvalidSetup(s.setup) {
		return c.ReportMisuse("--setup must be auto or none")
	}
	dir := append(args, ".")[0]
	found, err := config.ReadFile(s.file, dir, config.Override{Field: "setup", Value: s.setup, From: "--setup"})
	if err != nil {
		return c.Stop(err)
	}
	before, err := planning.FindSetup(found.Config, dir, rootfs.CallerPath())
	if err != nil {
		return c.Stop(err)
	}
	shown := starter.InForce(found, before)
	shown.All = s.all
	return c.ExitCode(exitOK, c.PrintAnswer(s.format, func() error { return c.PrintJSON(json.Marshal(shown)) },
		shown.Print))
}
