// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/evidence/export"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func runAttributes(story export.Story, dropped int) attributes {
	var a attributes
	a.text("cicd.pipeline.name", "fumehood")
	a.text("cicd.pipeline.run.id", story.Run.ID)
	a.text("cicd.pipeline.action.name", "RUN")
	a.text("cicd.pipeline.result", conclusion(story))
	if t := story.Totals; t != nil {
		a.count("fumehood.proposals.proposed", int64(t.Proposed))
		a.count("fumehood.proposals.allowed", int64(t.Allowed))
		a.count("fumehood.proposals.denied", int64(t.Denied))
		a.count("fumehood.proposals.asked", int64(t.Asked))
		a.count("fumehood.proposals.succeeded", int64(t.Succeeded))
		a.count("fumehood.proposals.failed", int64(t.Failed))
		a.count("fumehood.proposals.could_not_run", int64(t.CouldNotRun))
		a.count("fumehood.proposals.failed_before", int64(t.FailedBefore))
		a.count("fumehood.proposals.not_run", int64(t.NotRun))
	}
	a.text("fumehood.log.state", story.Log)
	if story.Estimated {
		a.text("fumehood.times", "estimated")
	}
	a.number("fumehood.dropped_records", int64(dropped))
	if story.Error != nil {
		a.text("error.type", story.Error.Code)
	}
	return a
}

// conclusion returns the run's result as defined by the conventions.
func conclusion(story export.Story) string {
	switch {
	case story.Error != nil && story.Error.Code == "run.cancelled":
		return "cancellation"
	case story.Error != nil && story.Error.Code == "run.timeout":
		return "timeout"
	case story.Error != nil || story.Totals == nil: // no totals: the run was cut off
		return "error"
	case story.Totals.Denied+story.Totals.Asked+story.Totals.Unsuccessful() > 0:
		return "failure"
	}
	return "success"
}

func taskAttributes(story export.Story, s export.Step) attributes {
	var a attributes
	a.text("cicd.pipeline.task.name", s.Proposal.ID)
	a.text("cicd.pipeline.task.run.id", decisionID(story, s))
	result := outcome(s)
	if result == "" {
		result = "skip"
	}
	a.text("cicd.pipeline.task.run.result", result)
	a.text("fumehood.proposal.id", s.Proposal.ID)
	a.text("fumehood.proposal.form", s.Proposal.Form())
	a.text("fumehood.proposal.phase", cmp.Or(s.Proposal.Phase, proposal.PhaseRun))
	if result != "success" && result != "skip" {
		a.text("error.type", words(s))
	}
	return a
}

// outcome returns the result of a started command as defined by the conventions, or
// "" if it was not started.
func outcome(s export.Step) string {
	switch {
	case s.Started.IsZero():
		return ""
	case s.Result == nil || s.Result.Status == proposal.SandboxFailed: // nil: the run was cut off
		return "error"
	case s.Result.Succeeded():
		return "success"
	case s.Result.Status == proposal.TimedOut:
		return "timeout"
	}
	return "failure"
}

// words describes how a started command ended.
func words(s export.Step) string {
	if s.Result == nil {
		return "cut off"
	}
	return s.Result.Status.String()
}

func decideAttributes(story export.Story, s export.Step) attributes {
	var a attributes
	a.text("process.command_line", strings.TrimSpace(s.Analysis.Canonical))
	a.text("fumehood.decision.id", decisionID(story, s))
	a.text("fumehood.decision.effect", s.Decision.Effect.String())
	a.list("fumehood.decision.rules", s.Decision.Rules)
	if said := s.Decision.Reasons; len(said) > 0 {
		a.text("fumehood.decision.reason", said[0].Message)
		observed := slices.ContainsFunc(said, func(r proposal.Reason) bool { return r.Observed })
		a.flag("fumehood.decision.observed", observed && s.Decision.Effect == proposal.Allow)
	}
	a.flag("fumehood.decision.approved", s.Approved)
	return a
}

func executeAttributes(s export.Step) attributes {
	var a attributes
	a.text("process.command_line", strings.TrimSpace(s.Analysis.Canonical))
	a.text("process.working_directory", s.Proposal.Cwd)
	if s.Result == nil {
		a.text("fumehood.result.status", words(s))
		return a
	}
	r := *s.Result
	if r.Status == proposal.Exited {
		a.count("process.exit.code", int64(r.ExitCode))
	}
	a.text("fumehood.result.status", r.Status.String())
	a.text("fumehood.result.signal", r.Signal)
	a.text("fumehood.result.limit", r.Limit)
	a.count("fumehood.result.cpu_ms", r.CPUMS)
	a.count("fumehood.result.peak_memory_bytes", int64(r.PeakMem))
	a.count("fumehood.result.stdout_bytes", r.Stdout.Bytes)
	a.count("fumehood.result.stderr_bytes", r.Stderr.Bytes)
	redacted, _ := proposal.CountRedactions(proposal.AddRedactions(r.Stdout.Redacted, r.Stderr.Redacted))
	a.number("fumehood.result.redacted", int64(redacted))
	if o := r.Observations; o != nil {
		a.count("fumehood.result.execs", int64(o.Counts.Execs))
		a.count("fumehood.result.execs_refused", int64(o.Counts.Refused))
		a.count("fumehood.result.network_refused", int64(o.Counts.NetRefused))
		a.count("fumehood.result.findings", int64(len(o.Findings)))
	}
	return a
}
