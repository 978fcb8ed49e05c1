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

// subject returns a line about the code of the page and where the reports are, as HTML.
func (p Page) subject(l level) string {
	if len(p.Parts) == 0 {
		return "There is no information about a run."
	}
	run := p.Parts[0].Report.Run
	var what []string
	if sha := p.each(func(r proposal.Run) string { return r.HeadSHA }); len(sha) > 0 {
		what = append(what, "commit "+several(sha, commit))
	}
	if run.PR > 0 {
		what = append(what, fmt.Sprintf("pull request %d", run.PR))
	}
	what = append(what, p.facts(len(what) == 0)...)
	if p.wall() > 0 || len(p.records()) > 0 {
		took := "took " + milliseconds(p.wall())
		if base := p.baseWall(); base > 0 {
			took += ", of which " + milliseconds(base) + " on the base"
		}
		what = append(what, took)
	}
	if where := p.location(); where != "" {
		what = append(what, "full output and audit log: "+where)
	}
	if len(what) == 0 {
		what = []string{"There is no information about a run."}
	}
	return upper(strings.Join(what, " · "))
}

// grounds has lines about the policy, what was enforced, and the audit log.
func (p Page) grounds(l level) []string {
	var lines []string
	if by := p.each(func(r proposal.Run) string { return r.Policy }); len(by) > 0 {
		lines = append(lines, "Policy "+several(by, short)+p.policyFrom())
	}
	return append(lines, p.evidence(l)...)
}

// policyFrom returns where the repository's own rules were read.
func (p Page) policyFrom() string {
	if p.PolicyFrom == "" {
		return ""
	}
	return " · repository's rules: " + code(p.PolicyFrom, 300)
}

// facts returns the labelled parts of the first line.
func (p Page) facts(alone bool) []string {
	var list []string
	for _, f := range []struct {
		name string
		get  func(proposal.Run) string
		show bool
	}{
		{"from fork", func(r proposal.Run) string { return r.Fork }, true},
		{"workspace", func(r proposal.Run) string { return r.Workspace }, alone},
		{"proposed by", func(r proposal.Run) string { return r.Proposer }, true},
		{"approved by", approver, true},
	} {
		if values := p.each(f.get); f.show && len(values) > 0 {
			list = append(list, f.name+" "+several(values, func(s string) string { return code(s, 60) }))
		}
	}
	return list
}

func approver(r proposal.Run) string {
	if r.Approval == nil {
		return ""
	}
	return r.Approval.By
}

// evidence shows the result of verifying the audit log. The pull request's own run has the
// key of its log, so that its log proves only that nothing in it is missing.
func (p Page) evidence(l level) []string {
	var lines []string
	for _, a := range p.gather(func(part Part) []string { return nonempty(part.Audit) }) {
		if p.Parts[a.parts[0]].Foreign {
			lines = append(lines, "Audit log, which that run wrote and signed itself: "+p.names(a.parts)+prose(quote(a.text), l.long))
		} else {
			lines = append(lines, "Audit log: "+p.names(a.parts)+prose(a.text, l.long))
		}
		if len(lines) == l.list {
			break
		}
	}
	return lines
}

func nonempty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// wall is the duration of the longest part: parts run in parallel.
func (p Page) wall() int64 {
	var longest int64
	for _, part := range p.Parts {
		longest = max(longest, part.Report.Run.WallMS)
	}
	return longest
}

// each returns the distinct values of the parts' runs, except for "".
func (p Page) each(get func(proposal.Run) string) []string {
	var list []string
	for _, part := range p.Parts {
		if v := get(part.Report.Run); v != "" && !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

// severalOf is several for any values.
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

// several shows up to three values of a fact on which the parts should agree.
func several(values []string, show func(string) string) string {
	return severalOf(values, show)
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
