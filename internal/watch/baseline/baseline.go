// SPDX-License-Identifier: Apache-2.0

// Package baseline compares the failure of a command on a pull request's code with its run on
// the base of the pull request.
//
// It is pure: no I/O, and the same two records give the same Comparison. Package order compares what
// it ran; a reader of a report compares again.
//
// # Promises
//
// Two failures are the same only if nothing speaks against it. Both runs were allowed, ended by
// themselves with the same exit code or signal, were not run a second time, and have their
// complete output. If both name failures, such as tests or the reports of a compiler, the base names
// each that the pull request's code names, and has its last lines, too, except for numbers that count no
// failures, and each document of JSON that it prints, except for tests that pass and times in the report of a
// test runner. If neither does, or a Go test is named without anything that it says, the pull request's code
// printed no line that the base did not print, and ended with the base's last line. What differs from run to run
// does not count, in the form in which runners, compilers and loggers print it: names of temporary files and of
// logs, the time at which a line was logged, what a run took, progress, numbers of processes, addresses in
// memory, ports that a kernel gave on this machine, seeds, the place of a line. Elsewhere, each time and each
// number counts: it may be what the failure is about.
//
// A command whose output goes through a program that shows a part of it, as tail does, is not compared.
//
// In every other case, including each doubt, the failure stays the pull request's.
//
// # Limits
//
// Code of the pull request prints what it likes. A new failure that ends with the same exit code
// and prints nothing that the base does not print, or hides the name of its test in a suite that
// failed before, looks like the old one. It gains little: the same code could exit with 0.
package baseline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/valid"
	"github.com/fumehood/fumehood/internal/watch/diagnose"
	"github.com/fumehood/fumehood/internal/watch/failure"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// IsComparable reports whether a run of r on the base can show anything: policy allowed r without
// asking, it failed by itself with its complete output, and that is neither expected nor explained.
// What this machine lacks explains nothing if r succeeds without it on the base.
func IsComparable(r proposal.Record) bool { return isUnexplained(r) && whyIncomplete(*r.Result) == "" }

// IsIncomplete reports whether r would be Comparable if everything that it did were known.
func IsIncomplete(r proposal.Record) bool { return isUnexplained(r) && whyIncomplete(*r.Result) != "" }

func isUnexplained(r proposal.Record) bool {
	return r.Proposal.Origin == "" && r.Decision.Effect == proposal.Allow && r.Result != nil &&
		r.Result.EndedByItself() &&
		(r.Cause == nil || diagnose.IsOfMachine(*r.Cause)) && !r.Proposal.ExpectsFailure()
}

// whyIncomplete returns why a result is no account of everything that the command did, or "".
func whyIncomplete(r proposal.Result) string {
	switch o := r.Observations; {
	case r.Cached != nil:
		return "its result is from another run"
	case r.Retried != nil:
		return "it was run a second time after a crash"
	case o != nil && !o.Complete:
		return "what it did was not recorded completely"
	case r.Stdout.Truncated || r.Stderr.Truncated:
		return "its output is too long"
	case r.Stdout.Withheld != "" || r.Stderr.Withheld != "":
		return "its output is withheld"
	}
	return ""
}

// Compare compares head, which is Comparable, with base, the run of the same command on the
// base. base must have its Cause.
func Compare(head, base proposal.Record) proposal.Comparison {
	unknown := func(why string) proposal.Comparison {
		return proposal.Comparison{Verdict: proposal.BaseUnknown, Why: why}
	}
	if !IsComparable(head) {
		return unknown("the failure cannot be compared")
	}
	if why := whyUnfit(base); why != "" {
		return unknown(why)
	}
	if base.Result.Succeeded() {
		return proposal.Comparison{Verdict: proposal.BasePasses}
	}
	printed, written := compareNames(withoutFiles(*head.Result), withoutFiles(*base.Result)),
		compareNames(onlyFiles(*head.Result, *base.Result))
	switch {
	case printed.isNew() && written.isNew():
		printed.addFresh(written.fresh)
		return printed.comparison()
	case printed.isNew():
		return printed.comparison()
	case written.isNew():
		return written.comparison()
	}
	why := howDiffers(*head.Result, *base.Result, printed.here, printed.there, printed.isVague)
	if why == "" && len(written.here) > 0 != (len(written.there) > 0) {
		why = "its test runner's files name failures only on one side"
	}
	if why != "" {
		return proposal.Comparison{Verdict: proposal.BaseDifferent, Why: why}
	}
	if hasCutFiles(*head.Result) || hasCutFiles(*base.Result) {
		return unknown("its test runner's files are too long, or cannot be read to the end")
	}
	if why := whyUnseen(head, len(printed.here)+len(written.here) > 0); why != "" {
		return unknown(why)
	}
	return proposal.Comparison{Verdict: proposal.BaseSame}
}

