// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"bytes"
	"slices"

	"github.com/fumehood/fumehood/pkg/internal/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxLine is the maximum length of a line that is compared, in bytes.
const maxLine = 4 << 10

// volatile is what differs from run to run of the same code, and what takes its place.
var volatile = []struct {
	what *pattern.Pattern
	to   string
}{
	{pattern.New(`\x1b\[[0-9;?]{0,40}[ -/]?[@-~]`), ""},
	{pattern.New(`/(?:tmp|var/tmp)/[^\s:'",;)\]]{1,400}`), "<temporary>"},
	{pattern.New(`\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?`), "<time>"},
	{pattern.New(`\b\d{1,2}:\d{2}:\d{2}(?:[.,]\d{1,9})?\b`), "<time>"},
	{pattern.New(`\b(?:\d{1,4}m ?)?\d{1,9}(?:\.\d{1,9})? ?(?:ns|µs|us|ms|s|secs?|seconds?|mins?|minutes?)\b`), "<duration>"},
	{pattern.New(`\b0x[0-9a-fA-F]{1,16}\b`), "<address>"},
	{pattern.New(`\b(?:[0-9a-f]{64}|[0-9a-f]{40}|[0-9a-f]{32})\b`), "<hash>"},
	{pattern.New(`((?i:\bpid[ =:]{0,2}|\bprocess |\bgoroutine ))\d{1,10}\b`), "${1}<n>"},
	{pattern.New(`((?:127\.0\.0\.1|localhost|\[::1\]|0\.0\.0\.0):)\d{1,5}\b`), "${1}<port>"},
	// The place of a line moves with the lines above it.
	{pattern.New(`(\.[A-Za-z]{1,8}):\d{1,7}(?::\d{1,7})?\b`), "${1}:<line>"},
	{pattern.New(`(\.[A-Za-z]{1,8})\(\d{1,7},\d{1,7}\)`), "${1}(<line>)"},
}

// linesOf returns the lines of a stream that are not empty, without what is volatile in them.
func linesOf(s proposal.Stream) []string {
	var lines []string
	for line := range bytes.Lines(slices.Concat(s.Head, s.Tail)) {
		if i := bytes.LastIndexByte(bytes.TrimRight(line, "\r\n"), '\r'); i >= 0 {
			line = line[i+1:] // what a progress line was overwritten with
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		lines = append(lines, removeVolatile(string(line[:min(len(line), maxLine)])))
	}
	return lines
}

// removeVolatile returns a line without what is volatile in it.
func removeVolatile(line string) string {
	b := []byte(line)
	for _, v := range volatile {
		b = v.what.ReplaceAll(b, []byte(v.to))
	}
	return string(b)
}

// hasEachLine reports whether all has each line of some, as often.
func hasEachLine(all, some []string) bool {
	n := map[string]int{}
	for _, line := range all {
		n[line]++
	}
	for _, line := range some {
		if n[line]--; n[line] < 0 {
			return false
		}
	}
	return true
}

// maxEnding is how many lines the ending of an output has.
const maxEnding = 3

var digits = pattern.New(`\d+`)

// endsWithin reports whether the last lines of head follow each other in base, too. Numbers do not
// count: a runner's totals count tests that the pull request adds.
func endsWithin(base, head proposal.Stream) bool {
	all, last := maskDigits(linesOf(base)), maskDigits(linesOf(head))
	last = last[max(0, len(last)-maxEnding):]
	if len(last) == 0 {
		return len(all) == 0
	}
	for i := range len(all) - len(last) + 1 {
		if slices.Equal(all[i:i+len(last)], last) {
			return true
		}
	}
	return false
}

func maskDigits(lines []string) []string {
	for i, line := range lines {
		lines[i] = string(digits.ReplaceAll([]byte(line), []byte("<n>")))
	}
	return lines
}
