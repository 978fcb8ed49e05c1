// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// JSON returns r as a fumehood.report/v1 document, indented, ending in a newline.
//
// An empty Schema is set to the current one; any other value is an error. Hidden
// characters are written as \u escapes and no line is a workflow command, so the
// document is safe to print. It decodes to exactly the same report, except that
// bytes in text that are not UTF-8 become U+FFFD. Each stream that is complete and
// valid UTF-8 also has its text as a string, and each failed command what its output reports:
// the tests that failed, with places. Decoding ignores both.
func JSON(r proposal.Report) ([]byte, error) {
	if r.Schema == "" {
		r.Schema = proposal.ReportSchema
	}
	if r.Schema != proposal.ReportSchema {
		return nil, fmt.Errorf("invalid report schema %q: want %q", r.Schema, proposal.ReportSchema)
	}
	if r.Records == nil {
		r.Records = []proposal.Record{}
	}
	r.Records = withText(withFailures(r))
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("cannot write report: %w", err)
	}
	return append(text.EscapeJSON(data), '\n'), nil
}

// maxListed is the maximum number of failures of one command in a document.
const maxListed = 20

// withFailures returns the records of r, each failed command with what its output reports.
func withFailures(r proposal.Report) []proposal.Record {
	records := slices.Clone(r.Records)
	for i, rec := range records {
		result := shownResult(r, rec)
		if result == nil {
			continue
		}
		changed := *result
		changed.Failures = nil
		if isRed(rec) || hidesFailure(rec) {
			list := failuresOf(r, rec, nil)
			changed.Failures = list[:min(len(list), maxListed)]
		}
		records[i].Result = &changed
	}
	return records
}

// The bounds of output that a document has a second time, as text: it must not become too
// long to be read because of that.
const (
	maxKept   = 16 << 20 // bytes of all streams in a document that has text
	maxCopied = 4 << 20  // bytes of text in a document
)

// withText returns records with the text of their streams.
func withText(records []proposal.Record) []proposal.Record {
	kept := 0
	for _, s := range allStreams(records) {
		kept += len(s.Head) + len(s.Tail)
	}
	if kept > maxKept {
		return records
	}
	records = slices.Clone(records)
	for i, r := range records {
		if r.Result != nil {
			result := *r.Result
			records[i].Result = &result
		}
	}
	room := maxCopied
	for _, s := range allStreams(records) {
		if text := textOf(s); len(text) <= room {
			s.Text = text
			room -= len(text)
		}
	}
	return records
}

// allStreams lists the streams of all results.
func allStreams(records []proposal.Record) (list []*proposal.Stream) {
	for _, r := range records {
		if r.Result != nil {
			list = append(list, &r.Result.Stdout, &r.Result.Stderr, &r.Result.TestResults)
		}
	}
	return list
}

// textOf returns a stream as text, or "" if it is incomplete or not UTF-8.
func textOf(s *proposal.Stream) proposal.Copy {
	whole := slices.Concat(s.Head, s.Tail)
	if s.Truncated || int64(len(whole)) != s.Bytes || !utf8.Valid(whole) {
		return ""
	}
	return proposal.Copy(whole)
}
