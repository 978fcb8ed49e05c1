// SPDX-License-Identifier: Apache-2.0

package report

// A Check is a Page as the content of a check run.
type Check struct {
	Conclusion string // "success", "failure", "neutral", "action_required" or "cancelled"
	Title      string // one line of plain text
	Summary    string // Markdown
}

// maxCheck is the maximum length of a check run's summary on GitHub, in characters.
const maxCheck = 65535

// Check returns p for a check run.
//
// The conclusion is failure if fumehood stopped, a command was denied, or an
// allowed one did not succeed. It is action_required if the only issue is that
// commands wait for an approval, and neutral if nothing was proposed, or if commands
// could not run for a reason that is not the pull request's, or fail on its base in the same
// way, and nothing else failed.
//
// It is never success for a report that is untrusted or that was not confirmed, nor if a command tried to start
// or to reach something that was refused, a program's failure was hidden, policy reported a finding, the
// observations are incomplete, or a command was run again after a crash. In these cases it is neutral and the
// title gives the reason.
func (p Page) Check() Check {
	p = p.withCauses()
	p.Limit = maxCheck
	title := p.plainTitle()
	if p.hasDoubts() {
		title += " (not confirmed)"
	}
	if odd := p.unusualReason(); odd != "" && odd != hiding {
		title += " (" + odd + ")"
	}
	return Check{Conclusion: p.checkRunConclusion(), Title: title, Summary: p.Body()}
}

// unusualReason returns the reason, in a few words, why the result is not a plain success.
func (p Page) unusualReason() string {
	hidden, refused, barred, findings, gaps, twice := false, false, false, false, false, false
	for _, r := range p.allRecords() {
		hidden = hidden || hidesFailure(r)
		twice = twice || firstAttempt(r) != nil
		if o := observationsOf(r); o != nil {
			refused, barred = refused || o.Counts.Refused > 0, barred || o.Counts.NetRefused > 0
			findings, gaps = findings || len(o.Findings) > 0, gaps || !o.Complete
		}
	}
	switch {
	case hidden:
		return hiding
	case refused:
		return "programs refused"
	case barred:
		return "network refused"
	case findings:
		return "findings"
	case gaps:
		return "incomplete recording"
	case twice:
		return "rerun after a crash"
	}
	return ""
}

func (p Page) checkRunConclusion() string {
	counts := countKinds(p.allRecords())
	switch {
	case p.worstEnd() == endCancelled:
		return "cancelled"
	case p.worstEnd() != endWhole, counts[failed]+counts[broken]+counts[denied]+counts[notRun] > 0:
		return "failure"
	case counts[asked] > 0:
		return "action_required"
	case counts[unable]+counts[before] > 0:
		return "neutral"
	case counts[succeeded] > 0 && !p.hasForeignPart() && !p.hasDoubts() && p.unusualReason() == "":
		return "success"
	}
	return "neutral"
}
