// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/internal/agents/session"
	"github.com/fumehood/fumehood/internal/sandbox/interpreter"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// execFlags are the flags of session exec.
type execFlags struct {
	text, cwd, stdin, language, context, why string
	env, network, outputs                    cli.List
	timeout                                  time.Duration
	format                                   cli.Format
}

func (c *invocation) sessionExecCommand() *cobra.Command {
	var s execFlags
	cmd := &cobra.Command{
		Use: `exec NAME [flags] [-c TEXT | -- PROGRAM ARGUMENT…]
NAME --language LANGUAGE [flags] [FILE | -]`,
		Short: "Decide a command or a snippet and run it in a session",
		Long: `Decide a command, shell text or a program with its arguments, and run it in the session's sandbox
if policy allows it. The first command that may need dependencies installs them. With --language,
the file, or standard input, is a snippet of python, javascript, bash or sh, which keep their
variables, or of r, java, ruby or deno, which do not. Those of Python and JavaScript show the
value of the last expression.

What it prints is shown as it comes, without what a terminal would interpret. Ctrl-C ends the
command, not the session.

Exit codes: 0 it was allowed and succeeded, 1 it was denied, needs approval or failed, 2 the
command line is invalid, 3 the session does not answer. -o json has the command's own exit code`,
		Example: `  fumehood session exec work -- go test ./...
  fumehood session exec work -c 'grep -r import . | wc -l'
  fumehood session exec work -o json -- make | jq .result.exit_code
  fumehood session exec work --language python analyze.py
  echo 'rows = 3; rows + 1' | fumehood session exec work --language python -`,
		Args: cli.SomeArgs("the name of a session"),
	}
	cmd.RunE = c.Run(func(args []string) int {
		p, wrong := s.parseProposal(args[1:])
		if wrong != "" {
			return c.ReportMisuse(wrong)
		}
		if s.language != "" {
			var err error
			if p.Code, err = session.ReadText(append(args, "-")[1], c.Stdin); err != nil {
				return c.MisuseOf(err)
			}
		}
		return c.runProposal(args[0], &s, p)
	})
	f := cmd.Flags()
	f.StringVarP(&s.text, "command", "c", "", "`TEXT` shell text")
	f.StringVar(&s.language, "language", "", "`LANGUAGE` python, javascript, bash, sh, r, java, ruby or deno: run a snippet")
	f.StringVar(&s.context, "context", "", "`NAME` with --language, variables of its own (default: main)")
	f.StringVar(&s.cwd, "cwd", "", "`DIR` working directory, relative to the workspace")
	f.Var(&s.env, "env", "`NAME=VALUE` variable of the command; may be repeated")
	f.StringVar(&s.stdin, "stdin", "", "`FILE` text for its standard input; - for standard input")
	f.Var(&s.network, "network", "`ENTRY` host that it needs, of those that the session was started with; may be repeated")
	f.Var(&s.outputs, "output-file", "`PATTERN` workspace files to copy to the artifacts; may be repeated")
	f.DurationVar(&s.timeout, "timeout", 0, "`DURATION` kill it after this time, if that is less than policy grants")
	f.StringVar(&s.why, "why", "", "`TEXT` what you want to find out, for the report")
	s.format.Define(cmd, cli.Text, cli.JSON)
	cli.CompleteValues(cmd, "language", append(interpreter.Stateless(), "python", "javascript", "bash", "sh")...)
	cli.NoFiles(cmd, "command", "context", "env", "network", "output-file", "timeout", "why")
	return cmd
}

// parseProposal returns what the arguments after the session's name propose, without a snippet's code,
// or why they are not a command line.
func (s *execFlags) parseProposal(args []string) (p proposal.Proposal, wrong string) {
	switch {
	case s.language == "" && s.context != "":
		wrong = "--context needs --language"
	case s.language == "" && (s.text == "") == (len(args) == 0):
		wrong = "session exec needs a program, or -c and a text, or --language"
	case s.language != "" && (len(args) > 1 || s.text != ""):
		wrong = "session exec --language needs at most one file, and no -c"
	case s.language != "":
		p = proposal.Proposal{Language: s.language, Context: s.context}
	default:
		p = proposal.Proposal{Run: s.text, Argv: slices.Clip(args)}
	}
	return p, wrong
}

// runProposal has p decided and run, and prints what happens.
func (c *invocation) runProposal(name string, s *execFlags, p proposal.Proposal) int {
	p.Cwd, p.Network, p.Outputs, p.Timeout, p.Why = s.cwd, s.network, s.outputs, proposal.Duration(s.timeout), s.why
	var err error
	if p.Env, err = session.ParseEnv(s.env); err == nil && s.stdin != "" {
		p.Stdin, err = session.ReadText(s.stdin, c.Stdin)
	}
	if err != nil {
		return c.MisuseOf(err)
	}
	return c.onSession(name, func(to *session.Client) int {
		show := session.Printer{Out: c.Stdout, Err: c.Stderr}
		each := show.PrintChunk
		if s.format.Is(cli.JSON) {
			each = func(proposal.Chunk) {}
		}
		r, err := to.Do(c.Ctx, p, each, show.PrintChunk, show.PrintNote)
		switch {
		case proposal.FailureOf(err) != nil && proposal.FailureOf(err).Code == "session.proposal":
			return c.MisuseOf(err)
		case err != nil:
			return c.Stop(err)
		case s.format.Is(cli.JSON):
			err = c.printAnswer(r)
		default:
			show.PrintRecord(r)
		}
		if !r.Runnable() || r.Result == nil || !r.Result.Succeeded() {
			return c.ExitCode(exitRefused, err)
		}
		return c.ExitCode(exitOK, err)
	})
}

