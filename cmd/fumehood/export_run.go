// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/cli"
	"github.com/fumehood/fumehood/pkg/export"
	"github.com/fumehood/fumehood/pkg/export/otlp"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// exportFlags say where a finished run is exported to.
type exportFlags struct {
	decisions string
	collector otlpFlags
	exporter  *otlp.Exporter
}

func (s *exportFlags) define(cmd *cobra.Command) {
	s.collector.flag, s.collector.describe = "otlp", "`URL` send the run to this OpenTelemetry collector; failure is only a warning"
	s.collector.define(cmd)
	cli.Group(cmd, "Report flags", func(f *pflag.FlagSet) {
		f.StringVar(&s.decisions, "decisions", "", "`FILE` also write every decision to this file, one JSON document per line, as fumehood export does")
	})
}

// check finds invalid flags before anything runs.
func (s *exportFlags) check() (err error) {
	s.exporter, err = s.collector.exporter()
	return err
}

// exportTo exports a finished run from its log, which is verified like one from elsewhere.
// Only decisions that cannot be written are an error.
func (c *invocation) exportTo(s *exportFlags, path string, a *proposal.Audit) error {
	var errs error
	if s.decisions != "" {
		errs = writeDecisions(s.decisions, path, a)
	}
	if s.exporter != nil {
		c.send(s.exporter, path, a)
	}
	return errs
}

// decisionsOf calls each with every decision in an audit log.
func decisionsOf(path string, a *proposal.Audit, each func(export.Decision) error) (export.Story, error) {
	return export.LogFile(path, audit.Trust{Key: a.Key, Checkpoint: a.Checkpoint}, export.Options{TraceParent: os.Getenv("TRACEPARENT")}, each)
}

func writeDecisions(path, log string, a *proposal.Audit) error {
	out, err := export.Create(path)
	if err != nil {
		return err
	}
	if _, err := decisionsOf(log, a, out.Write); err != nil {
		out.Abandon()
		return err
	}
	return out.Close()
}

// send sends the run; failure is only a warning.
func (c *invocation) send(exporter *otlp.Exporter, log string, a *proposal.Audit) {
	var b otlp.Batch
	story, err := decisionsOf(log, a, b.Take)
	if err == nil {
		ctx, cancel := otlp.Bounded(c.Ctx)
		defer cancel()
		err = exporter.Send(ctx, story, &b)
	}
	if err != nil {
		c.WarnOf(err)
	}
}
