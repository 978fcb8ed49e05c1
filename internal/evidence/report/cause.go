// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/internal/kit/valid"
	"github.com/fumehood/fumehood/internal/watch/baseline"
	"github.com/fumehood/fumehood/internal/watch/diagnose"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxReason is the maximum length of a Cause's reason in Markdown: it may have a path and a range of
// versions.
const maxReason = 300

// configFile is where the lines of a Cause belong.
const configFile = ".github/fumehood.yml"

// checkCauses checks that each cause of an untrusted report is of the kind that its record
// gives. A record without one is accepted: it counts as failed.
func (p *reportChecker) checkCauses(records []proposal.Record, unmet []proposal.Unmet) {
	if !slices.ContainsFunc(records, func(r proposal.Record) bool { return r.Cause != nil }) {
		return
	}
	for i, r := range diagnose.DiagnoseRecords(records, unmet) {
		given := records[i].Cause
		p.requireThat(given == nil || r.Cause != nil && r.Cause.Kind == given.Kind, fmt.Sprintf("records[%d].cause", i),
			"is not what the record gives")
	}
}

// checkBase checks what ran on the base, and that a failure is only excused if its records say so: if the
// output is withheld, by how both runs ended. A record that lacks its comparison is accepted: it
// counts as failed.
func (p *reportChecker) checkBase(r proposal.Report) {
	if r.Base != nil {
		p.requireThat(!r.Run.Session, "base", "is in the report of a session")
		p.matchGrammar(fullSHA, r.Base.Commit, "base.commit", false)
		p.checkCounts("base.wall_ms", r.Base.WallMS)
		p.onBase = true
		for i, rec := range r.Base.Records {
			path := fmt.Sprintf("base.records[%d]", i)
			id, ok := baseline.CommandID(rec.Proposal.ID)
			at := slices.IndexFunc(r.Records, func(head proposal.Record) bool { return head.Proposal.ID == id })
			p.requireThat(ok && at >= 0, path+".proposal.id", "is not that of a command")
			p.requireThat(rec.Base == nil && rec.Approval == nil && rec.ClientApproval == nil, path,
				"is not a record of the base")
			p.checkRecord(rec, path, r)
		}
		p.onBase = false
	}
	if p.first != nil || !slices.ContainsFunc(r.Records, func(rec proposal.Record) bool { return rec.Base != nil }) {
		return
	}
	again := baseline.CompareRecords(r.Records, r.Base, r.Run.Unmet)
	for i, rec := range r.Records {
		if b := rec.Base; b != nil {
			path := fmt.Sprintf("records[%d].base", i)
			p.oneOf(b.Verdict, path+".verdict", proposal.BaseSame, proposal.BasePasses, proposal.BaseNew,
				proposal.BaseDifferent, proposal.BaseUnknown)
			p.checkCounts(path, int64(b.Omitted), int64(b.Old))
			p.requireThat(len(b.New) <= valid.MaxNew, path+".new", "has too many names")
			follows := again[i].Base != nil && again[i].Base.Verdict == proposal.BaseSame
			p.requireThat(b.Verdict != proposal.BaseSame || follows, path, "is not what the records give")
		}
	}
}

// withCauses returns p with the causes that may be shown: those of a foreign report are
// computed again, and those of a withheld one quote nothing that a command printed.
func (p Page) withCauses() Page {
	if p.trusted {
		return p
	}
	p.Parts, p.trusted = slices.Clone(p.Parts), true
	for i, part := range p.Parts {
		p.Parts[i].Report.Records = trustedCauses(part.Report, part.Foreign)
	}
	return p
}

func trustedCauses(r proposal.Report, foreign bool) []proposal.Record {
	if !slices.ContainsFunc(r.Records, func(rec proposal.Record) bool { return rec.CouldNotRun() || rec.Base != nil }) {
		return r.Records
	}
	list := slices.Clone(r.Records)
	var again []proposal.Record
	if foreign {
		again = diagnose.DiagnoseRecords(list, r.Run.Unmet)
	}
	for i := range list {
		if r.Withheld != nil {
			list[i].Base = list[i].Base.Unnamed()
		}
		switch c := list[i].Cause; {
		case c == nil:
		case r.Withheld != nil:
			list[i].Cause = &proposal.Cause{Kind: c.Kind, Reason: c.Reason, After: c.After}
		case foreign:
			list[i].Cause = again[i].Cause
		}
	}
	return list
}

// A causeGroup is a reason with the commands that could not run for it.
type causeGroup struct {
	reason                   string
	said                     string // by the set-up command that failed, "" for none
	n                        int
	subjects, config, advice []string
}

