// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/internal/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxLine is how much of a line is searched for what is volatile, in bytes.
const maxLine = 4 << 10

// A mask is a class of what differs from run to run of the same code, and what takes its place. Only a
// line that has its part is searched: a search costs more than the rest of a comparison.
type mask struct {
	part string
	what *pattern.Pattern
	to   string
}

var escapes = pattern.New(`\x1b\[[0-9;?]{0,40}[ -/]?[@-~]`)

// ephemeral is a port that a kernel gives: gVisor's begin at 16000. A well-known port says what is missing.
const ephemeral = `(?:(?:1[6-9]|[2-5]\d)\d{3}|6[0-5]\d{3})\b`

// names are the parts of a line that a machine makes up in each run: they mean nothing anywhere.
var names = []mask{
	{"/", pattern.New(`/(?:tmp|var/tmp|dev/shm)/[^\s:'",;)\]]{1,400}`), "<temporary>"},
	{"pytest-of-", pattern.New(`\bpytest-of-[\w.-]{1,40}/pytest-\d{1,9}`), "<temporary>"},
	{"go-build", pattern.New(`\bgo-build\d{1,12}`), "<temporary>"},
	{"tmp", pattern.New(`\btmp\.[A-Za-z0-9]{6,12}\b|/tmp[a-z0-9_]{8}\b|_tmp_\d{1,12}(?:_[0-9a-f]{32})?`), "<temporary>"},
	{"node_modules/", pattern.New(`(node_modules/(?:@[\w.-]{1,80}/)?\.[\w.-]{1,80}-)[A-Za-z0-9]{8}\b`), "${1}<temporary>"},
	{"_cacache/", pattern.New(`(_cacache/tmp/)[\w.-]{1,80}`), "${1}<temporary>"},
	{"timestamp-", pattern.New(`(\.timestamp-)\d{13}-[0-9a-f]{1,16}`), "${1}<time>"},
	// The name of a log file, as npm and pnpm write it.
	{"T", pattern.New(`\d{4}-\d{2}-\d{2}T\d{2}[_-]\d{2}[_-]\d{2}[_-]\d{3}Z(?:-debug-\d{1,3})?`), "<time>"},
	{"20", pattern.New(`\b20\d{6}[T_.-]\d{6}\b`), "<time>"},
	{"0x", pattern.New(`\b0x[0-9a-fA-F]{1,16}\b`), "<address>"},
	{"@", pattern.New(`((?:^|[\s.<(\[,:=$"'])[A-Z][\w$]{0,100}@)[0-9a-f]{5,8}\b`), "${1}<address>"}, // a Java object
	{"/deps/", pattern.New(`(/deps/[\w-]{1,100}-)[0-9a-f]{16}\b`), "${1}<hash>"},
	{"", pattern.New(`((?:(?:\b|_)[Pp][Ii][Dd][ =:]{0,2}|\b[Pp]rocess |\b[Gg]oroutine |\b[Tt][Ii][Dd][ =:]{1,2}|\(node:))\d{1,10}\b`), "${1}<n>"},
	{"duration_ms", pattern.New(`(\bduration_ms:? )[\d.]{1,24}`), "${1}<time>"}, // TAP
	{"==", pattern.New(`^==\d{1,10}==`), "==<n>=="},                             // a sanitizer, or Valgrind
	{"thread '", pattern.New(`(\bthread '[^']{1,100}' \()\d{1,10}\)`), "${1}<n>)"},
	{"", pattern.New(`((?:\d{1,3}(?:\.\d{1,3}){3}|localhost|\]|::|\b[Pp]ort):|\b[Pp]ort[ =:]{1,3})` + ephemeral), "${1}<port>"},
	// The place of a line moves with the lines above it.
	{".", pattern.New(`(\.[A-Za-z]{1,8}):\d{1,7}(?::\d{1,7})?\b`), "${1}:<line>"},
	{",", pattern.New(`(\.[A-Za-z]{1,8})\(\d{1,7},\d{1,7}\)`), "${1}(<line>)"},
}

// values are times, measurements and random numbers. They mean something where a line compares them.
var values = []mask{
	{":", pattern.New(`\d{4}[-/]\d{2}[-/]\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:Z| ?[+-]\d{2}:?\d{2})?`), "<time>"},
	{":", pattern.New(`\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? )?(?:\d{1,2} )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) (?:\d{1,2},? )?(?:\d{4} )?\d{1,2}:\d{2}:\d{2}(?: [AP]M)?(?: [A-Z]{3,4})?(?: \d{4})?`), "<time>"},
	{":", pattern.New(`^([IWEF])\d{4} \d{2}:\d{2}:\d{2}\.\d{6} {1,8}\d{1,10} `), "${1}<time> <n> "}, // glog
	{":", pattern.New(`\b\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?|\.\d{1,9})\b`), "<time>"},
	{"1", pattern.New(`\b1[7-9]\d{8}(?:\d{3}){0,3}\b`), "<time>"}, // since 1970
	{"", pattern.New(`[ \t]{0,20}\b(?:\d{1,4}h ?)?(?:\d{1,4}m ?)?\d{1,9}(?:\.\d{1,9})? ?(?:ns|µs|us|ms|s|secs?|seconds?|mins?|minutes?)\b`), " <duration>"},
	{"/s", pattern.New(`\b\d{1,12}(?:\.\d{1,9})? (?:runs|assertions|tests|ops|it|[kKMG]?i?B)/s\b`), "<rate>"},
	{"B", pattern.New(`((?i:\bmemory(?: usage)?|\brss)[:=]? {0,4})\d{1,9}(?:\.\d{1,3})? ?[kKMG]i?B\b`), "${1}<size>"},
	{"-", pattern.New(`\b(?i:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b`), "<uuid>"},
	{"", pattern.New(`\b(?:[0-9a-f]{64}|[0-9a-f]{40}|[0-9a-f]{32})\b`), "<hash>"},
	{"eed", pattern.New(`(\b[Ss]eed(?: of|s?)[ =:"'(]{1,4})\d{1,20}`), "${1}<n>"},
	{"-shuffle ", pattern.New(`(-shuffle )\d{1,20}`), "${1}<n>"},
}

