// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The limits of what is read of a stream: the first and the last bytes, and of each line.
// Of all lines, only those that a pattern can match are kept, up to a limit.
const (
	maxScanned = 64 << 10
	maxLine    = 2000
	maxKept    = 32 << 10
)

// A command is a record whose command failed, prepared for the signatures.
type command struct {
	proposal.Record
	seen    *proposal.Observations
	unmet   []proposal.Unmet
	lines   []string // of stdout, then of stderr, without colors: those with a keyword
	kept    int      // their bytes
	partial bool     // some of the output is missing
	other   bool     // a line reports a failure that no Cause explains
}

// newCommand returns false for a record that can have no Cause.
func newCommand(r proposal.Record, unmet []proposal.Unmet) (*command, bool) {
	if !r.Runnable() || r.Result == nil {
		return nil, false
	}
	res := r.Result
	o := res.Observations
	if res.Status != proposal.Exited || res.ExitCode == 0 || res.Limit != "" || o == nil || !o.Complete ||
		o.Counts.Refused > 0 {
		return nil, false
	}
	c := &command{Record: r, seen: o, unmet: unmet}
	for _, s := range []proposal.Stream{res.Stdout, res.Stderr} {
		c.partial = c.partial || s.Truncated || s.Withheld != "" || int64(len(s.Head)+len(s.Tail)) < s.Bytes
		for _, piece := range streamParts(s) {
			if len(piece) > 2*maxScanned {
				c.partial = true
				c.collectLines(piece[:maxScanned])
				piece = piece[len(piece)-maxScanned:]
			}
			c.collectLines(piece)
		}
	}
	c.other = c.failsOtherwise()
	return c, true
}

// streamParts returns the contiguous parts of a stream.
func streamParts(s proposal.Stream) [][]byte {
	if s.Truncated {
		return [][]byte{s.Head, s.Tail}
	}
	return [][]byte{slices.Concat(s.Head, s.Tail)}
}

var colors = pattern.New(`\x1b\[[0-9;]*[A-Za-z]`)

func (c *command) collectLines(piece []byte) {
	for line := range bytes.FieldsFuncSeq(colors.ReplaceAll(piece, nil),
		func(r rune) bool { return r == '\n' || r == '\r' }) {
		if len(line) < shortest || !slices.ContainsFunc(keywords,
			func(word []byte) bool { return bytes.Contains(line, word) }) {
			continue
		}
		if c.kept += len(line); c.kept > maxKept {
			c.partial = true
			return
		}
		c.lines = append(c.lines, strings.TrimRight(string(line[:min(len(line), maxLine)]), " \t"))
	}
}

// keywords are parts of every line that a pattern of this package matches.
var keywords = splitWords(`not found;No such file;rror;ERROR;xception;FAIL;fail;Fail;ssert;panic;Segmentation;DATA RACE;.go:;expect(received)
	requires;toolchain;GOPROXY;not installed;syncing channel;target release;notsup;Cannot;annot;No module named;managed;offline;ould not
	set up the project;bundle install;composer install;node_modules;seem to have been;cache mode;getaddrinfo;lookup ;esolve;nknown;resolution
	Name or service;unreachable;ENETUNREACH;efuse;ECONNREFUSED;Can't connect;not ok;✗;✖;✘;downloading;Require stack:;ELIFECYCLE;make
	no required module;go.sum;not in std;HTTP request;UnknownHost;EAI_AGAIN;ENOTFOUND;Unchecked dep;mix deps.get;nxdomain;unavailable`)

// shortest is the length of the shortest keyword, except for marks of failed tests, which
// have a space and a name after them.
const shortest = 4

func splitWords(words string) (list [][]byte) {
	for word := range strings.FieldsFuncSeq(words, func(r rune) bool { return r == ';' || r == '\n' || r == '\t' }) {
		list = append(list, []byte(word))
	}
	return list
}

// findLine returns the first line that p matches, and its groups.
func (c *command) findLine(p *pattern.Pattern) (line string, groups []string) {
	for _, line := range c.lines {
		if m := p.FindStringSubmatch(line); m != nil {
			return line, m
		}
	}
	return "", nil
}

func (c *command) hasLineWith(part string) bool {
	return slices.ContainsFunc(c.lines, func(line string) bool { return strings.Contains(line, part) })
}

