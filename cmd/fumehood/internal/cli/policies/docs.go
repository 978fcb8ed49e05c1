// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli/runs"
	"github.com/fumehood/fumehood/internal/author/manual"
	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// docsFlags are the flags of policy docs.
type docsFlags struct {
	policies runs.Policies
	out      string
	format   cli.Format
}

func docsCommand(c *cli.Invocation) *cobra.Command {
	var s docsFlags
	cmd := &cobra.Command{
		Use:   "docs [RULE…] [flags]",
		Short: "Write a page about the rules, from their METADATA",
		Long: `Write a page about all rules, or those with the given ids, from their METADATA, as Markdown.
Without a policy, the page is about the default policy. With --output json, each line is one
rule.`,
		Example: `  fumehood policy docs > rules.md
  fumehood policy docs network.client
  fumehood policy docs --policy .fumehood/policy --out RULES.md
  fumehood policy docs --json | jq -r 'select(.set == "deny").id'`,
		RunE: c.Run(func(args []string) int { return documentPolicy(c, &s, args) }),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return listRuleIDs(c, &s), cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.Flags().StringVar(&s.out, "out", "", "`FILE` write the page to this file")
	s.format.Define(cmd, cli.Markdown, cli.JSON)
	s.policies.Define(cmd)
	return cmd
}

func documentPolicy(c *cli.Invocation, s *docsFlags, ids []string) int {
	if s.format.Is(cli.JSON) && s.out != "" {
		return c.ReportMisuse("policy docs prints JSON to standard output, without --out")
	}
	rules, err := s.policies.ReadRules(c.Ctx)
	if err == nil {
		rules, err = manual.SelectRules(rules, ids...)
	}
	if err != nil {
		return c.Stop(err)
	}
	if s.format.Is(cli.JSON) {
		return c.ExitCode(cli.OK, printRules(c, rules))
	}
	return c.ExitCode(cli.OK, writePage(c, rules, s.out))
}

// listRuleIDs returns the ids of the rules with their titles, for completion.
func listRuleIDs(c *cli.Invocation, s *docsFlags) (ids []string) {
	rules, _ := s.policies.ReadRules(c.Ctx)
	for _, r := range rules {
		ids = append(ids, cobra.CompletionWithDesc(terminal.EscapeLine(r.ID), terminal.EscapeLine(r.Title)))
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func printRules(c *cli.Invocation, rules []manual.Rule) error {
	for _, r := range rules {
		if err := c.PrintJSON(json.Marshal(r)); err != nil {
			return err
		}
	}
	return nil
}

func writePage(c *cli.Invocation, rules []manual.Rule, out string) error {
	var page bytes.Buffer
	if err := manual.Write(&page, rules); err != nil {
		return err
	}
	if out == "" {
		return c.Print(page.Bytes(), nil)
	}
	if err := cli.ReplaceFile(out, page.Bytes()); err != nil {
		return unwritableError(out, err)
	}
	return nil
}

func unwritableError(file string, err error) error {
	return &proposal.StopError{Code: "policy.not-writable", Message: fmt.Sprintf("cannot write %q", file),
		Hint: cli.HintUnwritable, Err: err}
}
