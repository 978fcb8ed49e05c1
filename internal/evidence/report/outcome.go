// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A kind is a record's outcome, ordered worst first.
type kind = proposal.Outcome

const (
	failed    = proposal.OutcomeFailed
	broken    = proposal.OutcomeCancelled // not run, because the run was cancelled
	denied    = proposal.OutcomeDenied
	asked     = proposal.OutcomeAsked
	unable    = proposal.OutcomeCouldNotRun // see cause.go
	before    = proposal.OutcomeFailedBefore
	notRun    = proposal.OutcomeNotRun
	succeeded = proposal.OutcomeSucceeded
)

var kindWords = [...]string{"failed", "cancelled", "denied", "waiting for approval", "could not run", "failed before",
	"not run", "succeeded"}

func kindOf(r proposal.Record) kind { return r.Outcome() }

func countKinds(records []proposal.Record) (counts [len(kindWords)]int) {
	for _, r := range records {
		counts[kindOf(r)]++
	}
	return counts
}

// tallyRecords counts records in words, the worst first: "1 failed, 2 denied, 2 succeeded".
func tallyRecords(records []proposal.Record) string {
	counts := countKinds(records)
	var list []string
	for k, n := range counts {
		if n > 0 {
			list = append(list, fmt.Sprintf("%d %s", n, kindWords[k]))
		}
	}
	if n := proposal.Total(records).Cached; n > 0 {
		list[len(list)-1] += fmt.Sprintf(" (%d from cache)", n) // succeeded is the last kind
	}
	hide := 0
	for _, r := range records {
		if hidesFailure(r) {
			hide++
		}
	}
	switch {
	case hide == 1:
		list[len(list)-1] += " (1 " + hiding + ")"
	case hide > 1:
		list[len(list)-1] += fmt.Sprintf(" (%d hide a failure)", hide)
	}
	if len(list) == 0 {
		return "no commands were proposed"
	}
	return strings.Join(list, ", ")
}

// space is a space at which a line in a narrow table is not broken.
const space = "&nbsp;"

// describeOutcome describes a record's outcome as HTML: a mark, and words that suffice
// without it.
func describeOutcome(r proposal.Record) (mark, words string) {
	switch kindOf(r) {
	case denied:
		if r.Proposal.Invalid != nil {
			return "⛔", "invalid"
		}
		return "⛔", "denied"
	case asked:
		return "✋", "needs approval"
	case broken:
		return "🚫", "cancelled · " + wallTime(*r.Result)
	case unable:
		return "➖", "could not run: " + formatProse(r.Cause.Reason, maxReason)
	case notRun:
		return "➖", "not" + space + "run"
	case before:
		if r.Base.After != "" {
			return "➖", "not" + space + "run: needs " + formatCode(r.Base.After, 60)
		}
		return "➖", failsBefore
	case succeeded:
		if r.AsExpected() {
			return "✅", "fails, as expected · " + wallTime(*r.Result)
		}
		if c := r.Result.Cached; c != nil {
			return "✅", "succeeded · from" + space + "cache, run " + formatCode(c.Run, 60)
		}
		if r.Result.FromLayer() {
			return "✅", "from a layer"
		}
		if hidesFailure(r) {
			return "⚠️", "succeeded, but " + hiding + " · " + wallTime(*r.Result)
		}
		return "✅", "succeeded · " + wallTime(*r.Result)
	}
	if r.Result.Succeeded() {
		return "❌", "expected a failure · " + wallTime(*r.Result)
	}
	mark, words = describeEnding(*r.Result)
	if r.Result.Status == proposal.TimedOut {
		return mark, words // the limit includes the duration
	}
	return mark, words + " · " + wallTime(*r.Result)
}

func wallTime(r proposal.Result) string {
	return strings.ReplaceAll(formatMilliseconds(r.WallMS), " ", space)
}

// describeEnding describes how a command that did not succeed ended.
func describeEnding(r proposal.Result) (mark, words string) {
	switch r.Status {
	case proposal.Exited:
		return "❌", fmt.Sprintf("exit%s%d", space, r.ExitCode)
	case proposal.Signaled:
		return "❌", "killed by " + signalName(r.Signal)
	case proposal.TimedOut:
		return "⏱️", "killed: " + limitName(r.Limit)
	case proposal.OutOfMemory:
		return "❌", "out of memory: " + limitName(r.Limit)
	case proposal.ProcessLimit, proposal.DiskLimit, proposal.OutputLimit:
		return "❌", "killed: " + limitName(r.Limit)
	}
	return "❌", "sandbox failed"
}

var (
	plainName  = pattern.New(`^[A-Z][A-Z0-9]{1,15}$`)
	plainLimit = pattern.New(`^(wall|cpu|memory|processes|disk|files|output|events) ([0-9][0-9a-z.]{0,15}(?: [KMG]?i?B)?)$`)
)

func signalName(signal string) string {
	if plainName.MatchString(signal) {
		return signal
	}
	return formatCode(signal, 60)
}

// limitName turns "wall 2m0s" into "wall limit 2m0s".
func limitName(s string) string {
	if m := plainLimit.FindStringSubmatch(s); m != nil {
		return m[1] + " limit " + m[2]
	}
	return formatCode(s, 60)
}

func formatMilliseconds(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", ms)
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}
