// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxLine is how much of a line is searched for what is volatile, in bytes.
const maxLine = 4 << 10

// An outputMask is a class of what differs from run to run of the same code, and what takes its place. Only a
// line that has its part is searched: a search costs more than the rest of a comparison.
type outputMask struct {
	part string
	what *pattern.Pattern
	to   string
}

var escapes = pattern.New(`\x1b\[[0-9;?]{0,40}[ -/]?[@-~]`)

// Parts of the masks.
const (
	// ephemeral is a port that Linux's kernel gives: from 32768 on, without 50000 to 50099 and 61000 to 61999,
	// where gRPC's and ActiveMQ's are. gVisor's begin at 16000, but so do those of databases and queues.
	ephemeral = `(?:3[3-9]\d{3}|32[89]\d{2}|327[7-9]\d|3276[89]|4\d{4}|5[1-9]\d{3}|50[1-9]\d{2}|6[2-5]\d{3}|60\d{3})\b`
	// address is that of something in memory.
	address = `0x(?:0000)?[1-9a-f][0-9a-f]{8,11}\b`
	// clock is a time of day with seconds; date is a day before it.
	clock = `\d{1,2}:\d{2}:\d{2}(?:[.,]\d{1,9})?`
	date  = `\d{4}[-/]\d{2}[-/]\d{2}`
	month = `(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)`
	// duration is a time that something took.
	duration = `(?:\d{1,4}h ?)?(?:\d{1,4}m ?)?(?:\d{1,9}s )?\d{1,9}(?:\.\d{1,9})? ?(?:ns|µs|us|ms|s|sec|secs|seconds?|m|min|mins|minutes?)`
)

