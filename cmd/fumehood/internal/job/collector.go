// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fumehood/fumehood/internal/evidence/export"
	"github.com/fumehood/fumehood/internal/evidence/export/otlp"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// fromArtifact is the source of data from another job's artifact. The pull request can
// change that job, so its log proves only that the log is complete.
const fromArtifact = "artifact"

// exportTime is how long exporting may take in a job that is cancelled.
const exportTime = 2 * time.Second

// A collector receives what a step did. It has no Endpoint when the workflow names none,
// and then receives nothing.
type collector struct{ otlp.Options }

// An askedDecision is what policy decided about a comment, for the collector.
type askedDecision struct {
	about    proposal.Run
	decision export.Decision
}

// readCollector reads the inputs otlp and otlp-headers. The runner masks the variables'
// values before anything else is done.
func (j *Job) readCollector() error {
	if j.in.OTLP == "" {
		return nil
	}
	getenv := j.options.Getenv
	o := otlp.Options{Endpoint: j.in.OTLP, Getenv: getenv, TraceParent: getenv("TRACEPARENT"),
		Version: j.options.Version}
	for _, text := range j.in.OTLPHeaders {
		h, err := otlp.ParseHeader(text)
		if err != nil {
			return err
		}
		if value := getenv(h.Variable); value != "" {
			if err := j.console.MaskSecret(value); err != nil {
				return err
			}
		}
		o.Headers = append(o.Headers, h)
	}
	if _, err := otlp.New(o); err != nil {
		return err
	}
	j.collector = collector{o}
	return nil
}

// noteDecision keeps what policy decided about a comment, or nil without a collector. The
// engine is nil when the shipped policy decided.
func (t Trigger) noteDecision(facts points.Trigger, d proposal.Decision, engine *policy.Engine) *askedDecision {
	j := t.Job
	if j.collector.Endpoint == "" {
		return nil
	}
	run := proposal.Run{Repository: j.runner.Repository, PR: t.Task.PR.Number, HeadSHA: t.Task.PR.Head.SHA,
		BaseSHA: t.Task.PR.Base.SHA,
		Fork:    t.Task.Fork, Version: j.options.Version, Mode: j.in.Mode}
	asked := &askedDecision{about: run}
	if engine != nil {
		run.Policy = engine.Digest()
	}
	id := fmt.Sprintf("%s/runs/%d.%d/comments/%d", j.runner.Repository, j.runner.RunID, j.runner.Attempt,
		j.event.Comment.ID)
	asked.decision = export.TriggerDecision(id, facts, d, run, export.Options{TraceParent: j.collector.TraceParent},
		time.Now())
	return asked
}

// send sends the outcome, for a bounded time.
func (c collector) send(ctx context.Context, o Outcome) error {
	if c.Endpoint == "" {
		return nil
	}
	limit := otlp.Patience
	if ctx.Err() != nil {
		limit = exportTime
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	errs := c.sendAsked(ctx, o.asked)
	for _, l := range o.Runs {
		errs = errors.Join(errs, c.sendRun(ctx, l))
	}
	return errs
}

func (c collector) sendAsked(ctx context.Context, asked *askedDecision) error {
	if asked == nil {
		return nil
	}
	var b otlp.Batch
	b.Add(asked.decision)
	x, err := c.exporter("")
	if err != nil {
		return err
	}
	return x.SendDecisions(ctx, asked.about, &b)
}

func (c collector) exporter(source string) (*otlp.Exporter, error) {
	o := c.Options
	o.Source = source
	return otlp.New(o)
}

// sendRun sends one run: from its log or, when it stopped before it had one, from its
// report.
func (c collector) sendRun(ctx context.Context, l PlanRun) error {
	source := ""
	if !l.local && !l.substitute {
		source = fromArtifact
	}
	o := export.Options{TraceParent: c.TraceParent, Source: source}
	var b otlp.Batch
	story, err := l.story(o, func(d export.Decision) error { b.Add(d); return nil })
	if err != nil {
		return err
	}
	x, err := c.exporter(source)
	if err != nil {
		return err
	}
	return x.Send(ctx, story, &b)
}

func (l PlanRun) story(o export.Options, add func(export.Decision) error) (export.Story, error) {
	log, end, err := l.openLog()
	if err != nil {
		return export.Report(l.Report, o, add)
	}
	defer end()
	story, _, err := export.Log(log, trustOf(l.Report), o, add)
	return story, err
}
