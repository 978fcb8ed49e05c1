// SPDX-License-Identifier: Apache-2.0

// Package report reads the report of a run and renders it: as the Markdown of a pull-request
// comment, lines for a terminal, JSON, SARIF, JUnit or annotations.
//
// A report is untrusted, and so is everything in it that a proposal or a command wrote. Text from
// elsewhere cannot be anything but text in what the functions return: no mention, link, image,
// HTML or Markdown in a comment, no escape sequence on a terminal, no command of GitHub's runner.
// Except for Open they do no I/O and have no clock; the same report gives the same bytes.
//
// It does not protect a reader from false content: text that a command printed is shown as
// printed, and may lie. Nor does it know whether a report is true.
package report

import (
	"io"

	"github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Read reads a fumehood.report/v1 document of at most max bytes that is untrusted.
//
// It accepts only what JSON writes: every field exactly once under its exact name, every text,
// list and number within bounds, and every count equal to what it counts. It refuses a record
// whose decision and result contradict each other. Errors are StopErrors with the code
// report.malformed that give the location.
func Read(data []byte, max int) (proposal.Report, error) { return report.Read(data, max) }

// Open is Read of the file called name, of at most 64 MiB. The code of the error is
// report.not-readable if there is no such file.
func Open(name string) (proposal.Report, error) { return report.Open(name) }

// JSON returns the document of r, which Read reads. Secrets must have been redacted.
func JSON(r proposal.Report) ([]byte, error) { return report.JSON(r) }

// Markdown returns r as the body of a pull-request comment of at most 65,536 UTF-16 units.
func Markdown(r proposal.Report) string { return report.Markdown(r) }

// Text returns r as a few lines for a terminal, without colors.
func Text(r proposal.Report) string { return report.Text(r) }

// SARIF writes r as a SARIF 2.1.0 log. files are the paths of the files of the commit, which its
// results may name.
func SARIF(w io.Writer, r proposal.Report, files []string) error { return report.SARIF(w, r, files) }

// JUnit writes r as JUnit XML.
func JUnit(w io.Writer, r proposal.Report) error { return report.JUnit(w, r) }

// An Annotation is a line of a command's output about a line of a file of the pull request.
type Annotation struct {
	Path    string // in the repository: one of the files passed to Annotations
	Line    int    // from 1
	EndLine int    // at least Line
	Col     int    // from 1; 0 when unknown
	Level   string // "failure", "warning" or "notice"
	Title   string // one line: the tool and the proposal's id
	Message string // one line that is safe to display
}

// Annotations returns at most 50 annotations about files, the paths of the files of the commit,
// and how many more there are.
func Annotations(r proposal.Report, files []string) (list []Annotation, more int) {
	found, more := report.Annotations(r, files)
	for _, a := range found {
		list = append(list, Annotation(a))
	}
	return list, more
}
