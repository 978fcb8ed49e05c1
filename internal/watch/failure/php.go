// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var (
	phpunitList    = pattern.New(`^There (?:was|were) (\d{1,6}) (?:PHPUnit )?(failure|error|test runner)s?\b.*:$`)
	phpunitTest    = pattern.New(`^(\d{1,6})\) ([\w\\]{1,300}::\S.{0,600}|[\w\\]{1,300})$`)
	phpunitCount   = pattern.New(`^Tests: \d{1,7}, Assertions: \d{1,9}(?:, Errors: (\d{1,6}))?(?:, Failures: (\d{1,6}))?`)
	phpunitTestdox = pattern.New(`^ ✘ (.{1,600})$`)
	phpFatal       = pattern.New(`^(?:PHP )?(?:Fatal error|Parse error|Warning|Recoverable fatal error): {1,2}(.{1,900}?) in (\S{1,400}\.(?:php|phpt|inc|phtml))(?::| on line )(\d{1,7})$`)
)

// readPHPUnit reads the numbered list of failures or errors. Warnings and risky tests, which
// have lists of the same form, are left out.
func readPHPUnit(s *scan) {
	inList := false
	found := 0
	before := len(s.found)
	for i := 0; i < len(s.lines); i++ {
		line := s.lines[i]
		if strings.HasPrefix(line, "There w") {
			inList = phpunitList.MatchString(line)
			continue
		}
		m := matchContaining(phpunitTest, ") ", line)
		if m == nil || !inList {
			continue
		}
		end := s.findLine(i+1, maxBlock, func(t, line string) bool {
			return phpunitTest.MatchString(line) || t == "--" || strings.HasPrefix(line, "FAILURES!") ||
				strings.HasPrefix(line, "ERRORS!") || strings.HasPrefix(line, "There w")
		})
		s.addBlock(rankTest, proposal.Diagnostic{Tool: "phpunit", Test: m[2]}, phpunitBody(s.lines[i+1:end]))
		found++
		i = end - 1
	}
	s.keepCounted(before, phpunitCount)
	if found == 0 {
		readTestdox(s)
	}
}

// phpunitBody joins a custom message and the sentence that follows it.
func phpunitBody(lines []string) []string {
	for i, line := range lines {
		if i > 0 && strings.HasPrefix(line, "Failed asserting that ") && strings.TrimSpace(lines[i-1]) != "" {
			joined := append([]string{}, lines[:i-1]...)
			joined = append(joined, strings.TrimSpace(lines[i-1])+" "+line)
			return append(joined, lines[i+1:]...)
		}
	}
	return lines
}

// readTestdox reads the form that names tests in prose.
func readTestdox(s *scan) {
	class := ""
	for i := 0; i < len(s.lines); i++ {
		line := s.lines[i]
		if line != "" && indentWidth(line) == 0 && !strings.HasPrefix(line, "✘") {
			class = strings.TrimSpace(line)
		}
		m := matchContaining(phpunitTestdox, "✘", line)
		if m == nil {
			continue
		}
		end := s.findLine(i+1, maxBlock, func(t, line string) bool {
			return !strings.HasPrefix(line, "   ")
		})
		var body []string
		for _, line := range s.lines[i+1 : end] {
			t := strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(strings.ReplaceAll(line, "·", " ")), "│├┐┴┊╵ "))
			body = append(body, t)
		}
		name := m[1]
		if i := strings.LastIndex(name, "  "); i > 0 {
			name = strings.TrimSpace(name[:i])
		}
		s.addBlock(rankTest, proposal.Diagnostic{Tool: "phpunit", Suite: class, Test: name}, phpunitBody(body))
		i = end - 1
	}
}

// readPHP reads errors that end a program.
func readPHP(s *scan) {
	for i := 0; i < len(s.lines); i++ {
		m := matchContaining(phpFatal, " in ", s.lines[i])
		if m == nil {
			continue
		}
		f := proposal.Diagnostic{Tool: "php", Message: strings.TrimPrefix(m[1], "Uncaught ")}
		end := s.findLine(i+1, 30, func(t, line string) bool { return strings.HasPrefix(t, "thrown in ") || t == "" })
		b := s.readBody(s.lines[i+1 : end])
		first, ok := s.resolvePlace(place{name: m[2], row: parseNumber(m[3])})
		if ok {
			b.frames = append([]proposal.Frame{first}, b.frames...)
		}
		s.choosePlace(&f, b.frames)
		s.addReport(rankStack, f)
	}
}
