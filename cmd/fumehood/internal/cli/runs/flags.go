// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/runspec"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/settings"
	"github.com/fumehood/fumehood/internal/egress"
	"github.com/fumehood/fumehood/internal/egress/redact"
	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/internal/sandbox/results"
	"github.com/fumehood/fumehood/internal/sandbox/rootfs"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Flags are the flags of run, and those of demo, session, mcp and serve that describe their gates.
// Its exported fields are set or read by these commands.
type Flags struct {
	// Spec has what both flags and a job set. Workspace is the directory with the code.
	runspec.Spec
	Trusted        string // directory with the configuration and its policy, if it is not the workspace
	Policies       Policies
	settings       settings.Texts
	runsc          string
	markdown       string
	comment        string
	shown          config.Comment
	Format         cli.Format
	observeNetwork bool
	base           string
	compares       bool // the configuration in force compares failures with the base
	resultsDir     string
	layersDir      string
	configTimeout  time.Duration
	configured     bool             // run has a configuration, demo has none
	fromJob        bool             // --job: Spec is on standard input
	Early          *redact.Redactor // before there is a gate, without policy
	export         exportFlags
	Health         gate.Health // counts what the gates do; nil except for servers
	HealthAddress  string      // of /healthz and /metrics, besides that of the server; "" is none
	planned        *proposal.Plan
	Drain          time.Duration // of servers
	ready          int           // of servers
	pool           *gate.Pool    // of servers
	Repeated       bool          // gates run several plans; for review
	UserHome       bool          // see gate.Options; for E2B's clients
	BuildCache     string        // a host directory to show at rootfs.GoCacheInside, or ""; for demo
}

// defineFlags adds the flags of run.
func (s *Flags) defineFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.Plan, "plan", "", "`FILE` plan with the commands, JSON or YAML; - for standard input")
	f.StringVar(&s.base, "base", "",
		"`REF` branch or commit that the pull request is for: a command that fails is run on its merge base with HEAD, too (default: origin's default branch, if the clone knows it and HEAD is not on it)")
	f.StringVar(&s.CompareBase, "compare-base", "",
		"`BOOL` whether a command that fails is run on the base of the pull request, too (default: as configured, or true)")
	cli.NoFiles(cmd, "base")
	cli.CompleteValues(cmd, "compare-base", "true", "false")
	f.BoolVar(&s.observeNetwork, "observe-network", false,
		"let commands reach every public address, and only record it; never for a fork's code. Private addresses stay refused. The exit code is 4")
	s.DefineConfigured(cmd)
	s.DefineCommon(cmd)
	s.defineJob(f)
}

// DefineConfigured adds the flags of what run, mcp and serve read before they make a gate.
func (s *Flags) DefineConfigured(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.Workspace, "workspace", ".",
		"`DIR` directory with the code of the pull request; it is never written to")
	f.BoolVar(&s.Observe, "observe", false,
		"only record what --policy and --granting policies would refuse; the default, --hosts and "+
			"--organization policies still refuse, except for rules with mode: observe")
	s.configured = true
	s.Policies.DefineContext(cmd, "")
	f.StringVar(&s.Config, "config", "",
		"`FILE` configuration, or none (default: .github/fumehood.yml of the workspace, if it is there)")
	f.StringVar(&s.comment, "comment", "",
		"`SETTINGS` detail and length of the comment, for example detail=quiet,length=20000")
	f.StringVar(&s.Setup, "setup", "",
		"`MODE` auto or none: whether to install the dependencies first (default: as configured, or auto)")
	f.StringVar(&s.Cache, "cache", "",
		"`BOOL` whether to keep compiled standard libraries on this host (default: as configured, or true)")
	f.StringVar(&s.Results, "results", "",
		"`MODE` off, read or write: whether results of commands with cache: true are used and kept (default: as configured, or off)")
	f.StringVar(&s.resultsDir, "results-dir", "",
		"`DIR` directory that has the kept results, of mode 0700 (default: results in fumehood's cache)")
	f.StringVar(&s.Layers, "layers", "",
		"`MODE` auto, read or write: a layer of an earlier run replaces set-up, else auto keeps what this run's set-up leaves; write: also runs all of set-up; off: also no private layer for new sandboxes (default: as configured; on your own machine auto)")
	f.StringVar(&s.layersDir, "layers-dir", "", "`DIR` directory with the layers (default: the one on this host)")
	cli.CompleteDirectories(cmd, "workspace", "results-dir", "layers-dir")
	cli.NoFiles(cmd, "comment")
	cli.CompleteValues(cmd, "results", results.Modes...)
	cli.CompleteValues(cmd, "setup", "auto", "none")
	cli.CompleteValues(cmd, "cache", "true", "false")
	cli.CompleteValues(cmd, "layers", settings.LayerModes...)
}

