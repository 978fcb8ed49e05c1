// SPDX-License-Identifier: Apache-2.0

// Package policies has the group of commands policy: write, check, test, explain, replay, document
// and bundle policies. They run no command that is proposed. They decide with the engine that a run
// has, and with the policies that the flags of runs.Policies name.
//
// Text from policies, plans, logs and bundles is escaped before it is printed. Exit codes are those
// of package cli.
package policies

import (
	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/spf13/cobra"
)

// Command returns the group, with its commands in the order in which a policy author needs them.
func Command(c *cli.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "policy",
		GroupID: cli.GroupPolicy,
		Short:   "Write, test, explain and roll out policy",
		Example: `  fumehood policy init                                     write a first policy and its tests
  fumehood policy explain --policy ./policy 'make test'    decide one command
  fumehood policy test ./policy                            run the tests
  fumehood policy replay audit.jsonl --policy ./policy     list what would change in past runs`,
	}
	cmd.AddCommand(initCommand(c), checkCommand(c), testCommand(c), explainCommand(c),
		diffCommand(c), replayCommand(c), suggestCommand(c), docsCommand(c), bundleCommand(c))
	cli.SuggestInstead(cmd, "eval", "fumehood policy explain --rules")
	cli.SuggestInstead(cmd, "input", "fumehood policy explain --input")
	cli.SuggestInstead(cmd, "capabilities", "fumehood policy check --capabilities")
	return cmd
}
