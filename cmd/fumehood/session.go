// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli/runs"
	"github.com/fumehood/fumehood/internal/agents/session"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// sessionFlags are the flags of session start, in addition to those that run has, too.
type sessionFlags struct {
	runs.Flags
	name           string
	idle, lifetime time.Duration
	network        cli.List
	background     bool
}

func (c *invocation) sessionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "session COMMAND",
		GroupID: cli.GroupRun,
		Short:   "Decide and run commands one after the other in one sandbox",
		Long: `Keep one sandbox open for commands and code that come one after the other. Each is decided by
policy and logged before it runs. Files persist from command to command, and variables of Python
and JavaScript code from snippet to snippet. The workspace is never written to.`,
		Example: `  fumehood session start --name work --workspace .
  fumehood session exec work -- go test ./...
  fumehood session exec work --language python analyze.py
  fumehood session diff work
  fumehood session end work`,
	}
	cmd.AddCommand(c.sessionStartCommand(), c.sessionExecCommand(), c.sessionFilesCommand(), c.sessionDiffCommand(),
		c.sessionListCommand(), c.sessionEndCommand())
	cli.SuggestInstead(cmd, "code", "fumehood session exec --language")
	return cmd
}

func (c *invocation) sessionStartCommand() *cobra.Command {
	var s sessionFlags
	cmd := &cobra.Command{
		Use:   "start [flags]",
		Short: "Start a session in the background and print its name",
		Long: `Start a session in a process in the background, and print its name when it is ready. Only the
same user can use it. It ends with session end, on SIGTERM, or when it was idle or open for too
long; its audit log is sealed then.

Exit codes: 0 the session is ready, 2 a flag is invalid, 3 it could not start`,
		Example: `  fumehood session start --workspace ~/src/pr
  name=$(fumehood session start --idle 1h --network api.example.com --hosts ./policy)`,
		Args: cli.NoArgs,
		RunE: c.Run(func([]string) int { return c.startSession(&s) }),
	}
	f := cmd.Flags()
	f.StringVar(&s.name, "name", "", "`NAME` name of the session (default: a random one)")
	f.DurationVar(&s.idle, "idle", gate.DefaultIdle, "`DURATION` end the session after this time without a command")
	f.DurationVar(&s.lifetime, "lifetime", gate.DefaultLifetime, "`DURATION` end the session after this time")
	f.Var(&s.network, "network", "`ENTRY` host, host:port or registry:NAME that policy may grant to commands; may be repeated")
	f.BoolVar(&s.background, "background", false, "be the process in the background")
	cli.HideFlags(f, "background")
	s.DefineConfigured(cmd)
	s.Format.Define(cmd, cli.Text, cli.JSON)
	s.DefineGate(cmd)
	cli.NoFiles(cmd, "name", "idle", "lifetime", "network")
	return cmd
}

func (s *sessionFlags) findMisuse() string {
	switch {
	case s.InvalidSetup():
		return "--setup must be auto or none"
	case s.idle <= 0 || s.lifetime <= 0:
		return "--idle and --lifetime must be more than 0"
	}
	return ""
}

func (c *invocation) startSession(s *sessionFlags) int {
	if why := s.findMisuse(); why != "" {
		return c.ReportMisuse(why)
	}
	args := append(os.Args[1:], "--background")
	if s.name == "" {
		s.name = "s" + strings.ToLower(rand.Text()[:8])
		args = append(args, "--name="+s.name)
	}
	if err := errors.Join(s.Check(&c.Invocation), session.CheckName(s.name)); err != nil {
		return c.MisuseOf(err)
	}
	if s.background {
		return c.hostSession(s)
	}
	info, err := session.Start(c.Ctx, args, os.Stderr)
	var exit *session.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.Code
	case err != nil:
		return c.Stop(err)
	case s.Format.Is(cli.JSON):
		return c.ExitCode(exitOK, c.printAnswer(info))
	}
	c.PrintNotes("session " + info.Name + "; log " + info.Log)
	return c.ExitCode(exitOK, c.Print([]byte(info.Name+"\n"), nil))
}

// hostSession is the process in the background.
func (c *invocation) hostSession(s *sessionFlags) int {
	stderr := session.NewRelay(c.Stderr)
	c.Stderr = stderr
	return c.ExitCode(exitOK, s.Early.Error(session.Host(c.Ctx, session.Options{
		Name: s.name, Workspace: s.Workspace, Ready: session.ReportReady, Stderr: stderr,
		SessionOptions: gate.SessionOptions{Network: s.network, Proposer: "fumehood session", Idle: s.idle,
			Lifetime: s.lifetime},
		Gate:  func() (*gate.Gate, error) { return s.Open(&c.Invocation) },
		Ended: func(r proposal.Report, err error) { s.ReportSession(&c.Invocation, r, err) },
	})))
}

func (c *invocation) sessionListCommand() *cobra.Command {
	var format cli.Format
	cmd := &cobra.Command{
		Use:   "list [flags]",
		Short: "List the sessions",
		Long:  `List your sessions. One whose process was killed is listed once, and what it left is removed.`,
		Example: `  fumehood session list
  fumehood session list -o json | jq -r '.[].log'`,
		Args: cli.NoArgs,
		RunE: c.Run(func([]string) int {
			list, err := session.List(c.Ctx)
			if err != nil {
				return c.Stop(err)
			}
			if format.Is(cli.JSON) {
				return c.ExitCode(exitOK, c.printAnswer(list))
			}
			return c.ExitCode(exitOK, session.WriteList(c.Stdout, list))
		}),
	}
	format.Define(cmd, cli.Text, cli.JSON)
	return cmd
}

func (c *invocation) sessionEndCommand() *cobra.Command {
	var format cli.Format
	cmd := &cobra.Command{
		Use:   "end NAME",
		Short: "End a session: kill what runs, seal the log and print a summary",
		Long: `End a session. What runs is killed, its files are discarded, and the audit log is sealed. The
reports that the flags of session start name are written then.

Exit codes: 0 the session has ended, 3 there is none, or it had stopped early`,
		Example: `  fumehood session end work`,
		Args:    cli.RequireArgs(1, "the name of a session"),
		RunE: c.Run(func(args []string) int {
			return c.onSession(args[0], func(s *session.Client) int {
				ended, err := s.End(c.Ctx)
				switch {
				case err != nil:
					return c.Stop(err)
				case format.Is(cli.JSON):
					err = c.printAnswer(ended)
				default:
					err = session.WriteEnded(c.Stdout, ended)
				}
				if ended.Error != nil {
					return exitStopped
				}
				return c.ExitCode(exitOK, err)
			})
		}),
	}
	format.Define(cmd, cli.Text, cli.JSON)
	return cmd
}