// masks are what a machine makes up in each run, in the form in which runners, compilers and loggers print
// it. What is not surely of that form counts: a time, a port or a number is often what a failure is about.
var masks = []outputMask{
	// Names of temporary files and of logs.
	{"pytest-of-", pattern.New(`\bpytest-of-[\w.-]{1,40}/pytest-\d{1,9}`), "<temporary>"},
	{"go-build", pattern.New(`\bgo-build\d{3,12}`), "<temporary>"},
	{"/tmp", pattern.New(`/tmp\.[A-Za-z0-9]{10}\b|/tmp[a-z0-9_]{8}\b`), "/<temporary>"},
	{"_tmp_", pattern.New(`(node_modules/\S*_tmp_)\d{1,12}(?:_[0-9a-f]{32})?`), "${1}<temporary>"},
	{"node_modules/", pattern.New(`(node_modules/(?:@[\w.-]{1,80}/)?\.[\w.-]{1,80}-)[A-Za-z0-9]{8}\b`), "${1}<temporary>"},
	{"_cacache/", pattern.New(`(_cacache/tmp/)[\w.-]{1,80}`), "${1}<temporary>"},
	{"timestamp-", pattern.New(`(\.timestamp-)\d{13}-[0-9a-f]{1,16}`), "${1}<time>"},
	{"T", pattern.New(`\d{4}-\d{2}-\d{2}T\d{2}[_-]\d{2}[_-]\d{2}[_-]\d{3}Z(?:-debug-\d{1,3})?`), "<time>"}, // npm, pnpm
	{"/deps/", pattern.New(`(target/[\w./-]+/deps/[\w-]+-)[0-9a-f]{16}\b`), "${1}<hash>"},                  // Cargo
	// Numbers of processes, threads and goroutines, and addresses.
	{"pid", pattern.New(`([(\[]pid[ =:]{0,2}|\bhs_err_pid)\d{1,10}\b`), "${1}<n>"},
	{"(node:", pattern.New(`(\(node:)\d{1,10}\)`), "${1}<n>)"},
	{"goroutine ", pattern.New(`(^goroutine |^created by .* in goroutine )\d{1,10}( \[|$)`), "${1}<n>${2}"},
	{"thread '", pattern.New(`(\bthread '[^']+' \()\d{1,10}(\) panicked at )`), "${1}<n>${2}"},
	{"==", pattern.New(`^==\d{1,10}==((?:ERROR|WARNING|ABORTING|HINT)\b| {1,8}(?:[A-Z]|at |by )|$)`), "==<n>==${1}"}, // a sanitizer, Valgrind
	{"0x", pattern.New(`(#<[\w:]+:|\bat |\baddress |\b(?:pc|sp|bp) |<\S+ at )` + address), "${1}<address>"},
	{"0xc0", pattern.New(`([(, ])0xc0[0-9a-f]{8}\b`), "${1}<address>"}, // Go's heap, in a stack
	{"@", pattern.New(`((?:^|[\s.<(\[,:=$"'])(?:[a-z]\w*\.){2,}[A-Z][\w$]*@)[0-9a-f]{5,8}\b`), "${1}<address>"},
	{":", pattern.New(`((?:127\.0\.0\.1|localhost|\[::1\]):)` + ephemeral), "${1}<port>"},
	{"istening ", pattern.New(`(\b[Ll]istening (?:on|at) port )` + ephemeral), "${1}<port>"},
	// The place of a line moves with the lines above it.
	{".", pattern.New(`(\.(?:` + sources + `)):\d{1,7}(?::\d{1,7})?\b`), "${1}:<line>"},
	{",", pattern.New(`(\.(?:` + sources + `))\(\d{1,7},\d{1,7}\)`), "${1}(<line>)"},
	// The time at which a line was logged.
	{":", pattern.New(`^((?:\[[A-Z]{4,5}\] (?:Finished at: )?)?[\[(]?(?:time=")?)` + date + `[T ]` + clock + `(?:Z| ?[+-]\d{2}:?\d{2})?`), "${1}<time>"},
	{":", pattern.New(`^\[?` + clock + `\]?( )`), "<time>${1}"},
	{":", pattern.New(`^(?:(?:< )?[Dd]ate: )?(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? (?:\d{1,2} )?` + month + ` (?:[ \d]\d )?(?:\d{4} )?` + clock + `(?: [AP]M)?(?: [A-Z]{3,4})?(?: \d{4})?`), "<time>"},
	{":", pattern.New(`^` + month + ` \d{1,2}, \d{4} ` + clock + ` [AP]M`), "<time>"},    // Java
	{":", pattern.New(`^([IWEF])\d{4} ` + clock + ` {1,8}\d{1,10} `), "${1}<time> <n> "}, // glog
	// What a run took, and the seed of its order, in the lines of runners.
	{"", pattern.New(`^((?:\[INFO\] |# |ℹ )?\s{0,9}(?:Total time|Total Test time|Time|Duration|Finished in|Start at|duration_ms|real|user|sys)\b[: \t(]{1,16})` +
		`(?:[\d.,:;()\s%+=]|\b(?:ns|ms|s|m|h|sec|seconds?|minutes?|real|estimated|files|took|to|load|transform|setup|collect|import|tests|environment|prepare|typecheck|runs/s|assertions/s|Memory|[kKMG]?i?B)\b|µs|\d(?:ns|ms|s|m|h))+$`), "${1}<duration>"},
	{"in ", pattern.New(`((?:\b(?:passed|failed|skipped|deselected|xfailed|xpassed|warnings?|errors?|FAILED|SUCCESSFUL|Finished|finished|Done|built|Built|compiled|Completed|tests?|files?|packages?)\b|target\(s\)) in )` + duration + `\b`), "${1}<duration>"},
	{"", pattern.New(`^(\s{0,40}(?:--- |ok |not ok |FAIL|PASS|OK|SKIP|✓|✔|✗|✘|✖|×|√|●|❯|↓|\(fail\)|\(pass\)|\[ {1,7}(?:OK|FAILED|PASSED) {1,7}\]|Failed |Passed |\d{1,6} (?:passing|failing|pending)\b).*[ \t][(\[])` + duration + `( total)?([)\]](?: # .*)?)$`), "${1}<duration>${2}${3}"},
	{"\t", pattern.New(`^((?:FAIL|ok {0,2})\t\S+\t)\d{1,9}\.\d{3}s\b`), "${1}<duration>"},               // go test
	{" sec", pattern.New(`^(\s{0,9}\d{1,6}/\d{1,6} Test .*?) +\d{1,9}\.\d{2} sec$`), "${1} <duration>"}, // CTest
	{"Time elapsed: ", pattern.New(`(Time elapsed: )` + duration + `\b`), "${1}<duration>"},             // Surefire
	{"eed", pattern.New(`^((?:Randomized with seed|Random Seed:|Random seed:|Using seed:|Running ExUnit with seed:|Run options: .*--seed|Using --randomly-seed=|Note: Randomizing tests' orders with a seed of) {0,4})\d{1,20}(,| \.|$)`), "${1}<n>${2}"},
	{"-test.shuffle ", pattern.New(`^(-test\.shuffle )\d{1,20}$`), "${1}<n>"},
}

