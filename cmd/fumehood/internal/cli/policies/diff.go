// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli/runs"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/settings"
	"github.com/fumehood/fumehood/internal/author/difference"
	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/source"
	"github.com/fumehood/fumehood/pkg/plan"
)

// diffFlags are the flags of policy diff.
type diffFlags struct {
	policies runs.Policies
	past     pastFlags
	as       string
	logs     cli.List
	format   cli.Format
}

func diffCommand(c *cli.Invocation) *cobra.Command {
	var s diffFlags
	cmd := &cobra.Command{
		Use:   "diff OLD NEW [flags]",
		Short: "List what a change of a policy newly allows, denies and asks",
		Long: `List what a change of a policy newly allows, denies and asks, and which grants become more or
less. OLD and NEW are two versions of one policy, each as --policy takes it; none is no policy.
Both decide the same inputs, with the policies that flags name beside them: logs, the examples
and cases of both versions, examples of the default policy, and inputs that are made from the
words and constants of the rules that changed. A difference that is not seen is not proof of
anything, except where the answer says why. Changed rules that held for no input are listed.

Exit codes: 0 nothing is newly allowed; 1 something is, or a rule whose change may allow more
held for no input; 3 a policy or a log cannot be read`,
		Example: `  fumehood policy diff git:main:policy ./policy
  fumehood policy diff git:HEAD~1:org ./org --as organization --log ~/.local/state/fumehood
  fumehood policy diff none ./policy -o markdown`,
		Args: cobra.ExactArgs(2),
		RunE: c.Run(func(args []string) int { return diffPolicies(c, &s, args) }),
	}
	f := cmd.Flags()
	f.StringVar(&s.as, "as", "policy", "`ROLE` what both may do: policy, hosts, organization or granting, as the flags with these names")
	f.Var(&s.logs, "log", "`LOG` past runs that both decide, too: a log, a report or a directory of them; may be repeated")
	s.format.Define(cmd, cli.Text, cli.JSON, cli.Markdown)
	s.past.defineFlags(cmd)
	s.policies.Define(cmd)
	cli.CompleteValues(cmd, "as", "policy", "hosts", "organization", "granting")
	return cmd
}

func diffPolicies(c *cli.Invocation, s *diffFlags, args []string) int {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as in decideAgain
	o := difference.Options{Analyze: order.AnalyzeProposal, Cases: plan.DecodeCases, Shipped: 600}
	var err error
	if o.Beside, err = s.policies.ReadLayers(c.Ctx); err != nil {
		return c.Stop(err)
	}
	for i, into := range []*policy.Layer{&o.Old, &o.New} {
		own := settings.Sources{Base: s.policies.Base}
		if source.IsBundle(args[i]) {
			own.Keys, own.Scope = s.policies.Keys, s.policies.Scope
		}
		list := map[string]*[]string{"policy": &own.Restricting, "hosts": &own.Hosts,
			"organization": &own.Organisation, "granting": &own.Granting}[s.as]
		if list == nil {
			return c.ReportMisuse(fmt.Sprintf("invalid value %q for --as: use policy, hosts, organization or granting", s.as))
		}
		if args[i] == "none" {
			continue
		}
		*list = []string{args[i]}
		read, err := own.Read(c.Ctx)
		if err != nil {
			return c.Stop(err)
		}
		*into = read[0].Layer
	}
	if len(s.logs) > 0 {
		if o.Past, err = s.past.readPast(s.logs); err != nil {
			return c.Stop(err)
		}
		c.PrintNotes(o.Past.Notes()...)
	}
	d, err := difference.Compare(c.Ctx, o)
	if err != nil {
		return c.Stop(err)
	}
	c.PrintWarnings(d.Warnings...)
	code := cli.OK
	if d.IsLooser() {
		code = cli.Refused
	}
	return c.ExitCode(code, c.PrintAnswer(s.format, func() error { return c.Print(d.JSON()) }, d.Write))
}
