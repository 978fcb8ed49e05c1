// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// manCommand is for packages of fumehood, and hidden: its users have the pages.
func (c *invocation) manCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the pages of the manual",
		Long:    "Write the pages of the manual, one for each command, to a directory that exists.",
		Example: `  fumehood man /usr/local/share/man/man1`,
		Hidden:  true,
		Args:    cli.RequireArgs(1, "a directory"),
	}
	cmd.RunE = c.Run(func(args []string) int {
		err := cli.WriteManPages(cmd.Root(), args[0], fumehoodVersion())
		if err != nil {
			err = &proposal.StopError{Code: "man.not-writable", Message: "cannot write the pages of the manual",
				Hint: cli.HintUnwritable, Err: err}
		}
		return c.ExitCode(exitOK, err)
	})
	return cmd
}
