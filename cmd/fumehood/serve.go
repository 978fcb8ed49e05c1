// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli/runs"
	"github.com/fumehood/fumehood/internal/agents/e2b"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// serveFlags are the flags of serve, in addition to those that run has, too.
type serveFlags struct {
	runs.Flags
	backend           backendFlags
	at                e2b.Endpoint
	o                 e2b.Options
	memory, keyMemory int64 // MiB
	ports             string
}

func (c *invocation) serveCommand() *cobra.Command {
	var s serveFlags
	cmd := &cobra.Command{
		Use:     "serve --e2b ADDRESS --keys-file FILE",
		GroupID: cli.GroupRun,
		Short:   "Serve programs that use E2B's SDK",
		Long: `Serve programs that use the npm packages e2b and @e2b/code-interpreter unchanged: their commands
and code are decided by policy and run in gVisor sandboxes on this host, on copies of the
workspace, or in pods (--backend kubernetes). Set E2B_API_URL and E2B_SANDBOX_URL to the printed
address and E2B_API_KEY to a key of the file. docs/E2B.md lists what is supported.

Exit codes: 0 the server was stopped, 2 a flag is invalid, 3 the server could not start`,
		Example: `  (umask 077; echo "e2b_$(openssl rand -hex 20)" > keys)
  fumehood serve --e2b 127.0.0.1:8932 --keys-file keys
  fumehood serve --e2b 127.0.0.1:8932 --keys-file keys --workspace ~/data --sandboxes 8 --max-timeout 4h
  fumehood serve --e2b 127.0.0.1:8932 --keys-file keys --ports 3000,8000-8999
  fumehood serve --e2b 127.0.0.1:8932 --keys-file keys --backend kubernetes --namespace team-a`,
		Args: cli.NoArgs,
	}
	f := cmd.Flags()
	cmd.RunE = c.Run(func([]string) int { return c.serveE2B(&s, f) })
	f.StringVar(&s.at.Addr, "e2b", "",
		"`ADDRESS` serve E2B's wire at this loopback address, for example 127.0.0.1:8932")
	f.StringVar(&s.at.KeysFile, "keys-file", "",
		"`FILE` API keys, one a line, with --backend kubernetes optionally followed by tenant=NAMESPACE; only its owner may read it")
	f.IntVar(&s.o.Quota.Sandboxes, "sandboxes", 4, "`N` maximum of sandboxes that one key has at a time")
	f.IntVar(&s.o.Sandboxes, "all-sandboxes", 16, "`N` maximum of sandboxes of all keys together")
	f.Int64Var(&s.memory, "memory", 2048, "`MIB` maximum memory of one sandbox in MiB; policy may grant less")
	f.Int64Var(&s.keyMemory, "key-memory", 8192, "`MIB` maximum memory of all sandboxes of one key in MiB")
	f.DurationVar(&s.o.Quota.Time, "key-time", 0,
		"`DURATION` time of all sandboxes of one key together, for example 8h (default: 24h)")
	f.DurationVar(&s.o.Timeout, "timeout", 0,
		"`DURATION` end sandboxes whose client sets no timeout after this time (default: 5m)")
	f.DurationVar(&s.o.MaxTimeout, "max-timeout", 0,
		"`DURATION` end every sandbox at most this time after its start (default: 1h)")
	f.StringVar(&s.ports, "ports", "",
		"`PORTS` let clients reach these ports of their sandboxes, for example 3000,8000-8999 (default: none)")
	s.DefineDrain(f)
	s.DefineReady(f)
	s.DefineConfigured(cmd)
	s.DefineGate(cmd)
	s.backend.defineFlags(cmd, "e2b", "keys-file", "sandboxes", "all-sandboxes", "memory", "key-memory", "key-time",
		"timeout", "max-timeout", "ports", "drain", "health", "otlp", "otlp-header", "otlp-plain-unsafe")
	cli.NoFiles(cmd, "e2b", "sandboxes", "all-sandboxes", "memory", "key-memory", "key-time", "timeout", "max-timeout",
		"ports", "drain", "health", "ready")
	return cmd
}

// findMisuse returns why the flags contradict each other, or "".
func (s *serveFlags) findMisuse(f *pflag.FlagSet) string {
	if why := s.backend.findMisuse(f); why != "" {
		return why
	}
	switch {
	case s.at.Addr == "" || s.at.KeysFile == "":
		return "serve needs --e2b and --keys-file"
	case s.Drain < 0:
		return "--drain must not be negative"
	case s.InvalidSetup():
		return "--setup must be auto or none"
	case s.NamesFiles():
		return "serve has many sandboxes: --artifacts, --audit, --report, --markdown and --decisions name one"
	}
	return s.ReadyMisuse()
}

func (c *invocation) serveE2B(s *serveFlags, f *pflag.FlagSet) int {
	if why := s.findMisuse(f); why != "" {
		return c.ReportMisuse(why)
	}
	err := s.Check(&c.Invocation)
	if err == nil && s.ports != "" {
		s.o.Ports, err = e2b.ParsePorts(s.ports)
	}
	if err != nil {
		return c.MisuseOf(err)
	}
	metrics, end, err := s.StartMetrics(&c.Invocation)
	if err != nil {
		return c.Stop(err)
	}
	defer end()
	defer s.StartPool(&c.Invocation)()
	s.o.Metrics, s.o.Drain = metrics, s.Drain
	s.o.Memory, s.o.Quota.Memory = proposal.Bytes(s.memory)*proposal.MiB, proposal.Bytes(s.keyMemory)*proposal.MiB
	gates, err := c.e2bGates(s) // what is wrong with the flags is reported before there is a client
	if err == nil {
		s.at.Tenants = s.backend.isKubernetes()
		err = s.at.Open(c.Ctx)
	}
	if err != nil {
		return c.Stop(err)
	}
	c.PrintNotes("serving E2B's SDK at " + s.at.URL() + ": set E2B_API_URL and E2B_SANDBOX_URL to it")
	s.o.Gate = gates
	s.o.Notice = func(line string) { c.PrintWarnings(line) }
	s.o.Ended = func(r proposal.Report, err error) { s.ReportSession(&c.Invocation, r, err) }
	return c.ExitCode(exitOK, s.at.Serve(c.Ctx, s.o))
}

// e2bGates returns what makes the gates of sandboxes.
func (c *invocation) e2bGates(s *serveFlags) (func(context.Context, string) (gate.Opener, error), error) {
	if s.backend.isKubernetes() {
		backend, err := s.backend.Open(c.Ctx, s.o.SessionLifetime(), s.Health)
		return backend.NewGate, err
	}
	open := func() (*gate.Gate, error) {
		one := s.Flags // which opening changes
		one.UserHome = true
		g, err := one.Open(&c.Invocation)
		return g, s.Early.Error(err)
	}
	g, err := open()
	if err == nil {
		runs.FillPool(&c.Invocation, g, gate.SessionOptions{Limits: s.o.SessionLimits()})
		err = g.Close()
	}
	return func(context.Context, string) (gate.Opener, error) {
		g, err := open()
		if err != nil {
			return nil, err // a nil *gate.Gate is not a nil Opener
		}
		return g, nil
	}, err
}
