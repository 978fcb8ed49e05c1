// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Ranks of reports.
const (
	rankTest   = iota // a runner names a test that failed
	rankRunner        // a runner says why it could not run tests
	rankTool          // a compiler or linter
	rankStack         // an exception, assertion or crash
	rankLine          // a line of a file that output names in a common form
)

type report struct {
	proposal.Diagnostic
	rank     int
	isResult bool // from a file that the runner wrote
}

// A scan reads one piece of output.
type scan struct {
	Options
	lines []string
	found []report
	work  int // lines that until may still visit, over all readers
}

// A reader recognizes the output of one family of tools. It is used if the piece contains
// one of marks.
type reader struct {
	name  string
	marks []string
	read  func(*scan)
}

// normalizeCwd returns o with Cwd relative to the workspace.
func (o Options) normalizeCwd() Options {
	o.Cwd = strings.TrimPrefix(strings.TrimPrefix(o.Cwd, strings.TrimSuffix(workspace, "/")), "/")
	return o
}

// readResult reads the kept output of a result, and what the files of test runners say.
func readResult(r *proposal.Result, o Options) []report {
	return readAll(slices.Concat(streamParts(r.Stderr), streamParts(r.Stdout)), readResults(r.TestResults, o), o)
}

// readAll reads pieces of output, and returns the reports in order of rank, with results, those
// of files.
func readAll(pieces [][]byte, results []report, o Options) []report {
	s := &scan{Options: o.normalizeCwd()}
	var prefixes []string
	for _, piece := range pieces {
		lines, names := withoutPrefixes(splitLines(piece))
		s.lines = append(append(s.lines, lines...), "", "")
		prefixes = append(prefixes, names...)
	}
	s.work = 100*len(s.lines) + 10000
	s.dirs = append(runDirectories(s.lines), prefixes...)
	whole := strings.Join(s.lines, "\n")
	for _, r := range readers {
		if slices.ContainsFunc(r.marks, func(mark string) bool { return strings.Contains(whole, mark) }) {
			r.read(s)
		}
	}
	s.readJSON(pieces)
	all := slices.Concat(results, s.found)
	slices.SortStableFunc(all, func(a, b report) int { return cmp.Compare(a.rank, b.rank) })
	return preferResults(dropRepeated(all, o))
}

// dropRepeated removes what is reported twice, and lowers what does not count: a command that
// succeeded fails nothing, and once a runner names the tests that failed, an error that
// another reader sees may be from a test that passed.
func dropRepeated(all []report, o Options) []report {
	type key struct {
		tool, suite, test, message, file string
		line                             int
	}
	seen := map[key]bool{}
	hasTest := slices.ContainsFunc(all, func(r report) bool { return r.rank <= rankRunner && r.Level == Error })
	list := all[:0]
	named := map[string]bool{} // last parts of the names of tests with a message
	byCTest := map[string]bool{}
	for _, r := range all {
		if r.Tool == "ctest" {
			byCTest[r.Test] = true
		}
		if r.rank == rankTest && (r.Message != Unsaid || r.File != "") {
			named[lastName(r.Test)] = true
		}
	}
	type line struct {
		file string
		n    int
	}
	best := map[line]int{} // rank of the first report of each line
	hasError := false
	for _, r := range all {
		hasError = hasError || r.Level == Error && r.rank < rankLine
		if _, known := best[line{r.File, r.Line}]; !known {
			best[line{r.File, r.Line}] = r.rank
		}
	}
	for _, r := range all {
		first := best[line{r.File, r.Line}]
		if r.rank == rankLine && (hasError || first < rankLine) ||
			r.rank > rankRunner && first <= rankRunner && r.File != "" {
			continue // another reader knows more of it
		}
		k := key{r.Tool, r.Suite, r.Test, r.Message, r.File, r.Line}
		if r.rank > rankTest {
			k.tool, k.suite = "", ""
		} else if !o.Every && r.Message == Unsaid && r.File == "" && r.Tool != "go test" && named[lastName(r.Test)] {
			continue // another reader, or the other stream, has more
		}
		if r.Tool == "googletest" && byCTest[r.Test] {
			continue // ctest runs it
		}
		if seen[k] && !(o.Every && r.rank == rankTest) || len(list) == maxReports {
			continue
		}
		seen[k] = true
		if r.Level == Error && (o.Succeeded || hasTest && r.rank > rankRunner && !(o.Every && r.rank == rankTool)) {
			r.Level = Warning
		}
		list = append(list, r)
	}
	return list
}

