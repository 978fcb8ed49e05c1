// SPDX-License-Identifier: Apache-2.0

// Package failure reads the output of test runners, compilers, linters and interpreters and
// returns what they report: the test, the message with its values, and the line of a file in
// the workspace.
//
// A reader for each family of tools divides the output into blocks. What is in a block, such
// as a stack or two values that differ, is read in one way for all of them. Each report has
// a rank: a test that its runner names as failed comes before a compiler's or linter's
// report, and that before an exception. What is printed between a runner's own lines, by
// tests that passed for example, is therefore never the cause when the runner names one.
//
// A runner may also write its results to a file, as JUnit XML or TAP. Results collects the tests
// that failed from such files, and what it collects is read with the output. If both name the
// same test, the file's report is returned, with what only the output has.
//
// All output and all files are hostile. Reading takes linear time, and lines, reports and bytes are limited.
// A command can still print the lines of a runner: a report is what the output says, and
// never changes whether a command failed.
package failure

import (
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Levels of a report.
const (
	Error   = "failure"
	Warning = "warning"
	Notice  = "notice"
)

// MaxListed is the number of reports from which on some may be missing, even with Options.Every.
const MaxListed = 1000

// Limits. Reports beyond maxReports are dropped.
const (
	maxReports = 5000      // that Diagnostics returns
	maxRead    = 100       // that CauseReports returns
	maxBytes   = 512 << 10 // of one piece of output
	maxLine    = 2000      // bytes of a line
	maxFrames  = 20        // of one report
	maxText    = 1000      // bytes of a message, name or value
)

// Options are what is known about the command.
type Options struct {
	Cwd  string // its working directory, in the workspace
	Tree *Tree  // the known files; nil for none
	// GoModules are the Go modules of the workspace, which say where a package is.
	GoModules []proposal.GoModule
	// Succeeded says that the command succeeded: nothing that it reports is then more than
	// a warning.
	Succeeded bool
	// Every says that no failure is left out for another one, so that they can be counted: tests of
	// one name stay as many as are printed, all lists of a runner are read, and what compilers and
	// linters report beside tests that failed stays a failure, because one command can run all of it.
	Every bool
	// dirs are the directories that the output says a tool runs in.
	dirs []string
}

// maxListed is how many names of tests are read from a list of a runner.
func (o Options) maxListed() int {
	if o.Every {
		return MaxListed
	}
	return maxRead
}

// CauseReports returns what the kept output of a failed command and its TestResults give as the cause: of all
// reports, those of the first rank that has any, and of those the worst level. It returns at most 100,
// in the order of the output. It returns nil for nil, and if no reader recognizes anything; LastLineOf
// is then what there is to show.
func CauseReports(r *proposal.Result, o Options) []proposal.Diagnostic {
	if r == nil {
		return nil
	}
	return selectWorst(readResult(r, o))
}

// Diagnostics returns all that the kept output of a result and its TestResults report, of every
// rank and level, in order of rank.
func Diagnostics(r *proposal.Result, o Options) []proposal.Diagnostic {
	if r == nil {
		return nil
	}
	var list []proposal.Diagnostic
	for _, report := range readResult(r, o) {
		list = append(list, report.Diagnostic)
	}
	return list
}

// FormatLine returns a report in one line: the test, the message, and the values that the message
// does not have.
func FormatLine(d proposal.Diagnostic) string {
	s := d.Message
	if d.Test != "" {
		s = d.Test + ": " + s
	}
	if d.Tool == diffTool {
		return s // which shows the first line of each value
	}
	var values []string
	if d.Expected != "" && !strings.Contains(d.Message, d.Expected) {
		values = append(values, "expected "+d.Expected)
	}
	if d.Actual != "" && (len(values) > 0 || !strings.Contains(d.Message, d.Actual)) {
		values = append(values, "got "+d.Actual)
	}
	if len(values) > 0 {
		s += " (" + strings.Join(values, ", ") + ")"
	}
	return s
}

// streamParts returns the contiguous parts of a stream.
func streamParts(s proposal.Stream) [][]byte {
	if !s.Truncated {
		return [][]byte{slices.Concat(s.Head, s.Tail)}
	}
	tail := s.Tail // its first line may be incomplete
	if i := slices.Index(tail, '\n'); i >= 0 {
		tail = tail[i+1:]
	} else {
		tail = nil
	}
	return [][]byte{s.Head, tail}
}