// causeGroups lists the reasons, in order of their first command.
func causeGroups(records []proposal.Record) []causeGroup {
	var groups []causeGroup
	at := map[string]int{}
	for _, r := range records {
		if !r.CouldNotRun() {
			continue
		}
		c := *r.Cause
		key := c.Kind + "\x00" + c.Reason
		i, known := at[key]
		if !known {
			i = len(groups)
			at[key], groups = i, append(groups, causeGroup{reason: c.Reason})
		}
		g := &groups[i]
		if g.n++; g.said == "" && r.Proposal.Origin == proposal.OriginSetup {
			g.said = c.Evidence
		}
		g.config = mergeConfig(g.config, c.Config)
		g.subjects = distinctStrings(append(g.subjects, nonEmptyList(c.Subject)...))
		g.advice = distinctStrings(append(g.advice, nonEmptyList(c.Advice)...))
	}
	return groups
}

// mergeConfig adds lines to a configuration. The items of a list that is there already,
// "registries: [npm]", are added to it.
func mergeConfig(config, lines []string) []string {
	for _, line := range lines {
		name, item, isList := strings.Cut(strings.TrimSuffix(line, "]"), ": [")
		i := slices.IndexFunc(config, func(have string) bool { return isList && strings.HasPrefix(have, name+": [") })
		switch {
		case i < 0 && !slices.Contains(config, line):
			config = append(config, line)
		case i >= 0 && !slices.Contains(strings.Split(strings.TrimSuffix(config[i][len(name)+3:], "]"), ", "), item):
			config[i] = strings.TrimSuffix(config[i], "]") + ", " + item + "]"
		}
	}
	return config
}

// causeLines has a line for each reason why commands could not run, and what to do.
func (p Page) causeLines(l detailLevel) []string {
	var lines []string
	groups := causeGroups(p.allRecords())
	for i, g := range groups {
		if i == l.list {
			return append(lines, fmt.Sprintf("➖ <b>%d more reasons.</b> Details below.", len(groups)-i))
		}
		one := ""
		if g.n > 1 {
			one = " for one reason"
		}
		s := fmt.Sprintf("➖ <b>%s could not run%s: %s.</b>", countCommands(g.n), one, formatProse(g.reason, maxReason))
		if len(g.subjects) > 0 {
			s += " Missing: " + showSeveral(g.subjects, func(s string) string { return formatCode(s, l.short) }) + "."
		}
		if g.said != "" {
			s += "<br>Set-up says: " + formatCode(g.said, l.long)
		}
		lines = append(lines, s+fixAdvice(g.config, g.advice, l))
	}
	return lines
}

// fixAdvice says what to do about a cause.
func fixAdvice(config, advice []string, l detailLevel) string {
	s := ""
	if len(config) > 0 {
		s = "<br><b>To fix it,</b> add to " + formatCode(configFile, 60) + ": " +
			showSeveral(config, func(s string) string { return formatCode(s, l.short+60) }) + "."
	}
	for _, words := range advice[:min(len(advice), 3)] {
		s += "<br>" + formatProse(words, l.long)
	}
	return s
}

// causeItems describes why a command could not run, as items of a list.
func causeItems(r proposal.Record, l detailLevel) []string {
	if !r.CouldNotRun() {
		if words := differenceOf(r); words != "" {
			return []string{"<li>" + formatProse(words, l.long) + "</li>"}
		}
		return nil
	}
	c := *r.Cause
	s := "<li>could not run: " + formatProse(c.Reason, maxReason)
	if c.After != "" { // which says the rest
		return []string{s + ", see " + formatCode(c.After, l.short) + "</li>"}
	}
	if c.Subject != "" {
		s += ": " + formatCode(c.Subject, l.short)
	}
	if c.Evidence != "" {
		s += "<br>The output says: " + formatCode(c.Evidence, l.long)
	}
	return []string{s + fixAdvice(c.Config, nonEmptyList(c.Advice), l) + "</li>"}
}

// differenceOf returns the hint that a failure may be one of gVisor's, or "".
func differenceOf(r proposal.Record) string {
	words := diagnose.GVisorDifference(r)
	if words == "" {
		return ""
	}
	return "This may be a known difference of gVisor from Linux: " + words + "."
}

// causePlain is causeItems for a terminal.
func causePlain(r proposal.Record) []string {
	if !r.CouldNotRun() {
		return nonEmptyList(differenceOf(r))
	}
	c := *r.Cause
	var lines []string
	switch {
	case c.After != "" && r.Result != nil && strings.Contains(r.Result.Detail, c.After):
		return nil
	case c.After != "": // which says the rest
		return []string{"see " + text.Inline(c.After, 60)}
	}
	if c.Subject != "" {
		lines = append(lines, "missing: "+text.Inline(c.Subject, 100))
	}
	if len(c.Config) > 0 {
		lines = append(lines, "to fix it, add to "+configFile+": "+text.Inline(strings.Join(c.Config, ", "), 300))
	}
	if c.Advice != "" {
		lines = append(lines, text.Inline(c.Advice, 300))
	}
	return lines
}
