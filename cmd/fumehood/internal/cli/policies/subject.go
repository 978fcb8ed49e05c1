// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli/runs"
	"github.com/fumehood/fumehood/internal/author/question"
	"github.com/fumehood/fumehood/internal/author/trial"
	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/pkg/plan"
)

const subjectUsage = `What is decided is one of:
  'COMMAND' or --command 'COMMAND'     shell text
  --argv -- PROGRAM WORD…              a program and its arguments, without a shell
  --code FILE --language LANGUAGE      a snippet; - for standard input
  --plan FILE [--id ID]                proposals of a plan
  --pr FILE                            who may start a run: JSON with what differs from a
                                       comment by a person with write access
  --over POINT=JSON                    a program, a connection and so on: JSON with what
                                       differs from a typical one
`

// A subject is what the command line asks policy to decide.
type subject struct {
	question.Arguments
	question.Subject
}

// defineFlags adds the subject's flags. A flag after the command belongs to the command, except
// if the command is quoted: see remainingArgs.
func (s *subject) defineFlags(cmd *cobra.Command) {
	cli.TextFirst(cmd)
	cli.DefineGroup(cmd, subjectTitle, func(f *pflag.FlagSet) {
		f.StringVar(&s.Command, "command", "", "`TEXT` shell text, as in the field run of a proposal")
		f.BoolVar(&s.IsArgv, "argv", false, "take the arguments as a program and its arguments")
		f.StringVar(&s.Code, "code", "", "`FILE` snippet; - for standard input")
		f.StringVar(&s.Language, "language", "", "`LANGUAGE` language of the snippet: python, javascript, bash or sh")
		f.StringVar(&s.Plan, "plan", "", "`FILE` plan; - for standard input")
		f.StringVar(&s.ID, "id", "", "`ID` only the proposal of the plan with this id")
		f.StringVar(&s.Trigger, "pr", "",
			"`FILE` JSON with what differs from a typical trigger, such as {\"actor\": {\"permission\": \"read\"}}")
		f.Var((*cli.List)(&s.Over), "over",
			"`POINT=JSON` what differs from a typical input of another decision point: "+
				strings.Join(trial.Points(), ", ")+"; may be repeated")
		f.StringVar(&s.Cwd, "cwd", "", "`DIR` working directory, relative to the workspace")
		f.StringVar(&s.Phase, "phase", "", "`PHASE` setup or run")
		f.Var((*cli.List)(&s.Network), "network", "`HOST` host that the command asks for; may be repeated")
		f.Var((*cli.List)(&s.Env), "env", "`NAME=VALUE` variable that the command asks for; may be repeated")
	})
	cli.CompleteValues(cmd, "language", "python", "javascript", "bash", "sh")
	cli.CompleteValues(cmd, "phase", "setup", "run")
	cli.NoFiles(cmd, "command", "id", "over", "network", "env")
	cli.CompleteDirectories(cmd, "cwd")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
}

// readSubject reads the subject. If it returns false, the command ends with this exit code.
func (s *subject) readSubject(c *cli.Invocation, args []string) (int, bool) {
	switch {
	case s.IsArgv:
		s.Argv = args
	case len(args) == 1 && s.Command == "":
		s.Command = args[0]
	case len(args) > 0:
		return c.ReportMisuse(fmt.Sprintf("too many arguments, from %q on: quote the command, or write --argv before it", terminal.EscapeLine(args[min(1, len(args)-1)]))), false
	}
	err := s.Check()
	if err == nil && s.Plan != "" {
		p, code, ok := runs.ReadPlan(c, s.Plan, nil)
		if !ok {
			return code, false
		}
		s.Subject, err = question.OfPlan(p, s.ID)
	} else if err == nil {
		s.Subject, err = s.Arguments.Subject(func(name string) ([]byte, error) {
			data, _, err := plan.ReadFile(name, c.Stdin)
			return data, err
		})
	}
	if err != nil {
		return c.ReportMisuse(terminal.EscapeLine(err.Error())), false
	}
	return cli.OK, true
}

// remainingArgs returns the arguments without flags. Flags may also follow a quoted command. An
// unknown flag belongs to the command, whose quotes are missing.
func (s *subject) remainingArgs(c *cli.Invocation, cmd *cobra.Command, args []string) ([]string, int, bool) {
	if s.IsArgv || len(args) < 2 || !cli.IsFlag(cmd, args[1]) {
		return args, cli.OK, true
	}
	more, code, ok := c.ParseMore(cmd, args[1:])
	return append(args[:1:1], more...), code, ok
}