// defineJob adds the flag with which fumehood action starts run and review.
func (s *Flags) defineJob(f *pflag.FlagSet) {
	f.BoolVar(&s.fromJob, "job", false,
		"read from standard input what fumehood action says about this run, and stop when standard input ends")
	cli.HideFlags(f, "job")
}

// DefineCommon adds the flags that run and demo share.
func (s *Flags) DefineCommon(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&s.Timeout, "timeout", 0, "`DURATION` stop the run after this time, for example 10m")
	s.Format.Define(cmd, cli.Text, cli.JSON, cli.Markdown)
	cli.NoFiles(cmd, "timeout")
	s.DefineGate(cmd)
}

// DefineGate adds the flags of the gate and of its reports.
func (s *Flags) DefineGate(cmd *cobra.Command) {
	s.Policies.Define(cmd)
	cli.DefineGroup(cmd, "Run flags", s.defineSandbox)
	cli.DefineGroup(cmd, "Report flags", s.defineReport)
	s.export.defineFlags(cmd)
	cmd.Flags().Lookup("tools").DefValue = "" // PATH differs from machine to machine
	cli.NoFiles(cmd, "resolver", "credential", "mask")
	cli.CompleteDirectories(cmd, "artifacts", "mount", "tools")
	cli.CompleteValues(cmd, "rootfs", "host", "dir:", "image:", "oci:", "oci-archive:", "devcontainer:")
}

func (s *Flags) defineReport(f *pflag.FlagSet) {
	f.StringVar(&s.Report, "report", "", "`FILE` also write the report to this file, as JSON")
	f.StringVar(&s.markdown, "markdown", "",
		"`FILE` also write the pull request comment to this file, as GitHub's Markdown")
	f.StringVar(&s.Artifacts, "artifacts", "",
		"`DIR` new directory for exported files and complete outputs (default: one per run in the user's state directory)")
	f.StringVar(&s.AuditFile, "audit", "",
		"`FILE` new file for the audit log (default: audit.jsonl among the artifacts)")
	f.StringVar(&s.settings.AuditKey, "audit-key", "",
		"`FILE` key that signs the audit log, or command:FILE, a program that does (default: a new key per run; the report has its public half)")
	f.Var((*cli.List)(&s.settings.Masks), "mask",
		"`VARIABLE` redact the value of this variable from everything that leaves the run; may be repeated. Values of --credential are always redacted")
}

func (s *Flags) defineSandbox(f *pflag.FlagSet) {
	f.StringVar(&s.Rootfs, "rootfs", "host",
		"`ROOT` root file system inside: host, dir:PATH, image:REPOSITORY@sha256:…, oci:DIR, oci-archive:FILE, or devcontainer:FILE")
	f.StringVar(&s.Tools, "tools", rootfs.CallerPath(),
		"`DIR:DIR` host directories with tools to show inside (default: your PATH, also with sudo)")
	f.Var((*cli.List)(&s.settings.Mounts), "mount",
		"`SRC[:DST]` host directory to show inside, such as a module cache; writes to it are discarded; may be repeated")
	f.Var((*cli.List)(&s.settings.Resolvers), "resolver",
		"`ADDRESS` name server for hosts that policy grants (default: the host's); may be repeated")
	f.Var((*cli.List)(&s.settings.Credentials), "credential",
		"`NAME@HOST` send the value of the variable NAME to a host that policy grants: NAME@HOST[/PATH][;header=X-Api-Key|;query=key]; inside, the variable has a placeholder, which is replaced in this header (default Authorization); may be repeated")
	f.StringVar(&s.runsc, "runsc", "", "`FILE` use this fumehood-runsc")
}

// ReadPlan reads the plan and prints why it is rejected, redacted by u, which may be nil. The
// decisions say why a proposal is refused.
func ReadPlan(c *cli.Invocation, path string, u *redact.Redactor) (proposal.Plan, int, bool) {
	data, name, err := plan.ReadFile(path, c.Stdin)
	if err != nil {
		return proposal.Plan{}, c.ReportMisuse(fmt.Sprintf("cannot read plan: %v", err)), false
	}
	p, problems := plan.Decode(data, name)
	for _, problem := range problems {
		fmt.Fprintf(c.Stderr, "fumehood: %s\n", u.Text(plan.Describe(name, problem)))
	}
	if len(problems) > 0 {
		fmt.Fprintln(c.Stderr, "fumehood: plan.invalid: the plan is invalid; nothing runs")
		return p, cli.Usage, false
	}
	for _, w := range plan.Warnings(data, name) {
		c.PrintWarnings(plan.Describe(name, w))
	}
	return p, cli.OK, true
}