// all is names and values.
var all = slices.Concat(names, values)

// compares is what a line has whose values are what it is about.
var compares = pattern.New(`(?i:\b(?:expect(?:ed|s)?|actual(?:ly)?|received|got|want(?:ed)?|but was|should|assert(?:ed)?|assertion ?error|assertion failed|mismatch)\b)|\S [!=]==? \S`)

// A line shows progress if it has a part of something, and how fast or how long, or a bar, and nothing
// else. How many such lines there are differs from run to run.
var (
	progress = pattern.New(`\d{1,3}(?:\.\d{1,2})?%|\d ?/ ?\d`)
	bar      = pattern.New(`(?i:\beta\b)|\d ?(?:[kKMG]?i?B|it)/s\b|[━╸╺█▉▊▋▌▍▎▏░▒▓]{4}|\[[=#>.\- ]{5,200}\]`)
	// What a line of progress has, except for what meterRest lists.
	meter     = pattern.New(`(?i:\beta\b)|\d{1,12}(?:[.:]\d{1,9}){0,3} {0,3}(?:(?:[kKMG]?i?B|it)(?:/s)?\b|ms\b|[smh]\b)?`)
	meterRest = pattern.New(`^[\s|()\[\]<>,%/=#.\-━╸╺█▉▊▋▌▍▎▏░▒▓]*$`)
)

// isProgress reports whether a line, or what the rest of a line overwrote, shows nothing but progress.
func isProgress(line []byte, isOverwritten bool) bool {
	line = escapes.ReplaceAll(line, nil)
	return progress.Match(line) && (isOverwritten || bar.Match(line)) && meterRest.Match(meter.ReplaceAll(line, nil))
}

// linesOf returns the lines of a stream that are not empty and do not show progress, without what is
// volatile in them. A JSON document is one line, which isDocument, whatever its lines were; behind one
// that cannot be read, each line is a document.
func linesOf(s proposal.Stream) []string {
	var lines []string
	isBroken := false
	for rest := slices.Concat(s.Head, s.Tail); len(rest) > 0; {
		if !isBroken && beginsDocument(rest) {
			line, length := readDocument(rest)
			if line != "" {
				lines = append(lines, line)
			}
			rest, isBroken = rest[length:], length == 0
			continue
		}
		var line []byte
		end := bytes.IndexAny(rest, "\r\n")
		if end < 0 {
			end = len(rest) - 1
		}
		line, rest = rest[:end+1], rest[end+1:]
		isOverwritten := line[end] == '\r' && len(rest) > 0 && rest[0] != '\n'
		if line = bytes.TrimSpace(line); len(line) == 0 || isProgress(line, isOverwritten) {
			continue
		}
		text := clipLine(line)
		if isBroken {
			text = documentMark + text
		}
		lines = append(lines, text)
	}
	return lines
}

// clipLine returns a line without what is volatile in it. Behind maxLine bytes, everything counts.
func clipLine(line []byte) string {
	if len(line) <= maxLine {
		return removeVolatile(string(line))
	}
	return fmt.Sprintf("%s… and %x", removeVolatile(string(line[:maxLine])), sha256.Sum256(line[maxLine:]))
}

// removeVolatile returns a line without what is volatile in it.
func removeVolatile(line string) string {
	b := escapes.ReplaceAll([]byte(line), nil)
	masks := names
	if bytes.ContainsAny(b, "0123456789") && !compares.Match(b) {
		masks = all
	}
	for _, m := range masks {
		if m.part != "" && !bytes.Contains(b, []byte(m.part)) {
			continue
		}
		b = m.what.ReplaceAll(b, []byte(m.to))
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
// count: a runner's totals count tests that the pull request adds. Documents do not: see documentsOf.
func endsWithin(base, head []string) bool {
	all, last := maskDigits(base), maskDigits(head[max(0, len(head)-maxEnding):])
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

func isDocument(line string) bool { return strings.HasPrefix(line, documentMark) }

// documentsOf returns the lines that are documents.
func documentsOf(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !isDocument(line) })
}

func maskDigits(lines []string) []string {
	masked := slices.Clone(lines)
	for i, line := range masked {
		if isDocument(line) {
			masked[i] = documentMark
			continue
		}
		masked[i] = string(digits.ReplaceAll([]byte(line), []byte("<n>")))
	}
	return masked
}
