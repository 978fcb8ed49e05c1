// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fumehood/fumehood/pkg/cli"
	"github.com/fumehood/fumehood/pkg/gate/question"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/policy/trial"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/terminal"
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
	command, code, language, plan, id, pr string
	argv                                  bool
	cwd, phase                            string
	network, env, over                    cli.List

	question.Subject
}

// define adds the subject's flags. A flag after the command belongs to the command, except
// if the command is quoted: see rest.
func (s *subject) define(cmd *cobra.Command) {
	cli.TextFirst(cmd)
	cli.Group(cmd, "Command flags", func(f *pflag.FlagSet) {
		f.StringVar(&s.command, "command", "", "`TEXT` shell text, as in the field run of a proposal")
		f.BoolVar(&s.argv, "argv", false, "take the arguments as a program and its arguments")
		f.StringVar(&s.code, "code", "", "`FILE` snippet; - for standard input")
		f.StringVar(&s.language, "language", "", "`LANGUAGE` language of the snippet: python, javascript, bash or sh")
		f.StringVar(&s.plan, "plan", "", "`FILE` plan; - for standard input")
		f.StringVar(&s.id, "id", "", "`ID` only the proposal of the plan with this id")
		f.StringVar(&s.pr, "pr", "", "`FILE` JSON with what differs from a typical trigger, such as {\"actor\": {\"permission\": \"read\"}}")
		f.Var(&s.over, "over", "`POINT=JSON` what differs from a typical input of another decision point: "+strings.Join(trial.Points(), ", ")+"; may be repeated")
		f.StringVar(&s.cwd, "cwd", "", "`DIR` working directory, relative to the workspace")
		f.StringVar(&s.phase, "phase", "", "`PHASE` setup or run")
		f.Var(&s.network, "network", "`HOST` host that the command asks for; may be repeated")
		f.Var(&s.env, "env", "`NAME=VALUE` variable that the command asks for; may be repeated")
	})
	cli.Values(cmd, "language", "python", "javascript", "bash", "sh")
	cli.Values(cmd, "phase", "setup", "run")
	cli.NoFiles(cmd, "command", "id", "over", "network", "env")
	cli.Directories(cmd, "cwd")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
}

// read reads the subject. If it returns false, the command ends with this exit code.
func (s *subject) read(c *invocation, cmd *cobra.Command, args []string) (int, bool) {
	args, code, ok := s.rest(c, cmd, args)
	if !ok {
		return code, false
	}
	if !s.argv && len(args) == 1 && s.command == "" {
		s.command = args[0]
	} else if len(args) > 0 && !s.argv {
		return c.Misuse(fmt.Sprintf("too many arguments, from %q on: quote the command, or write --argv before it", terminal.Line(args[min(1, len(args)-1)]))), false
	}
	if wrong := s.idle(); wrong != "" {
		return c.Misuse(wrong), false
	}
	forms := 0
	for _, given := range []bool{s.command != "", s.argv, s.code != "", s.plan != "", s.pr != "" || len(s.over) > 0} {
		if given {
			forms++
		}
	}
	if forms != 1 {
		return c.Misuse("name one thing to decide: a command in quotes, --argv, --code, --plan, --pr or --over"), false
	}
	if s.plan != "" {
		return s.readPlan(c)
	}
	if err := s.readOne(c, args); err != nil {
		return c.Misuse(terminal.Line(err.Error())), false
	}
	return exitOK, true
}

// rest returns the arguments without flags. Flags may also follow a quoted command. An
// unknown flag belongs to the command, whose quotes are missing.
func (s *subject) rest(c *invocation, cmd *cobra.Command, args []string) ([]string, int, bool) {
	if s.argv || len(args) < 2 || !c.Knows(cmd, args[1]) {
		return args, exitOK, true
	}
	more, code, ok := c.ParseMore(cmd, args[1:])
	return append(args[:1:1], more...), code, ok
}

// idle returns which flags would have no effect, or "".
func (s *subject) idle() string {
	switch {
	case s.id != "" && s.plan == "":
		return "--id goes with --plan"
	case s.code != "" && s.language == "":
		return "--code needs --language"
	case s.language != "" && s.code == "":
		return "--language goes with --code"
	case (s.pr != "" || len(s.over) > 0) && (s.cwd+s.phase != "" || len(s.network)+len(s.env) > 0):
		return "--cwd, --phase, --network and --env go with a command, not with --pr or --over"
	}
	return ""
}

func (s *subject) readPlan(c *invocation) (int, bool) {
	if s.cwd+s.phase != "" || len(s.network)+len(s.env) > 0 {
		return c.Misuse("--cwd, --phase, --network and --env do not go with --plan: set them in the plan"), false
	}
	p, code, ok := c.readPlan(s.plan, nil)
	if !ok {
		return code, false
	}
	if s.Proposals = p.Proposals; s.id != "" {
		s.Proposals = slices.DeleteFunc(s.Proposals, func(p proposal.Proposal) bool { return p.ID != s.id })
		if len(s.Proposals) == 0 {
			return c.Misuse(fmt.Sprintf("the plan has no proposal %q", s.id)), false
		}
	}
	return exitOK, true
}

func (s *subject) readOne(c *invocation, args []string) (err error) {
	if s.pr != "" || len(s.over) > 0 {
		return s.readInputs(c)
	}
	one := question.Command{Text: s.command, Language: s.language, Cwd: s.cwd, Phase: s.phase, Network: s.network, Env: s.env}
	if s.argv {
		if one.Argv = args; len(args) == 0 {
			return errors.New("--argv needs a program: --argv -- PROGRAM WORD…")
		}
	}
	if s.code != "" {
		code, err := c.bounded(s.code)
		if err != nil {
			return err
		}
		one.Code = string(code)
	}
	s.Subject, err = one.Subject()
	return err
}

func (s *subject) readInputs(c *invocation) (err error) {
	given := slices.Clone(s.over)
	if s.pr != "" {
		data, err := c.bounded(s.pr)
		if err != nil {
			return err
		}
		given = append(given, "trigger="+string(data))
	}
	s.Subject, err = question.Inputs(given)
	return err
}

// bounded reads a file of at most the size of a plan.
func (c *invocation) bounded(name string) ([]byte, error) {
	data, _, err := plan.ReadFile(name, c.Stdin)
	if err == nil && len(data) > plan.MaxDocument {
		err = fmt.Errorf("%s is larger than 1 MiB", name)
	}
	return data, err
}
