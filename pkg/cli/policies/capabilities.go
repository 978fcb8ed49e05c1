// SPDX-License-Identifier: Apache-2.0

//go:build linux

package policies

import (
	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/pkg/cli"
	"github.com/fumehood/fumehood/pkg/policy/module"
)

func capabilitiesCommand(c *cli.Invocation) *cobra.Command {
	return &cobra.Command{
		Use:   "capabilities",
		Short: "Print the built-ins that policies may use, for opa and editors",
		Long: `Print the built-ins that policies and their tests may use, as a capabilities file of OPA. With
it, opa and the language servers of editors know fumehood.parse and fumehood.decide, and
report built-ins that fumehood refuses. With a second argument, write fumehood.parse_with and
fumehood.decide_with: OPA has no optional arguments. OPA can check tests that call these, but
not run them: fumehood policy test does.

policy init writes this file, too.`,
		Example: `  fumehood policy capabilities > capabilities.json
  opa check --strict --capabilities capabilities.json policy`,
		RunE: c.Run(func(args []string) int { return printCapabilities(c, args) }),
	}
}

func printCapabilities(c *cli.Invocation, args []string) int {
	if len(args) > 0 {
		return c.Misuse("policy capabilities takes no argument")
	}
	data, err := module.EditorCapabilities()
	if err != nil {
		return c.Stop(err)
	}
	_, err = c.Stdout.Write(data)
	return c.Exit(cli.OK, err)
}