// selectWorst returns the reports of the first rank that has an error, and only the errors; or
// else those of the worst level.
func selectWorst(all []report) []proposal.Diagnostic {
	for _, level := range []string{Error, Warning, Notice} {
		var list []proposal.Diagnostic
		rank := -1
		for _, r := range all {
			if r.Level != level {
				continue
			}
			if rank < 0 {
				rank = max(r.rank, rankRunner)
			}
			if r.rank <= rank && len(list) < maxRead {
				list = append(list, r.Diagnostic)
			}
		}
		if len(list) > 0 {
			return list
		}
	}
	return nil
}

// Unsaid is the message of a test of which only the name is known.
const Unsaid = "failed"

// lastName returns the name of a test without those of the suites around it.
func lastName(name string) string { return strings.TrimSpace(name[strings.LastIndex(name, "> ")+1:]) }

// addReport adds a report.
func (s *scan) addReport(rank int, f proposal.Diagnostic) {
	f.Message, f.Test, f.Suite = clipText(f.Message), clipText(f.Test), clipText(f.Suite)
	if f.Message == "" && f.Test == "" || len(s.found) >= maxReports {
		return
	}
	if f.Message == "" {
		f.Message = Unsaid
	}
	if f.Level == "" {
		f.Level = Error
	}
	s.completeValues(&f)
	s.found = append(s.found, report{Diagnostic: f, rank: rank})
}

// addBlock adds a report whose message, values and places are in some lines.
func (s *scan) addBlock(rank int, f proposal.Diagnostic, lines []string) {
	s.fillReport(&f, lines)
	s.addReport(rank, f)
}

// setPlace sets the place of a report that has none.
func (s *scan) setPlace(f *proposal.Diagnostic, p place) bool {
	frame, ok := s.resolvePlace(p)
	if ok {
		f.File, f.Line, f.Column = frame.File, frame.Line, frame.Column
	}
	return ok
}

// findLine returns the index of the first line from i on for which stop is true, at most max
// lines away, or the end.
func (s *scan) findLine(i, max int, stop func(trimmed, line string) bool) int {
	end := min(len(s.lines), i+max)
	for ; i < end; i++ {
		if s.work--; s.work < 0 {
			return i
		}
		if stop(strings.TrimSpace(s.lines[i]), s.lines[i]) {
			return i
		}
	}
	return end
}

// matchContaining is FindStringSubmatch for an expression whose every match contains has. Most lines
// do not, and so are not matched.
func matchContaining(form *pattern.Pattern, has, line string) []string {
	if !strings.Contains(line, has) {
		return nil
	}
	return form.FindStringSubmatch(line)
}

// findLast returns the index of the last line that is one of a kind, with Every that of the first: one
// command can run a runner several times. It is -1 if there is none.
func (s *scan) findLast(isIt func(trimmed string) bool) int {
	if s.Every {
		return slices.IndexFunc(s.lines, func(line string) bool { return isIt(strings.TrimSpace(line)) })
	}
	for i := len(s.lines) - 1; i >= 0; i-- {
		if isIt(strings.TrimSpace(s.lines[i])) {
			return i
		}
	}
	return -1
}

// workspacePath returns the path in the workspace of a file that a tool names, or the name.
func (s *scan) workspacePath(name string) string {
	if f, ok := s.resolvePlace(place{name: name, row: 1}); ok {
		return f.File
	}
	return name
}

// keepCounted drops the first reports of a runner that reports all failures when all tests
// have run, so that no more are left than the runner counts in its last line of that form.
func (s *scan) keepCounted(before int, form *pattern.Pattern) {
	for i := len(s.lines) - 1; i >= 0; i-- {
		m := form.FindStringSubmatch(s.lines[i])
		if m == nil {
			continue
		}
		count := 0
		for _, n := range m[1:] {
			count += parseNumber(n)
		}
		if extra := len(s.found) - before - count; extra > 0 && count > 0 {
			s.found = slices.Delete(s.found, before, before+extra)
		}
		return
	}
}

// readNested reads lines that are a part of the output, with the readers of tools and
// exceptions, and returns the first report of the best rank.
func (s *scan) readNested(lines []string) (proposal.Diagnostic, bool) {
	part := &scan{Options: s.Options, lines: lines, work: min(s.work, 20*len(lines)+1000)}
	for _, r := range nested {
		r.read(part)
	}
	best := -1
	for i, r := range part.found {
		if r.Level == Error && (best < 0 || r.rank < part.found[best].rank) {
			best = i
		}
	}
	if best < 0 {
		return proposal.Diagnostic{}, false
	}
	return part.found[best].Diagnostic, true
}
