// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var fullSHA = pattern.New(`^[0-9a-f]{40}$|^[0-9a-f]{64}$`)

// subjectLine returns a line about the code of the page and where the reports are, as HTML.
func (p Page) subjectLine(l detailLevel) string {
	if len(p.Parts) == 0 {
		return "There is no information about a run."
	}
	run := p.Parts[0].Report.Run
	var what []string
	if sha := p.distinctValues(func(r proposal.Run) string { return r.HeadSHA }); len(sha) > 0 {
		what = append(what, "commit "+showSeveral(sha, commitName))
	}
	if run.PR > 0 {
		what = append(what, fmt.Sprintf("pull request %d", run.PR))
	}
	what = append(what, p.firstLineFacts(len(what) == 0)...)
	if p.longestWall() > 0 || len(p.allRecords()) > 0 {
		took := "took " + formatMilliseconds(p.longestWall())
		if base := p.baseWall(); base > 0 {
			took += ", of which " + formatMilliseconds(base) + " on the base"
		}
		what = append(what, took)
	}
	if where := p.reportLocation(); where != "" {
		what = append(what, "full output and audit log: "+where)
	}
	if len(what) == 0 {
		what = []string{"There is no information about a run."}
	}
	return upperFirst(strings.Join(what, " · "))
}

// policyLines has lines about the policy, what was enforced, and the audit log.
func (p Page) policyLines(l detailLevel) []string {
	var lines []string
	if by := p.distinctValues(func(r proposal.Run) string { return r.Policy }); len(by) > 0 {
		lines = append(lines, "Policy "+showSeveral(by, shortDigest)+p.policyFrom())
	}
	return append(lines, p.evidenceLines(l)...)
}

// policyFrom returns where the repository's own rules were read.
func (p Page) policyFrom() string {
	if p.PolicyFrom == "" {
		return ""
	}
	return " · repository's rules: " + formatCode(p.PolicyFrom, 300)
}

// firstLineFacts returns the labelled parts of the first line.
func (p Page) firstLineFacts(alone bool) []string {
	var list []string
	for _, f := range []struct {
		name string
		get  func(proposal.Run) string
		show bool
	}{
		{"from fork", func(r proposal.Run) string { return r.Fork }, true},
		{"workspace", func(r proposal.Run) string { return r.Workspace }, alone},
		{"proposed by", func(r proposal.Run) string { return r.Proposer }, true},
		{"approved by", approverName, true},
	} {
		if values := p.distinctValues(f.get); f.show && len(values) > 0 {
			list = append(list, f.name+" "+showSeveral(values, func(s string) string { return formatCode(s, 60) }))
		}
	}
	return list
}

func approverName(r proposal.Run) string {
	if r.Approval == nil {
		return ""
	}
	return r.Approval.By
}

// evidenceLines shows the result of verifying the audit log. The pull request's own run has the
// key of its log, so that its log proves only that nothing in it is missing.
func (p Page) evidenceLines(l detailLevel) []string {
	var lines []string
	for _, a := range p.gatherStatements(func(part Part) []string { return nonEmptyList(part.Audit) }) {
		if p.Parts[a.parts[0]].Foreign {
			lines = append(lines, "Audit log, which that run wrote and signed itself: "+p.partNames(a.parts)+
				formatProse(quoteCode(a.text), l.long))
		} else {
			lines = append(lines, "Audit log: "+p.partNames(a.parts)+formatProse(a.text, l.long))
		}
		if len(lines) == l.list {
			break
		}
	}
	return lines
}

func nonEmptyList(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// longestWall is the duration of the longest part: parts run in parallel.
func (p Page) longestWall() int64 {
	var longest int64
	for _, part := range p.Parts {
		longest = max(longest, part.Report.Run.WallMS)
	}
	return longest
}

// distinctValues returns the distinct values of the parts' runs, except for "".
func (p Page) distinctValues(get func(proposal.Run) string) []string {
	var list []string
	for _, part := range p.Parts {
		if v := get(part.Report.Run); v != "" && !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

// severalOf is showSeveral for any values.
func severalOf[T any](values []T, show func(T) string) string {
	var list []string
	for i, v := range values {
		if i == 3 {
			list = append(list, fmt.Sprintf("%d more", len(values)-3))
			break
		}
		list = append(list, show(v))
	}
	return strings.Join(list, ", ")
}

// showSeveral shows up to three values of a fact on which the parts should agree.
func showSeveral(values []string, show func(string) string) string {
	return severalOf(values, show)
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
