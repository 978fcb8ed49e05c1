// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"cmp"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// noise are lines that a caller of the command that failed prints: they say only that it did.
var noise = []*pattern.Pattern{
	pattern.New(`^npm (?:error|ERR!|warn|WARN|notice)\b`),
	pattern.New(`^g?make(?:\[\d{1,3}\])?: (?:\*\*\* )?(?:\[.{1,300}\] Error \d|Leaving directory|Entering directory|Target .{1,200} not remade)`),
	pattern.New(`^\s{0,2}ELIFECYCLE\b|^ ERR_PNPM|^error Command failed with |^info Visit https://yarnpkg|^error: script ".{1,100}" exited with code|^Lifecycle script .{1,200} failed`),
	pattern.New(`^(?:Error: )?(?:Process completed|Command failed|The process '.{1,300}' failed) with exit code \d`),
	pattern.New(`^collect2: error: ld returned|^clang: error: linker command failed|^ninja: build stopped|^compilation terminated\.|^\d{1,5} errors? generated\.|^Node\.js v\d|^\s{0,4}at \S`),
	pattern.New(`^(?:exit status \d{1,3}|\[ERROR\]\s*|\[ERROR\] (?:\[Help|To see the full|Re-run Maven|For more information|After correcting).*|Errors while running CTest|FAIL|ERROR)$`),
	pattern.New(`^(?:error: (?:test failed, to rerun|could not compile|aborting due|doctest failed)|For more information about this error|warning: build failed)`),
	pattern.New(`^\+{1,2} \S|^Result: FAIL$|^# Looks like your test|^Finished .{1,60} target|^ok\b`),
	pattern.New(`^(?:inifile|rootdir): `),
	pattern.New(`^[-=_*~─━.\s^|+<>{}()\[\]]+$`),
}

// nothing is what a tool prints that found nothing: an empty list, or a line that says so. It is never
// why a command failed.
var nothing = pattern.New(`^(?:[^\pL\pN]+|(?i:all checks passed!?|success: no issues found.{0,100}|no (?:errors?|issues|problems|warnings|findings)(?: found)?[.!]?|(?:found )?0 (?:errors|issues|problems|warnings)(?: and 0 (?:errors|warnings))?[.!]?))$`)

// npmError matches what npm says of its own failure, with the words in a group. npmUsage are lines of it
// that do not say why, and npmMissing says what a lock file lacks, after a general line.
var (
	npmError   = pattern.New(`^npm (?:error|ERR!) ([\pL` + "`" + `].*)$`)
	npmUsage   = pattern.New(`^npm (?:error|ERR!) (?:code|path|command|errno|syscall|cwd|signal|Usage:|Options:|A complete log|Lifecycle script|workspace|location)\b`)
	npmMissing = pattern.New(`^npm (?:error|ERR!) (?:Missing|Invalid): `)
)

// npmLine returns the line of a stream in which npm says why it failed, or "".
func npmLine(lines []string) (found string) {
	for _, line := range lines[:min(len(lines), 2000)] {
		switch {
		case npmMissing.MatchString(line):
			return line
		case found == "" && npmError.MatchString(line) && !npmUsage.MatchString(line):
			found = line
		}
	}
	return found
}

// lastLine returns the line to show if no reader recognizes anything: the last of standard
// error, or else of standard output, that says more than that a command failed. If there is none, it
// is the one in which npm says why, or the last.
func lastLine(stdout, stderr []byte) string {
	fallback := ""
	for _, piece := range [][]byte{stderr, stdout} {
		lines := splitLines(piece)
		for i := len(lines) - 1; i >= 0 && i > len(lines)-2000; i-- {
			t := strings.TrimSpace(lines[i])
			if t == "" || nothing.MatchString(t) {
				continue
			}
			if fallback == "" {
				fallback = t
			}
			if !isNoise(t) {
				return t
			}
		}
	}
	return cmp.Or(npmLine(splitLines(stderr)), fallback)
}

// LastLineOf is lastLine for the kept output of a result.
func LastLineOf(r *proposal.Result) string {
	if r == nil {
		return ""
	}
	join := func(s proposal.Stream) []byte { return append(append(append([]byte{}, s.Head...), '\n'), s.Tail...) }
	if !r.Stdout.Truncated && !r.Stderr.Truncated {
		return lastLine(append(append([]byte{}, r.Stdout.Head...), r.Stdout.Tail...),
			append(append([]byte{}, r.Stderr.Head...), r.Stderr.Tail...))
	}
	return lastLine(join(r.Stdout), join(r.Stderr))
}

func isNoise(t string) bool {
	for _, p := range noise {
		if p.MatchString(t) {
			return true
		}
	}
	return false
}
