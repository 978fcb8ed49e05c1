// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli/runs"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/lint"
	"github.com/fumehood/fumehood/internal/policy/module"
)

// policyCheckFlags are the flags of policy check.
type policyCheckFlags struct {
	policies     runs.Policies
	strict       bool
	capabilities bool
	format       cli.Format
}

func checkCommand(c *cli.Invocation) *cobra.Command {
	var s policyCheckFlags
	cmd := &cobra.Command{
		Use:   "check [flags]",
		Short: "Compile policies, list all their problems and count their rules",
		Long: `Compile policies, list all their problems and count their rules. Each policy is checked in the
role that its flag gives it. A run would not load what is "refused". It would load an "error",
which probably does not do what its author meant.

With --capabilities, print the built-ins that policies and their tests may use, as a capabilities
file of OPA. With it, opa and the language servers of editors know fumehood.parse and
fumehood.decide, and report built-ins that fumehood refuses. With a second argument, write
fumehood.parse_with and fumehood.decide_with: OPA has no optional arguments. OPA can check tests
that call these, but not run them: fumehood policy test does. policy init writes this file, too.

Exit codes: 0 no problems, 1 something is refused or an error, or with --strict a warning`,
		Example: `  fumehood policy check --policy ./policy
  fumehood policy check --organization ./org --policy ./policy --strict
  fumehood policy check --policy ./policy --json
  fumehood policy check --capabilities > capabilities.json
  opa check --strict --capabilities capabilities.json policy`,
	}
	cmd.RunE = c.Run(func(args []string) int {
		if s.capabilities {
			return printCapabilities(c, len(args)+cmd.Flags().NFlag())
		}
		return checkPolicy(c, &s, args)
	})
	cmd.Flags().BoolVar(&s.strict, "strict", false, "exit with 1 for warnings, too")
	cmd.Flags().BoolVar(&s.capabilities, "capabilities", false,
		"print the built-ins that policies may use, for opa and editors, and exit")
	s.format.Define(cmd, cli.Text, cli.JSON, cli.Markdown)
	s.policies.Define(cmd)
	return cmd
}

func checkPolicy(c *cli.Invocation, s *policyCheckFlags, args []string) int {
	if len(args) > 0 {
		return c.ReportMisuse("policy check takes no argument: name directories with --policy")
	}
	layers, err := s.policies.ReadLayers(c.Ctx)
	if err != nil {
		return c.Stop(err)
	}
	review, err := policy.Check(c.Ctx, layers)
	if err != nil {
		return c.Stop(err)
	}
	return c.ExitCode(reviewCode(review, s.strict), printReview(c, review, s.format))
}

// printCapabilities prints the built-ins, if words, which counts the flags and arguments, is one.
func printCapabilities(c *cli.Invocation, words int) int {
	if words > 1 {
		return c.ReportMisuse("--capabilities takes no other flag or argument")
	}
	data, err := module.EditorCapabilities()
	return c.ExitCode(cli.OK, c.Print(data, err))
}

func reviewCode(r policy.Review, strict bool) int {
	if r.CountProblems(lint.Refused)+r.CountProblems(lint.Wrong) > 0 || strict && len(r.Problems) > 0 {
		return cli.Refused
	}
	return cli.OK
}

func printReview(c *cli.Invocation, r policy.Review, format cli.Format) error {
	return c.PrintAnswer(format, func() error {
		encoder := json.NewEncoder(c.Stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}, func(w io.Writer) error { return writeReview(w, r) })
}
