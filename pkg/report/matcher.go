// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strconv"

	"github.com/fumehood/fumehood/pkg/internal/pattern"
)

// maxLine is the maximum number of bytes of a line that are read.
const maxLine = 2000

// colours matches the sequences that set colors or erase the rest of a line.
var colours = pattern.New(`\x1b\[[0-9;:]{0,20}[mK]`)

// A matcher recognizes one form of line that reports something about a location.
type matcher struct {
	tool string
	has  string // a part of every matching line: lines without it need not be matched
	form *pattern.Pattern
}

// matchers lists the more specific first. Groups: path, line, col, level, text.
var matchers = []matcher{
	{"tsc", "TS", pattern.New(`^(?P<path>[^\s(][^(]{0,400})\((?P<line>\d{1,7}),(?P<col>\d{1,5})\): (?P<level>error|warning|message) (?P<text>TS\d+: .+)$`)},
	{"tsc", " - ", pattern.New(`^(?P<path>[^\s:][^:]{0,400}):(?P<line>\d{1,7}):(?P<col>\d{1,5}) - (?P<level>error|warning|message) (?P<text>TS\d+: .+)$`)},
	{"eslint", "]", pattern.New(`^(?P<path>[^\s:][^:]{0,400}):(?P<line>\d{1,7}):(?P<col>\d{1,5}): (?P<text>.+) \[(?P<level>Error|Warning)(?:/[^\]]+)?\]$`)},
	{"", ": ", pattern.New(`^(?P<path>[^\s:][^:]{0,400}):(?P<line>\d{1,7}):(?:(?P<col>\d{1,5}):)? (?P<level>fatal error|error|warning|note|info|style): (?P<text>.+)$`)},
	{"go", ".go:", pattern.New(`^(?:vet: )?(?P<path>[^\s:][^:]{0,400}\.go):(?P<line>\d{1,7})(?::(?P<col>\d{1,5}))?: (?P<text>.+)$`)},
	{"python", ".py", pattern.New(`^(?P<path>[^\s:][^:]{0,400}\.pyi?):(?P<line>\d{1,7}):(?P<col>\d{1,5}): (?P<text>[A-Z]{1,4}\d{2,4} .+)$`)},
	{"pytest", ".py:", pattern.New(`^(?P<path>[^\s:][^:]{0,400}\.py):(?P<line>\d{1,7}): (?P<text>[A-Za-z_.]*(?:Error|Exception|Failed|Exit)\b: .+|assert .+)$`)},
}

var levelOf = map[string]string{
	"error": "failure", "fatal error": "failure", "Error": "failure",
	"warning": "warning", "Warning": "warning", "style": "notice", "note": "notice", "info": "notice", "message": "notice",
}

// names identifies the tools that use the common form, by the end of their lines.
var names = []struct {
	tool string
	ends *pattern.Pattern
}{
	{"shellcheck", pattern.New(`\[SC\d{4}\]$`)},
	{"mypy", pattern.New(`\s\[[a-z-]+\]$`)},
	{"compiler", pattern.New(`\[-W[^\]]+\]$`)},
}

// one looks for a line that is complete by itself.
func (s *scanner) one(line string) bool {
	for _, m := range matchers {
		groups := match(m.form, m.has, line)
		if groups == nil {
			continue
		}
		get := func(name string) string {
			if i := m.form.SubexpIndex(name); i > 0 {
				return groups[i]
			}
			return ""
		}
		if s.place(get("path"), get("line"), get("col")) {
			s.say(toolOf(m.tool, get("text")), levelOf[get("level")], get("text"))
			return true
		}
	}
	return false
}

func toolOf(tool, text string) string {
	if tool != "" {
		return tool
	}
	for _, n := range names {
		if n.ends.MatchString(text) {
			return n.tool
		}
	}
	return "compiler"
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}
