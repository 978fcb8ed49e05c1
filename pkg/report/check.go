// SPDX-License-Identifier: Apache-2.0

package report

import "strings"

// A Check is what a check run says of a Page.
type Check struct {
	Conclusion string // "success", "failure", "neutral", "action_required" or "cancelled"
	Title      string // one line of plain text
	Summary    string // Markdown
}

// maxCheck is the most characters that GitHub takes as a check run's summary.
const maxCheck = 65535

// Check returns p for a check run.
//
// It fails when fumehood stopped, when a command was denied, and when an allowed
// one did not succeed. It asks for action when nothing is wrong but that commands
// wait for an approval, and is neutral when nothing was proposed. It never succeeds
// on a report that a stranger may have written or that was not confirmed: then it
// is neutral and its title says so.
func (p Page) Check() Check {
	p.Limit = maxCheck
	title := strings.TrimPrefix(p.heading(), "## ")
	switch {
	case p.doubted():
		title += " (not confirmed)"
	case p.foreign():
		title += " (self-reported)"
	}
	return Check{Conclusion: p.conclusion(), Title: title, Summary: p.Body()}
}

func (p Page) conclusion() string {
	counts := countKinds(p.records())
	switch {
	case p.end() == endCancelled:
		return "cancelled"
	case p.end() != endWhole, counts[failed]+counts[broken]+counts[denied]+counts[notRun] > 0:
		return "failure"
	case counts[asked] > 0:
		return "action_required"
	case counts[succeeded] > 0 && !p.foreign() && !p.doubted():
		return "success"
	}
	return "neutral"
}
