// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli/runs"
	"github.com/fumehood/fumehood/internal/agents/health"
	"github.com/fumehood/fumehood/internal/agents/mcpserver"
	"github.com/fumehood/fumehood/internal/author/manual"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// mcpFlags are the flags of mcp, in addition to those that run has, too.
type mcpFlags struct {
	runs.Flags
	backend                backendFlags
	http, tokens, approver string
	client, format         string // what to print instead of serving
	network                cli.List
}

func (c *invocation) mcpCommand() *cobra.Command {
	var s mcpFlags
	cmd := &cobra.Command{
		Use:     "mcp [flags]",
		GroupID: cli.GroupRun,
		Short:   "Serve AI agents over the Model Context Protocol",
		Long: `Serve an AI agent over the Model Context Protocol (MCP): tools that decide commands and code
by policy, run the allowed ones in one gVisor sandbox, and read and write its files. Without
--http, the protocol is on standard input and output, and everything else on standard error.
The workspace is never written to. The audit log of a session is sealed when it ends.

With --http, /healthz says whether the server is ready, and /metrics has Prometheus's metrics;
--otlp sends them, too. At SIGTERM, running commands get --drain before they are killed.

With --print-config, print the configuration with which an MCP client starts fumehood in the current
directory. Commands run as root, so it uses sudo if the current user is not root. With --print-tools,
print the definitions of the tools, as a model provider's API takes them: a program that has no MCP
client of its own gives them to the model, and calls the tools over MCP.

Exit codes: 0 the client has gone or a signal came, 2 a flag is invalid, 3 the server could not start`,
		Example: `  fumehood mcp --workspace ~/src/pr
  fumehood mcp --network api.example.com --hosts ./policy
  fumehood mcp --http 127.0.0.1:8931 --token-file token
  fumehood mcp --http 127.0.0.1:8931 --token-file token --backend kubernetes --namespace team-a
  fumehood mcp --print-config claude > .mcp.json
  fumehood mcp --print-config codex >> ~/.codex/config.toml
  fumehood mcp --print-tools openai > tools.json`,
		Args: cli.NoArgs,
	}
	f := cmd.Flags()
	cmd.RunE = c.Run(func([]string) int {
		if f.Changed("print-config") || f.Changed("print-tools") {
			return c.printForClient(&s, f)
		}
		return c.serveMCP(&s, f)
	})
	f.StringVar(&s.client, "print-config", "",
		"`CLIENT` print the configuration for "+strings.Join(mcpserver.ClientNames(), ", ")+", and exit")
	f.StringVar(&s.format, "print-tools", "",
		"`FORMAT` print the tools' definitions for "+strings.Join(mcpserver.ToolFormats(), ", ")+", and exit")
	f.StringVar(&s.http, "http", "",
		"`ADDRESS` serve MCP's streamable HTTP at this loopback address, for example 127.0.0.1:8931")
	f.StringVar(&s.tokens, "token-file", "",
		"`FILE` bearer tokens for --http, one a line, with --backend kubernetes optionally followed by tenant=NAMESPACE; only its owner may read it")
	f.StringVar(&s.approver, "approver", "none",
		"`WHO` none, or elicit: ask the client's user about commands that policy asks about. A client that answers by itself can approve them")
	f.Var(&s.network, "network", "`ENTRY` host, host:port or registry:NAME that policy may grant to commands; may be repeated")
	s.DefineDrain(f)
	s.DefineReady(f)
	s.DefineConfigured(cmd)
	s.DefineGate(cmd)
	s.backend.defineFlags(cmd, "http", "token-file", "approver", "network", "drain", "health", "report", "markdown",
		"decisions", "otlp", "otlp-header", "otlp-plain-unsafe")
	cli.CompleteValues(cmd, "approver", "none", "elicit")
	cli.NoFiles(cmd, "http", "network", "drain", "health", "ready")
	cli.CompleteValues(cmd, "print-config", mcpserver.ClientNames()...)
	cli.CompleteValues(cmd, "print-tools", mcpserver.ToolFormats()...)
	cli.SuggestInstead(cmd, "config", "fumehood mcp --print-config")
	return cmd
}