// KeepComparable returns both results of a command with what can be compared: without what the files of test
// runners say, unless both have all of it. Runners name a test in another way in a file.
func KeepComparable(head, base proposal.Result) (h, b proposal.Result) {
	if failure.HasResults(head.TestResults) && failure.HasResults(base.TestResults) {
		return head, base
	}
	return withoutFiles(head), withoutFiles(base)
}

// onlyFiles returns both results with nothing but what the files of test runners say. They are
// empty if that of the base is incomplete: a name that it does not have could still have failed.
func onlyFiles(head, base proposal.Result) (h, b proposal.Result) {
	if !hasCutFiles(base) {
		h.TestResults, b.TestResults = head.TestResults, base.TestResults
	}
	return h, b
}

// hasCutFiles reports whether not everything is known that the files of test runners say.
func hasCutFiles(r proposal.Result) bool {
	return r.TestResults.Bytes > 0 && !failure.HasResults(r.TestResults)
}

func withoutFiles(r proposal.Result) proposal.Result {
	r.TestResults = proposal.Stream{}
	return r
}

// A nameSet is what both runs of a command name as failing.
type nameSet struct {
	here, there, fresh []string
	old                int
	isVague            bool // see failingTests, of the pull request's code
}

func compareNames(head, base proposal.Result) nameSet {
	var s nameSet
	s.here, s.isVague = failingTests(head)
	s.there, _ = failingTests(base)
	s.fresh, s.old = splitKnown(s.here, s.there)
	return s
}

// isNew reports whether some failures are known from the base and others are not.
func (s nameSet) isNew() bool { return len(s.fresh) > 0 && len(s.there) > 0 }

// addFresh adds names of files, except for those that end like a name of the output.
func (s *nameSet) addFresh(names []string) {
	known := s.fresh
	for _, name := range names {
		last := name[strings.LastIndexByte(name, ' ')+1:]
		if !slices.ContainsFunc(known, func(k string) bool { return strings.HasSuffix(k, last) }) {
			s.fresh = append(s.fresh, name)
		}
	}
}

func (s nameSet) comparison() proposal.Comparison {
	c := proposal.Comparison{Verdict: proposal.BaseNew, Omitted: max(0, len(s.fresh)-valid.MaxNew), Old: s.old}
	for _, name := range s.fresh[:len(s.fresh)-c.Omitted] {
		c.New = append(c.New, strings.ToValidUTF8(name[:min(len(name), maxNewName)], ""))
	}
	return c
}

// whyUnfit returns why the run on the base shows nothing, or "".
func whyUnfit(r proposal.Record) string {
	switch {
	case r.Decision.Effect != proposal.Allow || !r.Runnable():
		return "policy does not allow it there"
	case r.Result == nil:
		return "it did not run there"
	case runsGit(r):
		return "it runs git, and the base is only files, without a repository"
	case r.CouldNotRun():
		return "it could not run there: " + r.Cause.Reason
	case r.Result.Status == proposal.NotRun && r.Result.Detail != "":
		return "it did not run there: " + r.Result.Detail
	case r.Result.Succeeded():
		return ""
	case !r.Result.EndedByItself():
		return fmt.Sprintf("it did not end by itself there (%s)", r.Result.Outcome())
	}
	if why := whyIncomplete(*r.Result); why != "" {
		return why + " there"
	}
	return ""
}

// runsGit reports whether r started git. Where there is no repository, a check such as
// test -z "$(git status --porcelain)" succeeds, whatever the commit has.
func runsGit(r proposal.Record) bool {
	o := r.Result.Observations
	return o != nil && slices.ContainsFunc(o.Programs, func(p proposal.Program) bool { return p.Name == "git" })
}

