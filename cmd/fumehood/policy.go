// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"github.com/fumehood/fumehood/pkg/cli"
	"github.com/spf13/cobra"
)

// policyCommand has its commands in the order in which a policy author needs them.
func (c *invocation) policyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "policy",
		GroupID: cli.GroupPolicy,
		Short:   "Write, test, explain and roll out policy",
		Example: `  fumehood policy init                                     write a first policy and its tests
  fumehood policy eval --policy ./policy 'go test ./...'   decide one command
  fumehood policy test ./policy                            run the tests
  fumehood policy replay audit.jsonl --policy ./policy     list what would change in past runs`,
	}
	cmd.AddCommand(c.policyInitCommand(), c.policyCheckCommand(), c.policyTestCommand(), c.policyEvalCommand(), c.policyExplainCommand(),
		c.policyInputCommand(), c.policyReplayCommand(), c.policySuggestCommand(), c.policyDocsCommand(), c.policyBundleCommand(), c.policyCapabilitiesCommand())
	return cmd
}