// findMisuse returns why the flags contradict each other, or "".
func (s *mcpFlags) findMisuse(f *pflag.FlagSet) string {
	if why := s.backend.findMisuse(f); why != "" {
		return why
	}
	switch {
	case s.approver != "none" && s.approver != "elicit":
		return "--approver must be none or elicit"
	case s.InvalidSetup():
		return "--setup must be auto or none"
	case (s.http == "") != (s.tokens == ""):
		return "--http needs --token-file, and --token-file needs --http"
	case s.http != "" && s.approver == "elicit":
		return "--approver elicit needs a client on standard input, without --http"
	case s.Drain < 0:
		return "--drain must not be negative"
	case s.http == "" && s.Drain != runs.DefaultDrain:
		return "--drain needs --http: a server on standard input ends with its client"
	case s.http == "" && s.HealthAddress != "":
		return "--health needs --http"
	case s.http != "" && s.NamesFiles():
		return "--http has many sessions: --artifacts, --audit, --report, --markdown and --decisions name one"
	}
	return s.ReadyMisuse()
}

func (c *invocation) serveMCP(s *mcpFlags, f *pflag.FlagSet) int {
	if why := s.findMisuse(f); why != "" {
		return c.ReportMisuse(why)
	}
	if err := s.Check(&c.Invocation); err != nil {
		return c.MisuseOf(err)
	}
	clients := mcpserver.Transport{HTTP: s.http, TokenFile: s.tokens, Tenants: s.backend.isKubernetes(), In: c.Stdin,
		Out: c.Stdout, Serving: func(addr string) { c.PrintNotes("serving MCP at " + addr) }}
	if err := clients.Open(c.Ctx); err != nil {
		return c.Stop(err)
	}
	var metrics *health.Metrics
	if s.http != "" {
		var end func()
		var err error
		if metrics, end, err = s.StartMetrics(&c.Invocation); err != nil {
			return c.Stop(err)
		}
		defer end()
	}
	defer s.StartPool(&c.Invocation)()
	gates, end, err := c.mcpGates(s) // what is wrong with the flags is reported before there is a client
	if err != nil {
		return c.Stop(s.Early.Error(err))
	}
	defer end()
	return c.ExitCode(exitOK, clients.Serve(c.Ctx, mcpserver.New(mcpserver.Options{
		Gate:     gates,
		Approver: mcpserver.Approver(s.approver), Metrics: metrics, Drain: s.Drain, Network: s.network,
		Version: fumehoodVersion(),
		Rules:   func() (string, error) { return c.rulesPage(s) },
		Ended:   func(r proposal.Report, err error) { s.ReportSession(&c.Invocation, r, err) },
	})))
}

// mcpGates returns what makes the gates of clients, and what ends it.
func (c *invocation) mcpGates(
	s *mcpFlags,
) (gates func(context.Context, string) (gate.Opener, error), end func(), err error) {
	if s.backend.isKubernetes() {
		backend, err := s.backend.Open(c.Ctx, gate.DefaultLifetime+time.Hour, s.Health)
		return backend.NewGate, func() {}, err
	}
	first, err := s.Open(&c.Invocation)
	if err != nil {
		return nil, nil, err
	}
	runs.FillPool(&c.Invocation, first, gate.SessionOptions{Network: s.network})
	open := func(context.Context, string) (gate.Opener, error) {
		if s.http == "" {
			return first, nil
		}
		g, err := s.Open(&c.Invocation)
		if err != nil {
			return nil, s.Early.Error(err) // a nil *gate.Gate is not a nil Opener
		}
		return g, nil
	}
	return open, func() { _ = first.Close() }, nil
}

func (c *invocation) rulesPage(s *mcpFlags) (string, error) {
	if s.backend.isKubernetes() {
		return "", &proposal.StopError{Code: "mcp.rules", Message: "the rules are those of the pod's node",
			Hint: "propose a command: the answer has the rules that decided it"}
	}
	rules, err := s.Policies.ReadRules(c.Ctx)
	if err != nil {
		return "", err
	}
	var page bytes.Buffer
	err = manual.Write(&page, rules)
	return page.String(), err
}

// printForClient prints a client's configuration or the tools' definitions.
func (c *invocation) printForClient(s *mcpFlags, f *pflag.FlagSet) int {
	if f.NFlag() > 1 {
		return c.ReportMisuse("--print-config and --print-tools take no other flag")
	}
	if f.Changed("print-tools") {
		tools, err := mcpserver.ToolDefinitions(c.Ctx, s.format)
		if err != nil {
			return c.MisuseOf(err)
		}
		return c.ExitCode(exitOK, c.Print(tools, nil))
	}
	text, err := mcpserver.ClientConfig(s.client, os.Geteuid() != 0)
	if err != nil {
		return c.MisuseOf(err)
	}
	return c.ExitCode(exitOK, c.Print([]byte(text), nil))
}
