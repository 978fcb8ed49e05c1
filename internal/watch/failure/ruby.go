// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var (
	rspecTest    = pattern.New(`^  (\d{1,6})\) (\S.{0,900})$`)
	rspecLoad    = pattern.New(`^An error occurred (?:while loading (\S{1,400}?)\.?(?: - Did you mean\?)?|in an? .{1,60} hook\.?)$`)
	minitestHead = pattern.New(`^\s{0,2}(?:\d{1,6}\) )?(?:Failure|Error):$`)
	minitestName = pattern.New(`^(\S.{0,600}?)(?: \[(.{1,400}):(\d{1,7})\])?:$`)
	testUnit     = pattern.New(`^(?:Failure|Error): (?:test: )?(\S.{0,300}?)\(([\w:]{1,200})\)(?::? ?(.*))?$`)
	rubyRaised   = pattern.New(`^([^\s:][^:]{0,300}):(\d{1,7}):in [` + "`" +
		`'‘].{1,300}['’]: (.{1,900}?) \((\S{1,200})\)$`)
	rubySyntax = pattern.New(`^(?:\S{1,60}: )?(?:--> )?([^\s:][^:]{0,300}\.rb):(\d{1,7}): (syntax errors? .{1,600}|.{0,100}syntax error.{0,600})$`)
)

// readRSpec reads the numbered list after "Failures:".
func readRSpec(s *scan) {
	start := s.findLast(func(t string) bool { return t == "Failures:" })
	for i := max(0, start); i < len(s.lines); i++ {
		f := proposal.Diagnostic{Tool: "rspec"}
		rank := rankTest
		if m := matchContaining(rspecTest, ") ", s.lines[i]); m != nil && start >= 0 {
			f.Test = m[2]
		} else if m := matchContaining(rspecLoad, "An error occurred", s.lines[i]); m != nil {
			rank = rankRunner
			if m[1] != "" {
				f.Suite = s.workspacePath(m[1])
			}
		} else {
			continue
		}
		end := s.findLine(i+1, maxBlock, func(t, line string) bool {
			return rspecTest.MatchString(line) || rspecLoad.MatchString(line) ||
				strings.HasPrefix(line, "Finished in ") || t == "Failed examples:" ||
				strings.HasPrefix(line, "No examples found")
		})
		s.addBlock(rank, f, rspecBody(s.lines[i+1:end]))
		i = end - 1
	}
}

// rspecBody leaves out the code that failed: the message is below it.
func rspecBody(lines []string) []string {
	for i, line := range lines {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "Failure/Error:")
		if !ok {
			continue
		}
		for strings.TrimSpace(rest) == "" && i+1 < len(lines) && strings.TrimSpace(lines[i+1]) != "" {
			i++ // code of several lines is below
		}
		return lines[min(i+1, len(lines)):]
	}
	return lines
}

// readMinitest reads "Failure:" and the name on the next line.
func readMinitest(s *scan) {
	for i := 0; i+1 < len(s.lines); i++ {
		if !strings.HasSuffix(s.lines[i], ":") || !minitestHead.MatchString(s.lines[i]) {
			continue
		}
		m := minitestName.FindStringSubmatch(s.lines[i+1])
		if m == nil || !strings.Contains(m[1], "#") {
			continue
		}
		end := s.findLine(i+2, maxBlock, func(t, line string) bool {
			return minitestHead.MatchString(line) || minitestCounts(t) || strings.HasPrefix(line, "bin/rails test ") ||
				strings.HasPrefix(line, "rails test ")
		})
		f := proposal.Diagnostic{Tool: "minitest", Test: m[1]}
		s.fillReport(&f, s.lines[i+2:end])
		if m[2] != "" {
			s.setPlace(&f, place{name: m[2], row: parseNumber(m[3])})
		}
		s.addReport(rankTest, f)
		i = end - 1
	}
}

func minitestCounts(t string) bool {
	return strings.Contains(t, " runs, ") && strings.Contains(t, " assertions, ")
}

// readTestUnit reads the blocks of test-unit.
func readTestUnit(s *scan) {
	for i := 0; i < len(s.lines); i++ {
		m := matchContaining(testUnit, "(", s.lines[i])
		if m == nil || i == 0 || !strings.HasPrefix(s.lines[i-1], "=====") {
			continue
		}
		end := s.findLine(i+1, maxBlock,
			func(t, line string) bool { return strings.HasPrefix(line, "======") || testUnit.MatchString(line) })
		body := s.lines[i+1 : end]
		var kept, stack []string
		for _, line := range body {
			if _, isFrame := parseFrame(line); isFrame {
				stack = append(stack, line)
				continue
			}
			t := strings.TrimSpace(line)
			if t == "diff:" {
				break
			}
			if !strings.HasPrefix(t, "=>") && !isRubyCode(t) {
				kept = append(kept, strings.TrimSuffix(line, ":"))
			}
		}
		kept = append(kept, stack...)
		f := proposal.Diagnostic{Tool: "test-unit", Test: m[1], Suite: m[2], Message: m[3]}
		if f.Message == "" {
			b := s.readBody(kept)
			f.Message = clipText(strings.Join(b.messages[:min(3, len(b.messages))], " "))
			if !strings.Contains(f.Message, "> expected but was") && len(b.messages) > 0 {
				f.Message = b.shortMessage()
			}
			s.choosePlace(&f, b.frames)
			s.addReport(rankTest, f)
			continue
		}
		s.addBlock(rankTest, f, kept)
		i = end - 1
	}
}

// isRubyCode reports whether a line is of the source that test-unit prints: "  7:   assert".
func isRubyCode(t string) bool {
	n, rest, ok := strings.Cut(t, ":")
	return ok && isNumber(n) && (rest == "" || rest[0] == ' ')
}

// readRuby reads an exception that ended a program, and syntax errors.
func readRuby(s *scan) {
	for i := 0; i < len(s.lines); i++ {
		line := strings.TrimPrefix(s.lines[i], "bundler: failed to load command: ")
		if m := matchContaining(rubyRaised, ":in ", line); m != nil {
			f := proposal.Diagnostic{Tool: "ruby", Message: m[4] + ": " + m[3]}
			end := s.findLine(i+1, maxBlock,
				func(t, line string) bool {
					return !strings.HasPrefix(t, "from ") && t != "" &&
						indentWidth(line) == 0
				})
			s.addBlock(rankStack, f, s.lines[i:end])
			continue
		}
		if m := matchContaining(rubySyntax, "syntax error", line); m != nil {
			f := proposal.Diagnostic{Tool: "ruby", Message: m[3]}
			if s.setPlace(&f, place{name: m[1], row: parseNumber(m[2])}) {
				s.addReport(rankTool, f)
			}
		}
	}
}
