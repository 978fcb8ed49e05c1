// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/evidence/export"
	"github.com/fumehood/fumehood/internal/kit/redaction"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func runAttributes(story export.Story, dropped int) attributes {
	var a attributes
	a.addText("cicd.pipeline.name", "fumehood")
	a.addText("cicd.pipeline.run.id", story.Run.ID)
	a.addText("cicd.pipeline.action.name", "RUN")
	a.addText("cicd.pipeline.result", runResult(story))
	if t := story.Totals; t != nil {
		a.addCount("fumehood.proposals.proposed", int64(t.Proposed))
		a.addCount("fumehood.proposals.allowed", int64(t.Allowed))
		a.addCount("fumehood.proposals.denied", int64(t.Denied))
		a.addCount("fumehood.proposals.asked", int64(t.Asked))
		a.addCount("fumehood.proposals.succeeded", int64(t.Succeeded))
		a.addCount("fumehood.proposals.failed", int64(t.Failed))
		a.addCount("fumehood.proposals.could_not_run", int64(t.CouldNotRun))
		a.addCount("fumehood.proposals.failed_before", int64(t.FailedBefore))
		a.addCount("fumehood.proposals.not_run", int64(t.NotRun))
	}
	a.addText("fumehood.log.state", story.Log)
	if story.Estimated {
		a.addText("fumehood.times", "estimated")
	}
	a.addNonZero("fumehood.dropped_records", int64(dropped))
	if story.Error != nil {
		a.addText("error.type", story.Error.Code)
	}
	return a
}

// runResult returns the run's result as defined by the conventions.
func runResult(story export.Story) string {
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
	a.addText("cicd.pipeline.task.name", s.Proposal.ID)
	a.addText("cicd.pipeline.task.run.id", decisionID(story, s))
	result := taskResult(s)
	if result == "" {
		result = "skip"
	}
	a.addText("cicd.pipeline.task.run.result", result)
	a.addText("fumehood.proposal.id", s.Proposal.ID)
	a.addText("fumehood.proposal.form", s.Proposal.Form())
	a.addText("fumehood.proposal.phase", cmp.Or(s.Proposal.Phase, proposal.PhaseRun))
	if result != "success" && result != "skip" {
		a.addText("error.type", describeEnd(s))
	}
	return a
}

// taskResult returns the result of a started command as defined by the conventions, or
// "" if it was not started.
func taskResult(s export.Step) string {
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

// describeEnd describes how a started command ended.
func describeEnd(s export.Step) string {
	if s.Result == nil {
		return "cut off"
	}
	return s.Result.Status.String()
}

func decideAttributes(story export.Story, s export.Step) attributes {
	var a attributes
	a.addText("process.command_line", strings.TrimSpace(s.Analysis.Canonical))
	a.addText("fumehood.decision.id", decisionID(story, s))
	a.addText("fumehood.decision.effect", s.Decision.Effect.String())
	a.addList("fumehood.decision.rules", s.Decision.Rules)
	if said := s.Decision.Reasons; len(said) > 0 {
		a.addText("fumehood.decision.reason", said[0].Message)
		observed := slices.ContainsFunc(said, func(r proposal.Reason) bool { return r.Observed })
		a.addIfTrue("fumehood.decision.observed", observed && s.Decision.Effect == proposal.Allow)
	}
	a.addIfTrue("fumehood.decision.approved", s.Approved)
	return a
}

func executeAttributes(s export.Step) attributes {
	var a attributes
	a.addText("process.command_line", strings.TrimSpace(s.Analysis.Canonical))
	a.addText("process.working_directory", s.Proposal.Cwd)
	if s.Result == nil {
		a.addText("fumehood.result.status", describeEnd(s))
		return a
	}
	r := *s.Result
	if r.Status == proposal.Exited {
		a.addCount("process.exit.code", int64(r.ExitCode))
	}
	a.addText("fumehood.result.status", r.Status.String())
	a.addText("fumehood.result.signal", r.Signal)
	a.addText("fumehood.result.limit", r.Limit)
	a.addCount("fumehood.result.cpu_ms", r.CPUMS)
	a.addCount("fumehood.result.peak_memory_bytes", int64(r.PeakMem))
	a.addCount("fumehood.result.stdout_bytes", r.Stdout.Bytes)
	a.addCount("fumehood.result.stderr_bytes", r.Stderr.Bytes)
	redacted, _ := redaction.CountFinds(redaction.SumByRule(r.Stdout.Redacted, r.Stderr.Redacted))
	a.addNonZero("fumehood.result.redacted", int64(redacted))
	if o := r.Observations; o != nil {
		a.addCount("fumehood.result.execs", int64(o.Counts.Execs))
		a.addCount("fumehood.result.execs_refused", int64(o.Counts.Refused))
		a.addCount("fumehood.result.network_refused", int64(o.Counts.NetRefused))
		a.addCount("fumehood.result.findings", int64(len(o.Findings)))
	}
	return a
}
