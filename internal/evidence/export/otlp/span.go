// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"strconv"
	"strings"
	"time"

	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	resource "go.opentelemetry.io/proto/slim/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/slim/otlp/trace/v1"

	"github.com/fumehood/fumehood/internal/evidence/export"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func resourceOf(run proposal.Run, source string) *resource.Resource {
	var a attributes
	a.addText("service.name", "fumehood")
	a.addText("service.version", run.Version)
	a.addText("service.instance.id", run.ID)
	if owner, name, ok := strings.Cut(run.Repository, "/"); ok {
		a.addText("vcs.provider.name", "github")
		a.addText("vcs.owner.name", owner)
		a.addText("vcs.repository.name", name)
	}
	if run.PR > 0 {
		a.addText("vcs.change.id", strconv.Itoa(run.PR))
	}
	for _, x := range [][2]string{
		{"vcs.ref.head.revision", run.HeadSHA}, {"vcs.ref.base.revision", run.BaseSHA}, {"fumehood.fork", run.Fork}, {"fumehood.mode", run.Mode},
		{"fumehood.source", source}, {"fumehood.proposer", run.Proposer}, {"fumehood.plan.digest", run.PlanDigest}, {"fumehood.policy.digest", run.Policy},
		{"fumehood.rootfs", run.Rootfs}, {"fumehood.runsc.version", run.Runsc},
	} {
		a.addText(x[0], x[1])
	}
	return &resource.Resource{Attributes: a}
}

func newScope(run proposal.Run) *common.InstrumentationScope {
	return &common.InstrumentationScope{Name: "github.com/fumehood/fumehood",
		Version: text.Inline(run.Version, maxUnits)}
}

// A spanBuilder makes the spans of one run.
type spanBuilder struct {
	story export.Story
	trace export.Trace
	spans []*trace.Span
}

// buildSpans returns the spans of story, parents first.
func buildSpans(story export.Story, traceparent string, dropped int) []*trace.Span {
	w := spanBuilder{story: story, trace: export.TraceOf(traceparent, story.Run.ID)}
	root := w.addSpan(export.SpanRun, 0, nil, "fumehood run", story.Begin, story.End)
	if w.trace.Parent != [8]byte{} {
		root.ParentSpanId = w.trace.Parent[:]
	}
	root.Attributes, root.Status = runAttributes(story, dropped), runStatus(story)
	for _, s := range story.Steps {
		w.addStep(s, root)
	}
	return w.spans
}

func (w *spanBuilder) addSpan(
	of export.Span, entry int64, parent *trace.Span, name string, begin, end time.Time,
) *trace.Span {
	id := export.SpanID(w.story.Run.ID, of, entry)
	s := &trace.Span{TraceId: w.trace.ID[:], SpanId: id[:], Name: text.Inline(name, maxUnits),
		Kind:              trace.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: unixNanoseconds(begin), EndTimeUnixNano: max(unixNanoseconds(begin), unixNanoseconds(end)),
		Flags: 1}
	if parent != nil {
		s.ParentSpanId = parent.SpanId
	}
	w.spans = append(w.spans, s)
	return s
}

// unixNanoseconds returns the nanoseconds since 1970, or 0 if they cannot be represented.
func unixNanoseconds(t time.Time) uint64 {
	if t.Year() < 1970 || t.Year() > 2200 {
		return 0
	}
	return uint64(t.UnixNano())
}

func (w *spanBuilder) addStep(s export.Step, root *trace.Span) {
	task := w.addSpan(export.SpanTask, s.Entry, root, "proposal "+s.Proposal.ID, s.Begun, s.Done())
	task.Attributes = taskAttributes(w.story, s)
	decide := w.addSpan(export.SpanDecide, s.Entry, task, "decide", s.Begun, s.Decided)
	decide.Attributes = decideAttributes(w.story, s)
	if s.Started.IsZero() {
		return
	}
	execute := w.addSpan(export.SpanExecute, s.Entry, task, "execute", s.Started, s.Ended)
	execute.Attributes = executeAttributes(s)
	if ended := taskResult(s); ended != "" && ended != "success" {
		execute.Status = &trace.Status{Code: trace.Status_STATUS_CODE_ERROR,
			Message: text.Inline(describeEnd(s), maxUnits)}
		task.Status = execute.Status
	}
}

func runStatus(story export.Story) *trace.Status {
	if story.Error == nil {
		return nil
	}
	return &trace.Status{Code: trace.Status_STATUS_CODE_ERROR,
		Message: text.Inline(story.Error.Code+": "+story.Error.Message, maxUnits)}
}

// decisionID returns the id that package export gives the decision about s.
func decisionID(story export.Story, s export.Step) string {
	return story.Run.ID + "/" + strconv.FormatInt(s.Entry, 10)
}