// isReliable reports whether all of the output is here, and none of it reports a failure
// with another reason.
func (c *command) isReliable() bool { return !c.partial && !c.other }

// trimProgramName returns a program's name without directory and version: "python3.11" is "python".
func trimProgramName(name string) string {
	name = path.Base(name)
	if short := strings.TrimRight(name, "0123456789."); short != "" {
		return short
	}
	return name
}

// hasStarted reports whether the command started one of names from the root file system,
// which the pull request cannot change.
func (c *command) hasStarted(names ...string) bool {
	return slices.ContainsFunc(c.seen.Programs, func(p proposal.Program) bool {
		return p.Runs > 0 && p.Layer == proposal.LayerRootfs &&
			(slices.Contains(names, trimProgramName(p.Name)) || slices.Contains(names, trimProgramName(p.Path)))
	})
}

// isNeverStarted reports whether no program with name was started anywhere, as far as the list of
// programs is complete.
func (c *command) isNeverStarted(name string) bool {
	return !slices.ContainsFunc(c.seen.Programs, func(p proposal.Program) bool {
		return p.Omitted > 0 || p.Name == name || path.Base(p.Path) == name ||
			p.Script != "" && path.Base(p.Script) == name
	})
}

// isInText reports whether name is a program of the command's own text.
func (c *command) isInText(name string) bool {
	return slices.ContainsFunc(c.Analysis.Commands, func(k proposal.Command) bool { return k.Program == name })
}

var (
	// another matches lines that report a failure of the code itself.
	another = pattern.New(`Assertion(?:Error|Failed)|ERR_ASSERTION|Error Trace:|expect\(received\)|Failure/Error:|Failed asserting|(?i:\bassertion failed)|^E\s+assert |panicked at|^panic: |Segmentation fault|error TS[0-9]+|error\[E[0-9]+\]|SyntaxError|\[build failed\]|DATA RACE|Failures: [1-9]|failures=[1-9]|(?i:\btests? failed, to rerun\b)|test result: FAILED|^\S+:[0-9]+(?::[0-9]+)?: (?:fatal )?error: `)
	// anError matches lines that name an error, and positions in Go code.
	anError = pattern.New(`^\s*(?:E\s+)?(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception)\b(?: \[\w+\])?: |^\s*\S+\.go:\d+(?::\d+)?:(?: |$)`)
	// excused matches lines of failures that a Cause explains, and their frames.
	excused = pattern.New(`Cannot find (?:module|package) '|No module named |GOPROXY=off|dial (?:tcp|udp|unix)|[Cc]onnection refused|ECONNREFUSED|getaddrinfo|EAI_AGAIN|ENOTFOUND|ENETUNREACH|ENETDOWN|name resolution|Name or service not known|[Ff]ailed to resolve|[Nn]etwork is unreachable|Could not resolve host|Failed to import test module|fetch failed|UnknownHostException|Failed opening required '[^']*vendor/autoload.php`)
	// aTest matches lines of single failed tests, and counted the number of failed tests.
	aTest   = pattern.New(`^(?:--- FAIL|not ok) |^\s*(?:FAIL(?:ED|URE)?:? |✗ |✖ |✘ )`)
	counted = pattern.New(`^(?:#|ℹ) fail ([0-9]+)$|\b([0-9]+) failing$|(?:^|[,(:=]|^ *Tests)\s*([0-9]+) failed\b|\b([0-9]+) errors?\b(?: in |$)`)
)

// failsOtherwise reports whether the output has a failure that no Cause explains: a line
// that names one, or more failed tests than lines that explain them.
func (c *command) failsOtherwise() bool {
	explained, failed, tests := 0, 0, map[string]bool{}
	for _, line := range c.lines {
		switch excuse := excused.MatchString(line); {
		case another.MatchString(line):
			return true
		case excuse:
			explained++
		case anError.MatchString(line):
			return true
		case aTest.MatchString(line) && !strings.HasSuffix(line, "failing tests:"):
			tests[line] = true
		}
		if m := counted.FindStringSubmatch(line); m != nil {
			failed = max(failed, parseNumber(strings.Join(m[1:], "")))
		}
	}
	return max(failed, len(tests)) > explained
}

func parseNumber(digits string) int {
	n := 0
	for _, d := range digits {
		n = min(1<<20, 10*n+int(d-'0'))
	}
	return n
}