// Open makes the gate that the flags describe. Invalid flags are refused first, even if no
// command would need them.
func (s *Flags) Open(c *cli.Invocation) (*gate.Gate, error) {
	if err := process.CheckRoot(); err != nil { // before anything that takes time
		return nil, err
	}
	o, err := s.gateOptions(c)
	if err != nil {
		return nil, err
	}
	p := NewProgress(c.Stderr)
	if show := p.OutputPrinter(); show != nil {
		c.Ctx = order.WithOutput(c.Ctx, show)
	}
	o.Progress, o.Notice, o.Health, o.Pool, o.Plan = p.PrintStep, p.PrintNotice, s.Health, s.pool, s.planned
	configured, err := s.applyConfig(c, &o)
	if err != nil {
		return nil, err
	}
	defer configured.Close()
	if o.Base, err = s.findBase(c); err != nil {
		return nil, err
	}
	s.Policies.Directory = cmp.Or(s.Trusted, s.Workspace)
	policies, err := s.Policies.Read(c.Ctx)
	if err != nil {
		return nil, err
	}
	o.Policies = settings.ForGate(policies)
	if about, given, err := s.Policies.ReadContext(); err != nil {
		return nil, err
	} else if given {
		o.Subject.Context = about
	}
	return NewGate(configured.Context(c.Ctx), o)
}

// gateOptions returns the options that need no file except for a key.
func (s *Flags) gateOptions(c *cli.Invocation) (gate.Options, error) {
	o, err := s.settings.MakeOptions(s.Masks, os.Getenv)
	if s.BuildCache != "" {
		o.MountsUnsafe = append(o.MountsUnsafe, gate.Mount{Source: s.BuildCache, Target: rootfs.GoCacheInside,
			Note: "Go's build cache " + s.BuildCache +
				" on the host is readable inside, so that the demo's Go test takes seconds"})
	}
	if s.Registries != nil {
		o.Registries = settings.FixedRegistries(s.Registries)
	}
	o.UserHome = s.UserHome
	o.Workspace, o.Rootfs, o.Tools, o.Runsc = s.Workspace, s.Rootfs, s.Tools, s.runsc
	o.Artifacts, o.AuditFile, o.Version, o.Gateway = s.Artifacts, s.AuditFile, c.Version,
		[]string{"/proc/self/exe", egress.DoorName}
	o.ObserveUnsafe, o.ObserveNetworkUnsafe, o.Ceiling, o.Subject = s.Observe, s.observeNetwork, s.Ceiling, s.Subject
	return o, err
}

// readSpec reads what a job says about this run, if one started it, and then what readMasks does.
func (s *Flags) readSpec(c *cli.Invocation) error {
	if s.fromJob {
		in := bufio.NewReader(c.Stdin)
		c.Stdin = in
		if err := s.Spec.ReadLine(in); err != nil {
			return err
		}
		s.settings.Owner = s.Owner
		s.Policies.Organisation = append(s.Policies.Organisation, s.Organization...)
		s.Policies.Hosts = append(s.Policies.Hosts, s.Hosts...)
		s.Policies.Restricting = append(s.Policies.Restricting, s.Restricting...)
		s.Policies.Origins = s.Origins
	}
	return s.readMasks()
}

// readMasks reads the values to redact, before anything is printed. The passwords of proxies are
// among them.
func (s *Flags) readMasks() error {
	if err := s.Proxies.Use(); err != nil {
		return err
	}
	secrets, err := s.settings.ReadSecrets(s.Masks, os.Getenv)
	if err == nil {
		s.Early, err = secrets.NewRedactor()
	}
	return err
}

// logName is the log's name in the report: its path, or in a job of GitHub Actions its name
// in the artifact.
func (s *Flags) logName(path string) string {
	if s.fromJob {
		return filepath.Base(path)
	}
	return path
}

// writtenFiles lists the files that this run has written so far; g may be nil.
func (s *Flags) writtenFiles(g *gate.Gate) []string {
	var paths []string
	for _, path := range []string{s.Report, s.markdown, s.export.decisions} {
		if path != "" {
			paths = append(paths, path)
		}
	}
	if g != nil {
		paths = append(paths, g.Files()...)
	}
	return paths
}

// InvalidSetup reports whether a value of --setup is an unknown mode.
func InvalidSetup(mode string) bool { return mode != "" && mode != "auto" && mode != "none" }
