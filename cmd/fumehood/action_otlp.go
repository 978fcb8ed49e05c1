// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/record"
	"github.com/fumehood/fumehood/pkg/record/otlp"
	"github.com/fumehood/fumehood/pkg/terminal"
)

// fromArtifact is the source of what another job left: the pull request can change that
// job, and the log that it left proves only that it is of one piece.
const fromArtifact = "artifact"

// A telling is what a job has for a collector beside its legs.
type telling struct {
	options otlp.Options // with an endpoint when there is a collector
	asked   []record.Decision
}

// readCollector reads the inputs otlp and otlp-headers. The variables' values are masked
// in the job's log before anything else is done.
func (j *job) readCollector(getenv func(string) string) error {
	if j.in.OTLP == "" {
		return nil
	}
	o := otlp.Options{Endpoint: j.in.OTLP, Getenv: getenv, TraceParent: getenv("TRACEPARENT"), Version: fumehoodVersion()}
	for _, text := range j.in.OTLPHeaders {
		h, err := otlp.ParseHeader(text)
		if err != nil {
			return err
		}
		if value := getenv(h.Variable); value != "" {
			if err := j.console.Mask(value); err != nil {
				return err
			}
		}
		o.Headers = append(o.Headers, h)
	}
	if _, err := otlp.New(o); err != nil {
		return err
	}
	j.telling.options = o
	return nil
}

// noteTrigger remembers what policy said to a comment, for the collector.
func (j *job) noteTrigger(t proposal.Trigger, d proposal.Decision, engine *policy.Engine) {
	if j.telling.options.Endpoint == "" {
		return
	}
	run := j.about()
	if engine != nil {
		run.Policy = engine.Digest()
	}
	id := fmt.Sprintf("%s/runs/%d.%d/comments/%d", j.runner.Repository, j.runner.RunID, j.runner.Attempt, j.event.Comment.ID)
	j.telling.asked = append(j.telling.asked, record.Asked(id, t, d, run, record.Options{TraceParent: j.telling.options.TraceParent}, time.Now()))
}

// about is what this job knows of the pull request.
func (j *job) about() proposal.Run {
	return proposal.Run{Repository: j.runner.Repository, PR: j.pr.Number, HeadSHA: j.pr.Head.SHA, BaseSHA: j.pr.Base.SHA, Fork: j.fork(),
		Version: fumehoodVersion(), Mode: j.in.Mode}
}

// tellCollector sends what the job has, for a bounded time. That it cannot is a warning.
func (j *job) tellCollector() {
	if j.telling.options.Endpoint == "" || len(j.legs)+len(j.telling.asked) == 0 {
		return
	}
	ctx, cancel := otlp.Bounded(j.Ctx)
	defer cancel()
	var errs error
	if len(j.telling.asked) > 0 {
		var b otlp.Batch
		for _, d := range j.telling.asked {
			b.Add(d)
		}
		errs = j.withExporter("", func(x *otlp.Exporter) error { return x.Tell(ctx, j.about(), &b) })
	}
	for _, l := range j.legs {
		errs = errors.Join(errs, j.tellLeg(ctx, l))
	}
	if errs != nil {
		j.console.Warning(terminal.Line(j.plain(errs.Error())))
	}
}

func (j *job) withExporter(source string, do func(*otlp.Exporter) error) error {
	o := j.telling.options
	o.Source = source
	x, err := otlp.New(o)
	if err != nil {
		return err
	}
	return do(x)
}

// tellLeg sends one run: from its log, or when it stopped before it had one, from its
// report.
func (j *job) tellLeg(ctx context.Context, l leg) error {
	source := ""
	if !l.own && !l.ours {
		source = fromArtifact
	}
	o := record.Options{TraceParent: j.telling.options.TraceParent, Source: source}
	var b otlp.Batch
	add := func(d record.Decision) error { b.Add(d); return nil }
	log, end, err := l.openLog()
	var story record.Story
	if err != nil {
		story, err = record.Report(l.report, o, add)
	} else {
		story, _, err = record.Log(log, trustOf(l.report), o, add)
		end()
	}
	if err != nil {
		return err
	}
	return j.withExporter(source, func(x *otlp.Exporter) error { return x.Send(ctx, story, &b) })
}

// openLog opens the log that the leg's job wrote, or that was in the artifact.
func (l leg) openLog() (log io.ReadSeeker, end func(), err error) {
	if l.log != nil {
		return bytes.NewReader(l.log), func() {}, nil
	}
	if l.dir == "" || l.report.Audit == nil {
		return nil, nil, os.ErrNotExist
	}
	f, err := os.Open(filepath.Join(l.dir, auditName))
	return f, func() { f.Close() }, err
}
