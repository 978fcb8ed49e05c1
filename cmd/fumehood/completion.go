// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
)

func (c *invocation) completionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "completion bash|zsh|fish",
		GroupID: cli.GroupSetup,
		Short:   "Print the completion script of a shell",
		Long:    `Print the script with which a shell completes fumehood's commands, flags and values.`,
		Example: `  source <(fumehood completion bash)                                         this shell
  fumehood completion bash > /etc/bash_completion.d/fumehood                 all shells, with the package bash-completion
  fumehood completion zsh > "${fpath[1]}/_fumehood"
  fumehood completion fish > ~/.config/fish/completions/fumehood.fish`,
		Args:      cli.RequireArgs(1, "a shell: bash, zsh or fish"),
		ValidArgs: cli.Shells,
	}
	cmd.RunE = c.Run(func(args []string) int {
		if err := cli.WriteCompletion(c.Stdout, cmd.Root(), args[0]); err != nil {
			return c.ReportMisuse(err.Error())
		}
		return exitOK
	})
	return cmd
}
