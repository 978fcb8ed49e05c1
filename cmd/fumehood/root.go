// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli/policies"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli/runs"
	"github.com/spf13/cobra"
)

// rootCommand returns the whole tree of commands.
func (c *invocation) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "fumehood",
		Short: "Decide AI-proposed commands by policy and run the allowed ones in gVisor",
		Long: `fumehood decides each command that an AI reviewer proposes by policy and runs the allowed
ones in gVisor: without credentials, and without network except for hosts that policy
grants. A tamper-evident log records what was proposed, decided and done.

Exit codes:
  0  everything was allowed and succeeded
  1  a command was denied, needs approval or failed
  2  the command line or the plan is invalid
  3  fumehood could not do its work; nothing (more) ran
  4  the network was only observed, not enforced (run --observe-network)
  5  neutral: commands could not run, or fail on the base, too (run)`,
		Example: `  fumehood demo                                    run the full pipeline on a sample pull request
  fumehood check --plan plan.yaml                  decide the commands of a plan, run nothing
  fumehood run --plan plan.yaml --workspace .      decide, run and report
  fumehood show audit.jsonl                        list what happened, in order
  fumehood verify audit.jsonl                      check that the log is complete and unaltered`,
		Version: fumehoodVersion(),
	}
	root.SetVersionTemplate(versionText())
	root.InitDefaultVersionFlag()
	root.Flags().Lookup("version").Usage = "print the versions of fumehood, gVisor and Go"
	for _, g := range [][2]string{{cli.GroupRun, "Run and check"}, {cli.GroupPolicy, "Policy"},
		{cli.GroupEvidence, "Evidence"}, {cli.GroupSetup, "Setup"}} {
		root.AddGroup(&cobra.Group{ID: g[0], Title: g[1]})
	}
	root.AddCommand(runs.Command(&c.Invocation), c.checkCommand(), c.splitCommand(), runs.ReviewCommand(&c.Invocation),
		c.sessionCommand(), c.cacheCommand(), c.mcpCommand(), c.serveCommand(), policies.Command(&c.Invocation),
		c.verifyCommand(), c.showCommand(), c.reportCommand(), c.exportCommand(), c.logsCommand(), c.keyCommand(),
		c.initCommand(), c.configCommand(), c.doctorCommand(), c.demoCommand(), c.versionCommand(),
		c.completionCommand(), c.actionCommand(), c.manCommand())
	cli.SuggestInstead(root, "tools", "fumehood mcp --print-tools")
	cli.SuggestInstead(root, "prove", "fumehood export --proof")
	return root
}
