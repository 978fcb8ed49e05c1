// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/junit"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxJUnit is the maximum length of one output in a JUnit file, in units.
const maxJUnit = 64 << 10

// JUnit writes r as JUnit XML: one test case for each command, and one for a run that stopped, which
// is an error. A command that was denied or cancelled is an error, one that failed is a failure, and one
// that did not run for another reason, or hides a failure, is skipped, unless it is an error because nothing
// else shows that the run was no success.
func JUnit(w io.Writer, r proposal.Report) error {
	suite := junit.Suite{Name: "fumehood"}
	records := trustedCauses(r, false)
	counts := countKinds(records)
	alone := r.Error == nil && counts[failed]+counts[broken]+counts[denied] == 0
	for _, rec := range records {
		c := testCase(r, rec)
		if alone && kindOf(rec) == notRun {
			c.Skipped, c.Error = nil, &junit.Message{Message: c.Skipped.Message, Type: kindWords[notRun],
				Text: strings.Join(plainReason(rec), "\n") + "\n"}
		}
		suite.Add(c, wallSeconds(rec))
	}
	if e := r.Error; e != nil {
		suite.Add(junit.Case{Name: "the run", ClassName: "fumehood",
			Error: &junit.Message{Message: text.Inline(e.Message, 300), Type: text.Inline(e.Code, 80),
				Text: text.Inline(e.Hint, 1000) + "\n"}}, 0)
	}
	return junit.Write(w, "fumehood", []junit.Suite{suite}, float64(r.Run.WallMS)/1000)
}

func wallSeconds(r proposal.Record) float64 {
	if r.Result == nil {
		return 0
	}
	return float64(r.Result.WallMS) / 1000
}

func testCase(r proposal.Report, rec proposal.Record) junit.Case {
	c := junit.Case{Name: text.Inline(rec.Proposal.ID, 100), ClassName: "fumehood"}
	message := &junit.Message{Message: plainOutcome(rec), Type: kindWords[kindOf(rec)],
		Text: text.Inline(shortCommand(rec), 1000) + "\n" +
			strings.Join(append(plainReason(rec), basePlain(r, rec)...), "\n") + "\n"}
	switch kindOf(rec) {
	case succeeded:
		if hidesFailure(rec) {
			c.Skipped = &junit.Skipped{Message: message.Message + ": " + strings.Join(plainReason(rec), "; ")}
		}
	case failed:
		c.Failure = message
	case asked, unable, before, notRun:
		c.Skipped = &junit.Skipped{Message: message.Message}
	default:
		c.Error = message
	}
	if result := shownResult(r, rec); result != nil {
		c.Output, c.Errors = junitOutput(result.Stdout), junitOutput(result.Stderr)
	}
	return c
}

func junitOutput(s proposal.Stream) string {
	return text.Excerpt(s.Head, s.Tail, s.Bytes, maxJUnit).Text
}