// sources are the endings of the names of files that have lines. Without them, db.local:5432 were a place.
const sources = `go|py|pyi|js|jsx|mjs|cjs|ts|tsx|mts|cts|vue|svelte|rb|rs|java|kt|kts|scala|groovy|clj|c|h|cc|cpp|cxx|hpp|hh|m|mm|cs|fs|swift|php|lua|pl|pm|t|sh|bash|bats|ex|exs|erl|hs|ml|nim|zig|dart|r|R|` +
	`css|scss|less|html|json|jsonc|yml|yaml|toml|xml|md|txt|sql|tf|proto|rego|graphql|cmake|mk|feature`

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
	for rest := slices.Concat(s.Head, s.Tail); ; {
		if rest = bytes.TrimLeft(rest, " \t\r\n"); len(rest) == 0 {
			return lines
		}
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
}

// clipLine returns a line without what is volatile in it. Behind maxLine bytes, everything counts.
func clipLine(line []byte) string {
	if len(line) <= maxLine {
		return removeVolatile(string(line))
	}
	return fmt.Sprintf("%s… and %x", removeVolatile(string(line[:maxLine])), sha256.Sum256(line[maxLine:]))
}

var temporary = pattern.New(`/(?:tmp|dev/shm)/[\w.+@-]+`)

// removeTemporary returns a line without the random parts of the first name below a directory for
// temporary files. Other names there are those that a program chose.
func removeTemporary(line []byte) []byte {
	places := temporary.FindAllIndex(line, -1)
	if places == nil {
		return line
	}
	var b []byte
	from := 0
	for _, place := range places {
		start := place[0] + 1 + bytes.IndexByte(line[place[0]+1:], '/') + 1 // behind tmp
		if bytes.HasPrefix(line[place[0]:], []byte("/dev/")) {
			start += len("shm/")
		}
		b = append(b, line[from:start]...)
		from = place[1]
		for name := line[start:place[1]]; len(name) > 0; {
			n := bytes.IndexAny(name, ".+@-")
			if n < 0 {
				n = len(name)
			}
			b = append(b, removeRandom(name[:n])...)
			b = append(b, name[n:min(n+1, len(name))]...)
			name = name[min(n+1, len(name)):]
		}
	}
	return append(b, line[from:]...)
}

// randomless returns a part of a name with a mark for what is random in it: a long number at its end, or
// six characters with a digit or two capital letters between others.
func removeRandom(part []byte) []byte {
	head := bytes.TrimRight(part, "0123456789")
	if len(part)-len(head) >= 3 {
		return append(slices.Clone(head), "<n>"...)
	}
	count := func(from, to byte) (n int) {
		for _, c := range head[min(1, len(head)):] {
			if c >= from && c <= to {
				n++
			}
		}
		return n
	}
	isDigit := func(c byte) bool { return c >= '0' && c <= '9' }
	isPython := len(part) == len("tmp")+8 && bytes.HasPrefix(part, []byte("tmp"))
	if isPython || len(part) >= 6 && (count('0', '9') > 0 || count('A', 'Z') > 1 || len(head) > 0 && isDigit(head[0])) {
		return []byte("<random>")
	}
	return part
}

// removeVolatile returns a line without what is volatile in it.
func removeVolatile(line string) string {
	b := removeTemporary(escapes.ReplaceAll([]byte(line), nil))
	for _, m := range masks {
		if m.part == "" || bytes.Contains(b, []byte(m.part)) {
			b = m.what.ReplaceAll(b, []byte(m.to))
		}
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

var (
	digits = pattern.New(`\d+`)
	// failed are the counts of failures in the totals of runners.
	failed = pattern.New(`\d+ (?:fail(?:ed|ing|ures?)?|errors?|problems?|broken|crashed|violations?)\b|\b(?i:fail(?:ed|ures?)?|errors?) ?[:=]? ?\d+`)
)

// endsWithin reports whether the last lines of head follow each other in base, too. Numbers do not
// count: a runner's totals count tests that the pull request adds. Those of failures do with sameCount.
// Documents do not: see documentsOf.
func endsWithin(base, head []string, sameCount bool) bool {
	head = head[max(0, len(head)-maxEnding):]
	all, last := maskDigits(base), maskDigits(head)
	if len(last) == 0 {
		return len(all) == 0
	}
	for i := range len(all) - len(last) + 1 {
		if slices.Equal(all[i:i+len(last)], last) &&
			(!sameCount || slices.Equal(countsOf(base[i:i+len(last)]), countsOf(head))) {
			return true
		}
	}
	return false
}

// countsOf returns the counts of failures in lines.
func countsOf(lines []string) (counts []string) {
	for _, line := range lines {
		if !isDocument(line) {
			counts = append(counts, failed.FindAllString(line, -1)...)
		}
	}
	return counts
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
