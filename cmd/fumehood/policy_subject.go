// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/pkg/gate/question"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/policy/trial"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/terminal"
)

const subjectUsage = `what is asked about, one of:
  'COMMAND' or --command 'COMMAND'     shell text
  --argv -- PROGRAM WORD…              a program and its words, no shell
  --code FILE --language LANGUAGE      a snippet; - for stdin
  --plan FILE [--id ID]                proposals of a plan
  --pr FILE                            who asks for a run: JSON, over an ordinary comment by a writer
  --over POINT=JSON                    a program, connection …: JSON, over an ordinary one
`

// A subject is what policy is asked about.
type subject struct {
	command, code, language, plan, id, pr string
	argv                                  bool
	cwd, phase                            string
	network, env, over                    cli.List

	question.Subject
}

func (s *subject) define(f *flag.FlagSet) {
	f.StringVar(&s.command, "command", "", "shell `text`, as a proposal's run")
	f.BoolVar(&s.argv, "argv", false, "take the arguments as a program and its words")
	f.StringVar(&s.code, "code", "", "`file` with a snippet; - for stdin")
	f.StringVar(&s.language, "language", "", "of the snippet: python, javascript, bash or sh")
	f.StringVar(&s.plan, "plan", "", "plan of proposals; - for stdin")
	f.StringVar(&s.id, "id", "", "only the proposal of the plan that has this `id`")
	f.StringVar(&s.pr, "pr", "", "JSON `file` with what differs from an ordinary trigger, as {\"actor\": {\"permission\": \"read\"}}")
	f.Var(&s.over, "over", "what differs from an ordinary input of another point, as `POINT=JSON`: "+strings.Join(trial.Points(), ", ")+"; may be repeated")
	f.StringVar(&s.cwd, "cwd", "", "working `folder`, relative to the workspace")
	f.StringVar(&s.phase, "phase", "", "setup or run")
	f.Var(&s.network, "network", "`host` that is asked for; may be repeated")
	f.Var(&s.env, "env", "variable that is asked for, as `NAME=VALUE`; may be repeated")
}

// read finds what is asked about. A false means that the call is over with this code.
func (s *subject) read(c *invocation, f *flag.FlagSet) (int, bool) {
	args, code, ok := s.rest(c, f)
	if !ok {
		return code, false
	}
	if !s.argv && len(args) == 1 && s.command == "" {
		s.command = args[0]
	} else if len(args) > 0 && !s.argv {
		return c.Misuse(fmt.Sprintf("too many arguments, from %q on: put the command in quotes, or write --argv before it", terminal.Line(args[min(1, len(args)-1)]))), false
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
		return c.Misuse("name one thing to ask about: a command in quotes, --argv, --code, --plan, --pr or --over"), false
	}
	if s.plan != "" {
		return s.readPlan(c)
	}
	if err := s.readOne(c, args); err != nil {
		return c.Misuse(terminal.Line(err.Error())), false
	}
	return exitOK, true
}

// rest is what no flag took. Flags may also stand after a command in quotes; what is no
// flag of this command is the command's own, and the quotes are missing.
func (s *subject) rest(c *invocation, f *flag.FlagSet) ([]string, int, bool) {
	if s.argv || f.NArg() < 2 {
		return f.Args(), exitOK, true
	}
	name, _, _ := strings.Cut(strings.TrimLeft(f.Arg(1), "-"), "=")
	if isFlag := strings.HasPrefix(f.Arg(1), "-") && (f.Lookup(name) != nil || name == "help" || name == "h"); !isFlag {
		return f.Args(), exitOK, true
	}
	command := f.Arg(0)
	c.Args = f.Args()[1:]
	more, code, ok := c.ParseMixed(f)
	return append([]string{command}, more...), code, ok
}

// idle says which flags would change nothing of what is asked about.
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
		return c.Misuse("--cwd, --phase, --network and --env stand in the plan"), false
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

// bounded reads a file that is no larger than a plan may be.
func (c *invocation) bounded(name string) ([]byte, error) {
	data, _, err := plan.ReadFile(name, c.Stdin)
	if err == nil && len(data) > plan.MaxDocument {
		err = fmt.Errorf("%s is larger than 1 MiB", name)
	}
	return data, err
}
