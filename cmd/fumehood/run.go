// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/process"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/report"
)

func runCommand() *command {
	return &command{
		name:     "run",
		synopsis: "decide each proposal of a plan, run what is allowed, report",
		usage: `--plan PLAN [flags]

examples:
  fumehood run --plan plan.yaml
  fumehood run --plan - --workspace ~/src/pr --json < plan.json
  fumehood run --plan plan.yaml --policy ./policy --report report.json
  fumehood run --plan plan.yaml --mount ~/go/pkg/mod:/home/fumehood/go/pkg/mod
  fumehood run --plan plan.yaml --mask NPM_TOKEN
  fumehood run --plan plan.yaml --hosts ./policy --credential GITHUB_TOKEN@api.github.com/repos/
`,
		run: runPlan,
	}
}

func runPlan(c *invocation) int {
	var s runFlags
	f := c.Flags()
	s.define(f)
	if code, ok := c.Parse(f); !ok {
		return code
	}
	if s.plan == "" || f.NArg() > 0 {
		return c.Misuse("run needs --plan and no other argument")
	}
	if (s.lifeline || s.maskStdin) && s.plan == "-" {
		return c.Misuse("--lifeline or --mask-stdin and --plan - both need standard input")
	}
	if err := s.export.check(); err != nil {
		return c.MisuseOf(err)
	}
	if err := s.readMasks(c.Stdin); err != nil {
		c.reportNotStarted(&s, proposal.Plan{}, err)
		return c.Stop(err)
	}
	p, code, ok := c.readPlan(s.plan, s.early)
	if !ok {
		return code
	}
	if s.lifeline {
		var cancel context.CancelFunc
		c.Ctx, cancel = process.UntilEnd(c.Ctx, c.Stdin)
		defer cancel()
	}
	return c.gate(&s, p)
}

// gate takes a plan through the gate and leaves what is to be kept of it.
func (c *invocation) gate(s *runFlags, p proposal.Plan) int {
	if s.timeout > 0 {
		var cancel context.CancelFunc
		c.Ctx, cancel = context.WithTimeout(c.Ctx, s.timeout)
		defer cancel()
	}
	owner, err := process.ParseOwner(s.owner)
	if err != nil {
		return c.Stop(err)
	}
	var g *gate.Gate
	defer func() { _ = owner.Take(s.left(g)...) }() // of a run that stopped early, too
	if g, err = c.open(s); err != nil {
		err = s.early.Error(err)
		c.reportNotStarted(s, p, err)
		return c.Stop(err)
	}
	defer g.Close()
	r, err := g.Run(c.Ctx, p)
	c.Warn(g.Warnings()...)
	if r.Audit == nil {
		c.reportNotStarted(s, p, err)
		return c.Stop(err)
	}
	log := r.Audit.File
	r.Audit.File = s.logName(log)
	if out := errors.Join(c.publish(s, r), c.passOn(&s.export, log, r.Audit), owner.Take(s.left(g)...)); out != nil {
		return c.Stop(errors.Join(err, out))
	}
	if err != nil {
		return c.Stop(err)
	}
	return exitOf(r)
}

// reportNotStarted writes a report of a run that stopped before it had a log, for anyone who
// asked for one by name.
func (c *invocation) reportNotStarted(s *runFlags, p proposal.Plan, err error) {
	o := gate.Options{Version: fumehoodVersion(), ObserveUnsafe: s.observe}
	if a, err := gate.ReadAbout(s.about); err == nil {
		o.Subject = a.Subject()
	}
	r := o.NotStarted(p, err)
	if s.early != nil { // demo has no masks
		r = s.early.Report(r)
	}
	_ = report.WriteFiles(r, s.report, "")
}

// publish writes the report to where it was asked for.
func (c *invocation) publish(s *runFlags, r proposal.Report) error {
	if err := report.WriteFiles(r, s.report, s.markdown); err != nil {
		return err
	}
	if s.json {
		return c.Print(report.JSON(r))
	}
	_, err := fmt.Fprintln(c.Stdout, report.Markdown(r))
	return err
}

func exitOf(r proposal.Report) int {
	if r.Totals.Denied+r.Totals.Asked+r.Totals.Failed > 0 {
		return exitRefused
	}
	return exitOK
}
