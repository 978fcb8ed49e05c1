// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var (
	expectsNone    = pattern.New(`(?i)\b(?:no|not|without|zero|0|never|\w+n't)\s+(?:\w+\s+){0,2}(?:fail\w*|errors?|crash\w*|panic\w*|pass\w*|succe\w+)\b`)
	expectsFailure = pattern.New(`(?i)\b(?:fails?|failed|failing|failures?|crash(?:es)?|panics?|segfaults?|non-?zero|raises|throws|exits? (?:(?:with|code|status) )*[1-9][0-9]*)\b`)
	expectsSuccess = pattern.New(`(?i)\b(?:pass(?:es|ed)?|succeeds?|successful(?:ly)?|success|green|exits? (?:(?:with|code|status) )*0|(?:no|without) (?:errors?|failures?|warnings?|findings))\b`)
)

var expectsClean = pattern.New(`(?i)\b(?:no|without) (?:errors?|failures?)\b`)

// unexpectedSuccess reports whether r succeeded and its proposal says that it fails.
func unexpectedSuccess(r proposal.Record) bool {
	return kindOf(r) == failed && r.Result.Succeeded()
}

// codeWords says that r ended with another exit code than its proposal says, or "".
func codeWords(r proposal.Record) string {
	want := r.UnexpectedCode()
	switch {
	case want == 0 || kindOf(r) != failed:
		return ""
	case r.Result.Status == proposal.Exited:
		return fmt.Sprintf("expected exit code %d, got %d", want, r.Result.ExitCode)
	}
	return fmt.Sprintf("expected exit code %d", want)
}

// isUnmet reports whether a command ended in the opposite of what was expected. Free text is
// only understood if it plainly says success or failure, at its beginning.
func isUnmet(r proposal.Record) bool {
	if r.Proposal.ExpectsFailure() {
		return false // its outcome says so
	}
	s := r.Proposal.Expect
	s = s[:min(len(s), 500)]
	failure, success := expectsFailure.MatchString(s), expectsSuccess.MatchString(s)
	if expectsNone.MatchString(s) {
		failure = false // "no test fails"; "does not pass" is not understood
		success = success && expectsClean.MatchString(s)
	}
	switch kindOf(r) {
	case failed:
		return success && !failure
	case succeeded:
		return failure && !success
	}
	return false
}
