// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"strings"

	logs "go.opentelemetry.io/proto/slim/otlp/logs/v1"

	"github.com/fumehood/fumehood/internal/evidence/export"
	"github.com/fumehood/fumehood/internal/kit/text"
)

// The event names of log records.
const (
	EventDecision = "fumehood.decision"
	EventFinding  = "fumehood.finding"
)

// logRecord converts d to a log record.
func logRecord(d export.Decision) *logs.LogRecord {
	r := &logs.LogRecord{
		TimeUnixNano: unixNanoseconds(d.Timestamp), ObservedTimeUnixNano: unixNanoseconds(d.Timestamp),
		EventName: EventDecision,
		Body:      textValue(describeDecision(d)), Attributes: logAttributes(d), Flags: 1,
	}
	r.SeverityNumber, r.SeverityText = severityOf(d)
	if d.Path == export.PathEvent {
		r.EventName = EventFinding
	}
	r.TraceId, _ = hex.DecodeString(d.TraceID) // record writes only hex
	r.SpanId, _ = hex.DecodeString(d.SpanID)
	return r
}

// severityOf returns warning for anything refused, for anything that would have been
// refused, and for findings.
func severityOf(d export.Decision) (logs.SeverityNumber, string) {
	if d.Result.Effect == export.Allow && !d.Result.Observed {
		return logs.SeverityNumber_SEVERITY_NUMBER_INFO, "INFO"
	}
	return logs.SeverityNumber_SEVERITY_NUMBER_WARN, "WARN"
}

// describeDecision describes d for a person.
func describeDecision(d export.Decision) string {
	words := d.Result.Effect + " " + strings.TrimPrefix(d.Path, "fumehood/")
	if d.Result.Observed {
		words = "observed " + strings.TrimPrefix(d.Path, "fumehood/")
	}
	if s := strings.TrimSpace(describeObject(d.Input)); s != "" {
		words += " " + text.Inline(s, 200)
	}
	for _, r := range d.Result.Reasons {
		return fmt.Sprintf("%s: %s (%s)", words, cmp.Or(text.Inline(r.Message, 400), "no reason given"), r.Rule)
	}
	return words
}

// describeObject describes the object of the decision.
func describeObject(in export.Input) string {
	switch {
	case in.Command != nil:
		return strings.Join(in.Command.Argv, " ")
	case in.Proposal != nil:
		return in.Proposal.Text
	case in.Exec != nil:
		return in.Exec.Path
	case in.Egress != nil:
		return strings.TrimSpace(in.Egress.Kind + " " + in.Egress.Destination())
	case in.Event != nil:
		return in.Event.Kind + " " + in.Event.Program
	case in.Trigger != nil:
		return in.Trigger.Command + " by " + in.Trigger.Actor.Login
	}
	return ""
}

func logAttributes(d export.Decision) attributes {
	var a attributes
	a.addText("fumehood.proposal.id", d.Custom.ID)
	a.addText("fumehood.decision.id", d.DecisionID)
	a.addText("fumehood.decision.path", d.Path)
	a.addText("fumehood.decision.effect", d.Result.Effect)
	a.addList("fumehood.decision.rules", d.Result.Rules)
	if len(d.Result.Reasons) > 0 {
		a.addText("fumehood.decision.reason", d.Result.Reasons[0].Message)
		a.addText("fumehood.decision.suggestion", d.Result.Reasons[0].Suggestion)
	}
	a.addIfTrue("fumehood.decision.observed", d.Result.Observed)
	a.addIfTrue("fumehood.decision.approved", d.Result.Approved)
	a.addText("fumehood.decision.code", d.Result.Code)
	a.addObject(d.Input)
	return a
}

// addObject adds the object of the decision, as defined by the conventions.
func (a *attributes) addObject(in export.Input) {
	if x := in.Command; x != nil {
		a.addCount("fumehood.command.index", int64(x.Index))
		a.addList("process.command_args", x.Argv)
	}
	if x := in.Exec; x != nil {
		a.addText("process.executable.path", x.Path)
		a.addList("process.command_args", x.Argv)
		a.addNonZero("process.pid", int64(x.Pid))
		a.addNonZero("process.parent_pid", int64(x.Parent))
		a.addText("fumehood.exec.layer", x.Layer)
		a.addText("fumehood.exec.digest", x.Digest)
	}
	if x := in.Event; x != nil {
		a.addText("fumehood.event.kind", x.Kind)
		a.addText("process.executable.path", x.Program)
		a.addNonZero("process.pid", int64(x.Pid))
		a.addText("file.path", x.Path)
		a.addText("network.peer.address", x.Address)
	}
	if x := in.Trigger; x != nil {
		a.addText("fumehood.trigger.command", x.Command)
		a.addText("user.name", x.Actor.Login)
	}
	a.addEgress(in)
}

func (a *attributes) addEgress(in export.Input) {
	x := in.Egress
	if x == nil {
		return
	}
	a.addText("fumehood.egress.kind", x.Kind)
	if x.Kind == "lookup" {
		a.addText("dns.question.name", x.Name)
	} else if x.Name != "" {
		a.addText("server.address", x.Name)
	} else {
		a.addText("server.address", x.Address)
	}
	a.addNonZero("server.port", int64(x.Port))
	a.addText("network.peer.address", x.Address)
	a.addText("network.protocol.name", x.Protocol)
	a.addText("http.request.method", x.Method)
	a.addText("url.path", x.Path)
}
