// SPDX-License-Identifier: Apache-2.0

package export

import (
	"cmp"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Options say what to export.
type Options struct {
	All         bool   // also every program that started
	TraceParent string // the environment's TRACEPARENT
	Source      string // a label for the system that is responsible for it; "" for the one that ran it
}

// A emitter makes the decisions of one run.
type emitter struct {
	o       Options
	each    func(Decision) error
	trace   Trace
	labels  map[string]string
	bundles map[string]Bundle
	run     proposal.Run
	log     string
	// Of the log, as far as it is known: its key and last checkpoint.
	key, checkpoint string
	sequence        int64
}

// setRun sets the fields that all decisions of a run share.
func (t *emitter) setRun(run proposal.Run) {
	t.run, t.trace = run, TraceOf(t.o.TraceParent, run.ID)
	t.labels = map[string]string{"app": "fumehood"}
	pr := ""
	if run.PR > 0 {
		pr = strconv.Itoa(run.PR)
	}
	for _, l := range [][2]string{
		{"id", run.ID}, {"version", run.Version}, {"mode", run.Mode}, {"repository", run.Repository}, {"fork", run.Fork}, {"pull_request", pr},
		{"head_sha", run.HeadSHA}, {"base_sha", run.BaseSHA}, {"plan_digest", run.PlanDigest}, {"source", t.o.Source},
	} {
		if l[1] != "" {
			t.labels[l[0]] = TruncateText(l[1], maxName)
		}
	}
	t.bundles = map[string]Bundle{"policy": {Revision: TruncateText(run.Policy, maxName)}}
	for i, p := range run.Policies[:min(len(run.Policies), maxLayers)] {
		t.bundles[strconv.Itoa(i)+"-"+
			TruncateText(p.Kind, maxKind)] = Bundle{Revision: TruncateText(policyRevision(p), maxName)}
	}
}

func policyRevision(p proposal.PolicyOrigin) string {
	for _, s := range []string{p.Revision, p.Commit, p.Digest} {
		if s != "" {
			return s
		}
	}
	return ""
}

// newDecision returns a decision without path, input and result. part is "" for an entry's
// only decision.
func (t *emitter) newDecision(s *Step, entry int64, part string, span Span, at time.Time) Decision {
	id := TruncateText(t.run.ID, maxName) + "/" + formatNumber(entry)
	if part != "" {
		id += "." + part
	}
	d := Decision{
		Labels: t.labels, Bundles: t.bundles, DecisionID: id, TraceID: hex.EncodeToString(t.trace.ID[:]),
		RequestedBy: TruncateText(t.run.Proposer, maxName), Timestamp: at.UTC(),
		Custom: Custom{Schema: Schema, Run: TruncateText(t.run.ID, maxName), Entry: entry, Log: t.log,
			ID:  TruncateText(s.Proposal.ID, maxName),
			Key: TruncateText(t.key, maxWords), Checkpoint: TruncateText(t.checkpoint, maxWords)},
	}
	of := SpanID(t.run.ID, span, s.Entry)
	d.SpanID = hex.EncodeToString(of[:])
	return d
}

// emitDecision completes d and passes it to each.
func (t *emitter) emitDecision(d Decision, c inputTruncator) error {
	d.Masked, d.Erased, d.RuleLabels = c.masked, c.erased, ruleLabels(d.Result.Rules)
	t.sequence++
	d.Custom.Sequence, d.Custom.Severity = t.sequence, worstSeverity(d)
	return t.each(d)
}

// exportDecisions exports the decision about a proposal and those about its commands.
func (t *emitter) exportDecisions(s *Step) error {
	d := t.newDecision(s, s.Entry, "", SpanDecide, s.Decided)
	var c inputTruncator
	d.Path, d.Input.Proposal, d.Result = PathProposal, c.cutProposal(s.Proposal, s.Analysis),
		resultOf(s.Decision, s.Approved)
	if err := t.emitDecision(d, c); err != nil {
		return err
	}
	for i, command := range s.Analysis.Commands {
		said, any := commandResult(s.Decision, i)
		if !any {
			continue
		}
		d, c := t.newDecision(s, s.Entry, "c"+strconv.Itoa(i), SpanDecide, s.Decided), inputTruncator{}
		d.Path, d.Input.Command, d.Result = PathCommand, c.cutCommand(command), said
		if err := t.emitDecision(d, c); err != nil {
			return err
		}
	}
	return nil
}

// exportEvent exports the decisions in one event of the log.
func (t *emitter) exportEvent(s *Step, entry int64, i int, e proposal.Event, again bool) error {
	d, c := t.newDecision(s, entry, "e"+strconv.Itoa(i), SpanExecute, e.Time), inputTruncator{}
	d.Custom.Again = again
	switch {
	case e.Exec != nil && e.Decision != nil:
		if e.Kind != proposal.EventRefused && !e.Decision.Observed && !t.o.All {
			return nil
		}
		x := *e.Exec
		x.From = e.Program
		d.Path, d.Input.Exec = PathExec, c.cutExec(x)
		d.Result = newResult(e.Decision.Effect, e.Decision.Rules, e.Decision.Reason, e.Decision.Observed)
	case e.Flow != nil:
		d.Path, d.Input.Egress = PathEgress, c.cutEgress(e.Flow.Egress)
		d.Result = newResult(e.Flow.Decision.Effect, e.Flow.Decision.Rules, e.Flow.Decision.Reason,
			e.Flow.Decision.Observed)
		d.Result.Code = TruncateText(cmp.Or(e.Flow.Code, e.Flow.Verdict), maxName)
		d.Metrics = map[string]int64{"flow_wall_ms": e.Flow.WallMS, "flow_sent_bytes": e.Flow.Sent,
			"flow_received_bytes": e.Flow.Received}
		if e.Flow.Refused() {
			d.Result.Effect = gatewayRefusal(d.Result.Effect)
		}
	default:
		return nil
	}
	return t.emitDecision(d, c)
}

// gatewayRefusal returns the effect if the gateway itself refused after policy had allowed it.
func gatewayRefusal(effect string) string {
	if effect == Allow {
		return Deny
	}
	return effect
}

// exportFindings exports the findings about a command. They are numbered separately, under
// the decision's entry, so that a report gives them the same ids.
func (t *emitter) exportFindings(s *Step, at time.Time) error {
	if s.Result == nil || s.Result.Observations == nil {
		return nil
	}
	for i, f := range s.Result.Observations.Findings {
		d, c := t.newDecision(s, s.Entry, "f"+strconv.Itoa(i), SpanExecute, at), inputTruncator{}
		if !f.Event.Time.IsZero() {
			d.Timestamp = f.Event.Time.UTC()
		}
		d.Path, d.Input.Event = PathEvent, c.cutEvent(f.Event)
		d.Result = Result{Effect: Note, Rules: truncateTexts([]string{f.Rule}, maxName),
			Reasons: truncateReasons([]proposal.Reason{{Rule: f.Rule, Effect: proposal.Allow, Message: f.Message,
				Command: -1}})}
		if err := t.emitDecision(d, c); err != nil {
			return err
		}
	}
	return nil
}
