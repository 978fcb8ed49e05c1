// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/record"
	"github.com/fumehood/fumehood/pkg/record/otlp"
)

// A sending is what a run's flags say of who else is told.
type sending struct {
	decisions string
	collector otlpFlags
	exporter  *otlp.Exporter
}

func (s *sending) define(f *flag.FlagSet) {
	f.StringVar(&s.decisions, "decisions", "", "write every decision to this `file`, a line of JSON each, as fumehood export does")
	f.StringVar(&s.collector.endpoint, "otlp", "", "send the run to the OpenTelemetry collector at this `URL`; that it cannot is a warning")
	s.collector.define(f)
}

// check finds what is wrong before anything runs.
func (s *sending) check() (err error) {
	s.exporter, err = s.collector.exporter()
	return err
}

// passOn tells others of a run that is over, from its log, which is verified like a
// stranger's. Only decisions that cannot be written are an error.
func (c *call) passOn(s *sending, path string, a *proposal.Audit) error {
	var errs error
	if s.decisions != "" {
		errs = c.writeDecisions(s.decisions, path, a)
	}
	if s.exporter != nil {
		c.warnUnsent(s.exporter, path, a)
	}
	return errs
}

// tellLog reads a log of our own.
func tellLog(path string, a *proposal.Audit, each func(record.Decision) error) (record.Story, error) {
	log, err := os.Open(path)
	if err != nil {
		return record.Story{}, unreadable(path, err)
	}
	defer log.Close()
	story, _, err := record.Log(log, audit.Trust{Key: a.Key, Checkpoint: a.Checkpoint}, record.Options{TraceParent: os.Getenv("TRACEPARENT")}, each)
	return story, err
}

func (c *call) writeDecisions(path, log string, a *proposal.Audit) error {
	out, err := c.lines(path)
	if err != nil {
		return err
	}
	if _, err := tellLog(log, a, out.write); err != nil {
		out.abandon()
		return err
	}
	return out.close()
}

func (c *call) warnUnsent(exporter *otlp.Exporter, log string, a *proposal.Audit) {
	var b otlp.Batch
	story, err := tellLog(log, a, func(d record.Decision) error { b.Add(d); return nil })
	if err == nil {
		err = c.sendRun(exporter, story, &b)
	}
	if err == nil {
		return
	}
	f := proposal.FailureOf(err)
	fmt.Fprintf(c.stderr, "fumehood: warning: %s: %s\n", f.Code, printable(f.Message))
	if f.Hint != "" {
		fmt.Fprintf(c.stderr, "fumehood: hint: %s\n", printable(f.Hint))
	}
}
