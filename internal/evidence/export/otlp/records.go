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
		TimeUnixNano: nanoseconds(d.Timestamp), ObservedTimeUnixNano: nanoseconds(d.Timestamp), EventName: EventDecision,
		Body: textValue(sentence(d)), Attributes: logAttributes(d), Flags: 1,
	}
	r.SeverityNumber, r.SeverityText = severity(d)
	if d.Path == export.PathEvent {
		r.EventName = EventFinding
	}
	r.TraceId, _ = hex.DecodeString(d.TraceID) // record writes only hex
	r.SpanId, _ = hex.DecodeString(d.SpanID)
	return r
}

// severity returns warning for anything refused, for anything that would have been
// refused, and for findings.
func severity(d export.Decision) (logs.SeverityNumber, string) {
	if d.Result.Effect == export.Allow && !d.Result.Observed {
		return logs.SeverityNumber_SEVERITY_NUMBER_INFO, "INFO"
	}
	return logs.SeverityNumber_SEVERITY_NUMBER_WARN, "WARN"
}

// sentence describes d for a person.
func sentence(d export.Decision) string {
	words := d.Result.Effect + " " + strings.TrimPrefix(d.Path, "fumehood/")
	if d.Result.Observed {
		words = "observed " + strings.TrimPrefix(d.Path, "fumehood/")
	}
	if s := strings.TrimSpace(subject(d.Input)); s != "" {
		words += " " + text.Inline(s, 200)
	}
	for _, r := range d.Result.Reasons {
		return fmt.Sprintf("%s: %s (%s)", words, cmp.Or(text.Inline(r.Message, 400), "no reason given"), r.Rule)
	}
	return words
}

// subject describes the object of the decision.
func subject(in export.Input) string {
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
	a.text("fumehood.proposal.id", d.Custom.ID)
	a.text("fumehood.decision.id", d.DecisionID)
	a.text("fumehood.decision.path", d.Path)
	a.text("fumehood.decision.effect", d.Result.Effect)
	a.list("fumehood.decision.rules", d.Result.Rules)
	if len(d.Result.Reasons) > 0 {
		a.text("fumehood.decision.reason", d.Result.Reasons[0].Message)
		a.text("fumehood.decision.suggestion", d.Result.Reasons[0].Suggestion)
	}
	a.flag("fumehood.decision.observed", d.Result.Observed)
	a.flag("fumehood.decision.approved", d.Result.Approved)
	a.text("fumehood.decision.code", d.Result.Code)
	a.judged(d.Input)
	return a
}

// judged adds the object of the decision, as defined by the conventions.
func (a *attributes) judged(in export.Input) {
	if x := in.Command; x != nil {
		a.count("fumehood.command.index", int64(x.Index))
		a.list("process.command_args", x.Argv)
	}
	if x := in.Exec; x != nil {
		a.text("process.executable.path", x.Path)
		a.list("process.command_args", x.Argv)
		a.number("process.pid", int64(x.Pid))
		a.number("process.parent_pid", int64(x.Parent))
		a.text("fumehood.exec.layer", x.Layer)
		a.text("fumehood.exec.digest", x.Digest)
	}
	if x := in.Event; x != nil {
		a.text("fumehood.event.kind", x.Kind)
		a.text("process.executable.path", x.Program)
		a.number("process.pid", int64(x.Pid))
		a.text("file.path", x.Path)
		a.text("network.peer.address", x.Address)
	}
	if x := in.Trigger; x != nil {
		a.text("fumehood.trigger.command", x.Command)
		a.text("user.name", x.Actor.Login)
	}
	a.egress(in)
}

func (a *attributes) egress(in export.Input) {
	x := in.Egress
	if x == nil {
		return
	}
	a.text("fumehood.egress.kind", x.Kind)
	if x.Kind == "lookup" {
		a.text("dns.question.name", x.Name)
	} else if x.Name != "" {
		a.text("server.address", x.Name)
	} else {
		a.text("server.address", x.Address)
	}
	a.number("server.port", int64(x.Port))
	a.text("network.peer.address", x.Address)
	a.text("network.protocol.name", x.Protocol)
	a.text("http.request.method", x.Method)
	a.text("url.path", x.Path)
}
