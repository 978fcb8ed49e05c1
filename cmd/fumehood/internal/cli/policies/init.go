// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/internal/author/starter"
	"github.com/fumehood/fumehood/internal/kit/terminal"
)

// initFlags are the flags of policy init.
type initFlags struct {
	kind   string
	format cli.Format
}

func initCommand(c *cli.Invocation) *cobra.Command {
	var s initFlags
	cmd := &cobra.Command{
		Use:   "init [REPOSITORY] [flags]",
		Short: "Write a first policy for a repository, with its tests",
		Long: `Write a first policy for a repository, with its tests, to ` + starter.PolicyDir + ` in it, which must not
exist. The kind of repository follows from the names of its files (go.mod, package.json and
others), two directories deep.`,
		Example: `  fumehood policy init
  fumehood policy init ~/src/project --kind go,node`,
		RunE: c.Run(func(args []string) int { return initPolicy(c, &s, args) }),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	cmd.Flags().StringVar(&s.kind, "kind", "",
		"`KINDS` kinds of the repository, separated by commas, instead of looking at its files: "+
			strings.Join(starter.PolicyKinds(), ", "))
	s.format.Define(cmd, cli.Text, cli.JSON, cli.Markdown)
	cli.CompleteValues(cmd, "kind", starter.PolicyKinds()...)
	return cmd
}

func initPolicy(c *cli.Invocation, s *initFlags, args []string) int {
	if len(args) > 1 {
		return c.ReportMisuse("policy init takes one repository")
	}
	kinds, err := starter.ParseKinds(s.kind)
	if err != nil {
		return c.ReportMisuse(terminal.EscapeLine(err.Error()))
	}
	wrote, err := starter.WritePolicy(append(args, ".")[0], kinds)
	if err != nil {
		return c.Stop(err)
	}
	return c.ExitCode(cli.OK, c.PrintAnswer(s.format, func() error { return json.NewEncoder(c.Stdout).Encode(wrote) },
		func(w io.Writer) error {
			_, err := fmt.Fprint(w, wrote)
			return err
		}))
}