// onSession calls do with the session of a name.
func (c *invocation) onSession(name string, do func(*session.Client) int) int {
	if err := session.CheckName(name); err != nil {
		return c.MisuseOf(err)
	}
	s, err := session.Connect(c.Ctx, name)
	if err != nil {
		return c.Stop(err)
	}
	defer s.Detach()
	return do(s)
}

func (c *invocation) printAnswer(v any) error { return c.PrintJSON(json.Marshal(v)) }

func (c *invocation) sessionDiffCommand() *cobra.Command {
	var format cli.Format
	file := ""
	cmd := &cobra.Command{
		Use:   "diff NAME [PATH…]",
		Short: "Show what a session changed in the workspace",
		Long: `Show how the workspace of a session differs from the one that it began with, or that its set-up
left: all of it, or the given files and directories. Secrets are redacted. --patch writes a file
that "git apply" reads.`,
		Example: `  fumehood session diff work
  fumehood session diff work --patch change.patch src go.mod`,
		Args: cli.SomeArgs("the name of a session"),
		RunE: c.Run(func(args []string) int {
			return c.onSession(args[0], func(s *session.Client) int {
				d, err := s.Diff(c.Ctx, args[1:]...)
				if err == nil && file != "" {
					err = session.CopyFile(d.Patch.File, file, c.Stdout)
				}
				switch {
				case err != nil:
					return c.Stop(err)
				case format.Is(cli.JSON):
					return c.ExitCode(exitOK, c.printAnswer(d))
				case file == "":
					session.WriteDiff(c.Stdout, d)
				}
				return c.ExitCode(exitOK, nil)
			})
		}),
	}
	format.Define(cmd, cli.Text, cli.JSON)
	cmd.Flags().StringVar(&file, "patch", "", "`FILE` write the patch to this file instead; - for standard output")
	return cmd
}

func (c *invocation) sessionFilesCommand() *cobra.Command {
	var format cli.Format
	command := func(use, short, example string, min, max int,
		do func(s *session.Client, args []string) (any, error)) *cobra.Command {
		cmd := &cobra.Command{Use: use, Short: short, Example: example, RunE: c.Run(func(args []string) int {
			if len(args) < min || len(args) > max {
				return c.ReportMisuse("the command line is: fumehood session files " + use)
			}
			return c.onSession(args[0], func(s *session.Client) int {
				answer, err := do(s, args)
				var refused *session.RefusedError
				switch {
				case errors.As(err, &refused):
					c.WarnOf(err)
					return exitRefused
				case err != nil:
					return c.Stop(err)
				case format.Is(cli.JSON):
					return c.ExitCode(exitOK, c.printAnswer(answer))
				}
				return c.ExitCode(exitOK, session.WriteFiles(c.Stdout, answer))
			})
		})}
		format.Define(cmd, cli.Text, cli.JSON)
		return cmd
	}
	cmd := &cobra.Command{Use: "files COMMAND", Short: "List files of a session, and copy them in and out",
		Long: `List the files of a session's workspace, and copy them in and out, at most 32 MiB each. What goes
out is searched for secrets, and policy decides whether it may.`,
		Example: `  fumehood session files list work 'src/*.go'
  fumehood session files get work coverage.out coverage.out`}
	cmd.AddCommand(
		command("list NAME [PATTERN]", "List the files that match a pattern, * if left out",
			"  fumehood session files list work 'src/*.go'", 1, 2, func(s *session.Client, args []string) (any, error) {
				return s.List(c.Ctx, append(args, "*")[1])
			}),
		command("get NAME PATH FILE", "Copy a file out, or a directory as a tar archive",
			"  fumehood session files get work dist dist.tar\n  fumehood session files get work result.json - | jq .", 3, 3, func(s *session.Client, args []string) (any, error) {
				return s.Get(c.Ctx, args[1], args[2], c.Stdout,
					func(path, why string) { c.PrintWarnings(fmt.Sprintf("%s is left out: %s", path, why)) })
			}),
		command("put NAME FILE PATH", "Copy a file in; the host's workspace does not change",
			"  fumehood session files put work data.csv data/in.csv\n  fumehood session files put work - notes.txt < notes.txt", 3, 3, func(s *session.Client, args []string) (any, error) {
				return s.PutFile(c.Ctx, args[1], args[2], c.Stdin)
			}))
	return cmd
}
