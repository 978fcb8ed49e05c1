// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"path"
	"slices"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/internal/watch/baseline"
	"github.com/fumehood/fumehood/internal/watch/diagnose"
	"github.com/fumehood/fumehood/internal/watch/failure"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// failsBefore is the outcome of a command that fails on the base of the pull request, too.
const failsBefore = "fails before this pull request, too"

// baseCommit is the short name of the base of r's pull request.
func baseCommit(r proposal.Report) string {
	if r.Base == nil {
		return "the base"
	}
	if fullSHA.MatchString(r.Base.Commit) {
		return r.Base.Commit[:7]
	}
	return text.Inline(r.Base.Commit, 40)
}

// baseWords says what the base shows about rec, a command of r that failed, or "". show makes
// names presentable, and say words.
func baseWords(r proposal.Report, rec proposal.Record, show, say func(string) string) string {
	b := rec.Base
	if b == nil || rec.CouldNotRun() {
		return ""
	}
	on := show(baseCommit(r))
	switch b.Verdict {
	case proposal.BaseSame:
		if b.After != "" {
			return "it needs " + show(b.After) + ", which fails on " + on + ", too"
		}
		return "fails in the same way on " + on + tookOnBase(r, rec)
	case proposal.BasePasses:
		return "passes on " + on + tookOnBase(r, rec)
	case proposal.BaseNew:
		s := fmt.Sprintf("fails here and not on %s: %s", on,
			severalOf(slices.Concat(b.New, make([]string, b.Omitted)), show))
		if b.Old > 0 {
			s += fmt.Sprintf(" (failing on both: %d)", b.Old)
		}
		return s
	case proposal.BaseDifferent:
		return "also fails on " + on + ", but in another way: " + say(b.Why)
	}
	return "not compared with " + on + ": " + say(b.Why)
}

// tookOnBase returns the time that rec took on the base, as text that follows a commit.
func tookOnBase(r proposal.Report, rec proposal.Record) string {
	if on := onBase(r, rec); on != nil && on.Result != nil {
		return " (" + formatMilliseconds(on.Result.WallMS) + ")"
	}
	return ""
}

// onBase returns the record of rec's run on the base, or nil.
func onBase(r proposal.Report, rec proposal.Record) *proposal.Record {
	if r.Base == nil || rec.Base == nil {
		return nil
	}
	id := baseline.RunID(rec.Proposal.ID)
	if i := slices.IndexFunc(r.Base.Records, func(b proposal.Record) bool { return b.Proposal.ID == id }); i >= 0 {
		return &r.Base.Records[i]
	}
	return nil
}

// onlyNew returns found, what rec reports, without what it reports on the base, too, if some of its
// failures are known to be new.
func (p Page) onlyNew(r proposal.Report, rec proposal.Record, found []proposal.Diagnostic) []proposal.Diagnostic {
	on := onBase(r, rec)
	if on == nil || rec.Base.Verdict != proposal.BaseNew {
		return found
	}
	mine, theirs := comparableResults(rec, *on)
	if fresh := withoutKnown(failuresOf(r, mine, p.tree), failuresOf(r, theirs, p.tree)); len(fresh) > 0 {
		return fresh
	}
	// What is new can be in a list that is not the runner's last, which only the comparison reads.
	if fresh := withoutKnown(everyFailure(r, mine, p.tree), everyFailure(r, theirs, p.tree)); len(fresh) > 0 {
		return fresh
	}
	return found
}

// comparableResults returns both records with what can be compared of their results.
func comparableResults(rec, on proposal.Record) (proposal.Record, proposal.Record) {
	if rec.Result != nil && on.Result != nil {
		head, base := baseline.KeepComparable(*rec.Result, *on.Result)
		rec.Result, on.Result = &head, &base
	}
	return rec, on
}

// everyFailure returns each failure that the output of rec reports.
func everyFailure(r proposal.Report, rec proposal.Record, tree *failure.Tree) []proposal.Diagnostic {
	list := failure.Diagnostics(shownResult(r, rec),
		failure.Options{Cwd: path.Join(r.Run.Cwd, rec.Proposal.Cwd), Tree: tree, GoModules: r.Run.GoModules,
			Every: true})
	return slices.DeleteFunc(list, func(d proposal.Diagnostic) bool { return d.Level != failure.Error })
}

// withoutKnown returns found without the tests that known has, and without other reports that known
// has of the same file with the same words: lines move.
func withoutKnown(found, known []proposal.Diagnostic) []proposal.Diagnostic {
	return slices.DeleteFunc(slices.Clone(found), func(d proposal.Diagnostic) bool {
		return slices.ContainsFunc(known, func(k proposal.Diagnostic) bool {
			if d.Test != "" || k.Test != "" {
				return k.Suite == d.Suite && k.Test == d.Test
			}
			return k.File == d.File && failure.FormatLine(k) == failure.FormatLine(d)
		})
	})
}

// baseOutputs returns the outputs of rec's run on the base.
func baseOutputs(r proposal.Report, rec proposal.Record, record, limit int, packed bool) []*output {
	on := onBase(r, rec)
	if on == nil {
		return nil
	}
	list := measureOutputs(shownResult(r, *on), record, limit, packed)
	for _, o := range list {
		o.setLabel("base " + o.name)
	}
	return list
}

// oldToolchain says that rec failed because the toolchain is too old for the change, and what to do, or "".
func oldToolchain(r proposal.Report, rec proposal.Record) string {
	if kindOf(rec) != failed {
		return ""
	}
	return diagnose.OldToolchain(rec, r.Run.Unmet)
}

// basePlain is baseWords for a terminal, as lines.
func basePlain(r proposal.Report, rec proposal.Record) []string {
	plain := func(s string) string { return text.Inline(s, 300) }
	return append(nonEmptyList(baseWords(r, rec, plain, plain)), nonEmptyList(oldToolchain(r, rec))...)
}

// baseWall is the time that the commands on the base took, in milliseconds.
func (p Page) baseWall() (ms int64) {
	for _, part := range p.Parts {
		if b := part.Report.Base; b != nil {
			ms = max(ms, b.WallMS)
		}
	}
	return ms
}

// baseItems is baseWords for a command in a fold, as items of a list.
func baseItems(r proposal.Report, rec proposal.Record, l detailLevel) []string {
	if kindOf(rec) != before {
		return nil
	}
	return []string{"<li>" + baseHTML(r, rec, l) + "</li>"}
}

func baseHTML(r proposal.Report, rec proposal.Record, l detailLevel) string {
	return baseWords(r, rec, func(s string) string { return formatCode(s, l.short+60) },
		func(s string) string { return formatProse(s, l.long) })
}