// howDiffers returns how two failures without new names of tests differ, or "".
func howDiffers(head, base proposal.Result, here, there []string, isVague bool) string {
	switch {
	case head.Status != base.Status || head.ExitCode != base.ExitCode || head.Signal != base.Signal:
		return fmt.Sprintf("it ends with %s there and %s here", base.Outcome(), head.Outcome())
	case len(here) == 0 && len(there) > 0:
		return "it names failures there, and none here"
	case len(here) > 0 && len(there) == 0:
		return "it names failures here, and none there"
	}
	isNamed, sameCount := len(here) > 0 && !isVague, len(here) == len(there)
	for _, pair := range [][2]proposal.Stream{{head.Stdout, base.Stdout}, {head.Stderr, base.Stderr}} {
		here, there := linesOf(pair[0]), linesOf(pair[1])
		switch {
		case isNamed && !hasEachLine(documentsOf(there), documentsOf(here)):
			return "it names the same failures, and prints other JSON"
		case isNamed && !endsWithin(there, here, sameCount):
			return "it names the same failures, and ends with other lines"
		case isNamed:
		case !hasEachLine(there, here):
			return "it prints other lines"
		case len(there) > 0 && (len(here) == 0 || here[len(here)-1] != there[len(there)-1]):
			return "it ends with another line"
		}
	}
	return ""
}

// splitKnown returns the names that are not in known, as people read them, and how many are.
func splitKnown(names, known []string) (fresh []string, old int) {
	for _, name := range names {
		if slices.Contains(known, name) {
			old++
		} else {
			fresh = append(fresh, shownName(name))
		}
	}
	return fresh, old
}

// CompareRecords returns records with what run shows about each, and without what they had. run may be
// nil; its Records must have their results. Records must have their Causes. unmet is Run.Unmet.
func CompareRecords(records []proposal.Record, run *proposal.BaseRun, unmet []proposal.Unmet) []proposal.Record {
	list := slices.Clone(records)
	var there []proposal.Record
	if run != nil {
		there = diagnose.DiagnoseRecords(run.Records, unmet)
	}
	for i := range list {
		switch {
		case run == nil:
			list[i].Base = nil
		case IsComparable(list[i]):
			c := compareOnBase(list[i], *run, there)
			list[i].Base = &c
		case IsIncomplete(list[i]):
			list[i].Base = &proposal.Comparison{Verdict: proposal.BaseUnknown, Why: whyIncomplete(*list[i].Result)}
		default:
			list[i].Base = comparisonOfNeeds(list[:i], list[i])
		}
	}
	return list
}

// compareOnBase compares head, which is Comparable, with its run on the base.
func compareOnBase(head proposal.Record, run proposal.BaseRun, there []proposal.Record) proposal.Comparison {
	id := RunID(head.Proposal.ID)
	i := slices.IndexFunc(there, func(r proposal.Record) bool { return r.Proposal.ID == id })
	failed := slices.IndexFunc(there[:max(i, 0)], func(r proposal.Record) bool {
		return r.Proposal.Origin != "" && (r.Result == nil || !r.Result.Succeeded())
	})
	switch {
	case i < 0 || run.Why != "":
		return proposal.Comparison{Verdict: proposal.BaseUnknown, Why: cmp.Or(run.Why, "it did not run there")}
	case failed >= 0:
		return proposal.Comparison{Verdict: proposal.BaseUnknown, Why: "set-up does not succeed there"}
	}
	return Compare(head, there[i])
}

// comparisonOfNeeds returns the Comparison of r, which did not start, if the base has the reason, too: of
// what it needs, something failed before, and the rest succeeded, could not run or waits for approval.
func comparisonOfNeeds(before []proposal.Record, r proposal.Record) *proposal.Comparison {
	if !r.Runnable() || r.Cause != nil || r.Result == nil || r.Result.Status != proposal.NotRun ||
		!strings.HasPrefix(r.Result.Detail, "it needs ") {
		return nil
	}
	var found *proposal.Comparison
	for _, id := range r.Proposal.Needs {
		i := slices.IndexFunc(before, func(b proposal.Record) bool { return b.Proposal.ID == id })
		if i < 0 {
			return nil
		}
		switch before[i].Outcome() {
		case proposal.OutcomeFailedBefore:
			if found == nil {
				found = &proposal.Comparison{Verdict: proposal.BaseSame, After: id}
			}
		case proposal.OutcomeSucceeded, proposal.OutcomeCouldNotRun, proposal.OutcomeAsked:
		default:
			return nil
		}
	}
	return found
}

// maxNewName is the maximum size in bytes of a name in Comparison.New.
const maxNewName = 300
