// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/pkg/cli"
	"github.com/fumehood/fumehood/pkg/mcpserver"
)

func (c *invocation) toolsCommand() *cobra.Command {
	format := ""
	cmd := &cobra.Command{
		Use:     "tools --format FORMAT",
		GroupID: cli.GroupRun,
		Short:   "Print the agent tools' definitions for a model's API",
		Long: `Print the definitions of the tools that "fumehood mcp" serves, as the tools of a model provider's
API takes them. A program that has no MCP client of its own gives them to the model, and calls the
tools over MCP.`,
		Example: `  fumehood tools --format anthropic
  fumehood tools --format openai > tools.json`,
		Args: cli.NoArgs,
		RunE: c.Run(func([]string) int {
			text, err := mcpserver.ToolDefinitions(c.Ctx, format)
			if err != nil {
				return c.MisuseOf(err)
			}
			return c.Exit(exitOK, c.Print(text, nil))
		}),
	}
	cmd.Flags().StringVar(&format, "format", "", "`FORMAT` "+strings.Join(mcpserver.ToolFormats(), ", ")+": the form of the definitions")
	cli.Values(cmd, "format", mcpserver.ToolFormats()...)
	return cmd
}
