// SPDX-License-Identifier: Apache-2.0

package export

import (
	"time"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Report passes each decision in a report to each, and returns the run as a whole.
// A report has only the run's times: every decision has the time of the run's
// start, and the Story is Estimated.
func Report(r proposal.Report, o Options, each func(Decision) error) (Story, error) {
	t := emitter{o: o, each: each}
	var entries int64
	if a := r.Audit; a != nil {
		t.key, t.checkpoint, entries = a.Key, a.Checkpoint, a.Entries
	}
	t.setRun(r.Run)
	at := r.Run.Start
	story := Story{Run: r.Run, Begin: at, End: at.Add(millisecondsToDuration(r.Run.WallMS)), Totals: &r.Totals,
		Error: r.Error, Estimated: true}
	for i, x := range r.Records {
		if x.Entry < 0 { // there was no log
			x.Entry = int64(i) + 1
		}
		s := Step{Entry: x.Entry, Proposal: x.Proposal, Analysis: x.Analysis, Decision: x.Decision,
			Approved: x.Approved(),
			Result:   x.Result, Begun: r.Run.Start, Decided: r.Run.Start}
		if x.Result != nil && x.Result.Status != proposal.NotRun && x.Result.Cached == nil {
			s.Started, s.Ended = at, at.Add(millisecondsToDuration(x.Result.WallMS))
			at = s.Ended
		}
		story.Steps = append(story.Steps, s)
		if err := t.exportDecisions(&s); err != nil {
			return story, err
		}
		if err := t.exportFindings(&s, s.Done()); err != nil {
			return story, err
		}
	}
	if story.End.Before(at) {
		story.End = at
	}
	return story, t.exportRunEnd(story, entries, story.End)
}

func millisecondsToDuration(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// TriggerDecision returns the decision about a trigger, which is in no log. id is its
// permanent id, for example "OWNER/NAME/comments/ID".
func TriggerDecision(
	id string, asked points.Trigger, d proposal.Decision, run proposal.Run, o Options, at time.Time,
) Decision {
	run.ID = id
	t := emitter{o: o}
	t.setRun(run)
	var out Decision
	t.each = func(x Decision) error { out = x; return nil }
	x, c := t.newDecision(&Step{}, -1, "", SpanRun, at), inputTruncator{}
	x.DecisionID, x.RequestedBy, x.Custom.Run = TruncateText(id, maxName), TruncateText(asked.Actor.Login, maxName), ""
	x.Path, x.Input.Trigger, x.Result = PathTrigger, c.cutTrigger(asked), resultOf(d, false)
	_ = t.emitDecision(x, c) // this each never fails
	out.Custom.Sequence = 0
	return out
}
