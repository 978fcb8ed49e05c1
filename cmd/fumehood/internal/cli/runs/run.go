// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Command returns the command run.
func Command(c *cli.Invocation) *cobra.Command {
	var s Flags
	cmd := &cobra.Command{
		Use:     "run --plan FILE [flags]",
		GroupID: cli.GroupRun,
		Short:   "Decide the commands of a plan, run the allowed ones and report",
		Long: `Decide each command of a plan, run the allowed ones in gVisor and report. Nothing runs before
all decisions are in the audit log. The workspace is never written to.

Exit codes: 0 everything was allowed and succeeded, 1 a command was denied, needs approval or
failed, 2 the plan is invalid, 3 the run stopped, 4 the network was only observed
(--observe-network), however the commands ended, 5 neutral: commands could not run or
fail on the base, too, and nothing was denied or failed otherwise`,
		Example: `  fumehood run --plan plan.yaml
  fumehood run --plan - --workspace ~/src/pr --json < plan.json
  fumehood run --plan plan.yaml --policy ./policy --report report.json
  fumehood run --plan plan.yaml --markdown comment.md
  fumehood run --plan plan.yaml --mount ~/go/pkg/mod:/home/fumehood/go/pkg/mod
  fumehood run --plan plan.yaml --mask NPM_TOKEN
  fumehood run --plan plan.yaml --observe-network            which hosts do my own commands need?
  fumehood run --plan plan.yaml --hosts ./policy --credential GITHUB_TOKEN@api.github.com/repos/`,
		Args: cli.NoArgs,
		RunE: c.Run(func([]string) int { return s.runPlan(c) }),
	}
	s.defineFlags(cmd)
	return cmd
}

func (s *Flags) runPlan(c *cli.Invocation) int {
	err := s.readSpec(c)
	if s.Plan == "" && err == nil {
		return c.ReportMisuse("run needs --plan")
	}
	if s.fromJob && s.Plan == "-" {
		return c.ReportMisuse("--job and --plan - both need standard input")
	}
	if InvalidSetup(s.Setup) {
		return c.ReportMisuse("--setup must be auto or none")
	}
	if err := s.export.checkFlags(c.Version); err != nil {
		return c.MisuseOf(err)
	}
	if err != nil {
		s.reportNotStarted(c, proposal.Plan{}, err)
		return c.Stop(err)
	}
	p, code, ok := ReadPlan(c, s.Plan, s.Early)
	if !ok {
		return code
	}
	if s.fromJob {
		var cancel context.CancelFunc
		c.Ctx, cancel = process.UntilEnd(c.Ctx, c.Stdin)
		defer cancel()
	}
	return s.Run(c, p)
}

// Run runs a plan through the gate and writes the files that flags name.
func (s *Flags) Run(c *cli.Invocation, p proposal.Plan) int {
	if s.Timeout > 0 {
		var cancel context.CancelFunc
		c.Ctx, cancel = context.WithTimeout(c.Ctx, s.Timeout)
		defer cancel()
	}
	owner, err := process.ParseOwner(s.settings.Owner)
	if err != nil {
		return c.Stop(err)
	}
	var g *gate.Gate
	defer func() { _ = owner.TakePaths(s.writtenFiles(g)...) }() // also if the run stopped early
	s.planned = &p
	if g, err = s.Open(c); err != nil {
		err = s.Early.Error(err)
		s.reportNotStarted(c, p, err)
		return c.Stop(err)
	}
	defer g.Close()
	if s.configTimeout > 0 && s.Timeout == 0 {
		var cancel context.CancelFunc
		c.Ctx, cancel = context.WithTimeout(c.Ctx, s.configTimeout)
		defer cancel()
	}
	r, err := g.Run(c.Ctx, p)
	c.PrintWarnings(g.Warnings()...)
	if r.Audit == nil {
		s.reportNotStarted(c, p, err)
		return c.Stop(err)
	}
	log := r.Audit.File
	r.Audit.File = s.logName(log)
	if out := errors.Join(s.publishReport(c, r), s.export.exportTo(c, log, r.Audit),
		owner.TakePaths(s.writtenFiles(g)...)); out != nil {
		return c.Stop(errors.Join(err, out))
	}
	if err != nil {
		return c.Stop(err)
	}
	return exitOf(r)
}

// reportNotStarted writes the report of a run that stopped before it had a log, if --report
// names a file.
func (s *Flags) reportNotStarted(c *cli.Invocation, p proposal.Plan, err error) {
	o := gate.Options{Version: c.Version, ObserveUnsafe: s.Observe, ObserveNetworkUnsafe: s.observeNetwork,
		Subject: s.Subject}
	r := o.NotStarted(p, err)
	if s.Early != nil { // demo has no masks
		r = s.Early.Report(r)
	}
	_ = report.Files{JSON: s.Report}.WriteStopped(r)
}

// publishReport writes the report to the files that flags name, and to standard output.
func (s *Flags) publishReport(c *cli.Invocation, r proposal.Report) error {
	if err := (report.Files{JSON: s.Report, Markdown: s.markdown}).Write(r,
		report.Forms{Comment: s.shown}); err != nil {
		return err
	}
	switch {
	case s.Format.Is(cli.JSON):
		return c.Print(report.JSON(r))
	case s.Format.Is(cli.Markdown):
		return c.Print([]byte(report.Comment(r, s.shown)), nil) // no byte more: it may be as long as a comment can be
	}
	view := report.View{Color: terminal.WantsColors(c.Stdout), Width: terminal.Columns(c.Stdout),
		Listed: terminal.Is(c.Stdout) && terminal.Is(c.Stderr), File: s.Report}
	return c.Print([]byte(view.Render(r)), nil)
}

func exitOf(r proposal.Report) int {
	if r.Run.NetworkObserved {
		return cli.Observed
	}
	if r.Totals.Denied+r.Totals.Asked+r.Totals.Unsuccessful() > 0 {
		return cli.Refused
	}
	if r.Totals.Neutral() > 0 {
		return cli.Neutral
	}
	return cli.OK
}
