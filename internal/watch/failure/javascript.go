// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxBlock is the maximum number of lines about one failure.
const maxBlock = 400

var (
	jestTest   = pattern.New(`^  ● (\S.{0,900})$`)
	jestFile   = pattern.New(`^ ?(?:FAIL|PASS) {1,2}(?:\S{1,100} )?(\S{1,400}\.[A-Za-z]{2,5})(?: \([\d.]{1,10} m?s\))?$`)
	vitestTest = pattern.New(`^\s?FAIL  (?:\|[^|]{1,100}\| )?(\S.{0,400}?\.[A-Za-z]{2,5})(?: > (.{1,900}))?(?: \[ .{1,400} \])?$`)
	mochaCount = pattern.New(`^  \d{1,6} failing$`)
	// The end of the list of tests, before that of failures.
	mochaPassing = pattern.New(`^  \d{1,6} passing \([\d.]{1,10}m?[sm]\)$`)
	numbered     = pattern.New(`^\s{0,4}\d{1,6}\) (\S.{0,900})$`)
	nodeTestAt   = pattern.New(`^test at (.{1,400}:\d{1,7}:\d{1,5})$`)
	nodeTest     = pattern.New(`^✖ (.{1,900}?)(?: \([\d.]{1,20}m?s\))?$`)
	// A test that is TODO fails nothing: its reason is behind the time that it took, which ends each other line.
	nodeTodo    = pattern.New(`^✖ .{1,900} \([\d.]{1,20}m?s\) # .{1,900}$`)
	nodeTook    = pattern.New(` \([\d.]{1,20}m?s\)$`)
	avaFail     = pattern.New(`^\s{2,8}✘ \[fail\]: (.{1,900})$`)
	avaUncaught = pattern.New(`^  Uncaught exception in (\S{1,400})$`)
)

// readJest reads the blocks that begin with a bullet and a name. If there is a summary of all
// failing tests, only that is read.
func readJest(s *scan) {
	start := s.findLast(func(t string) bool { return t == "Summary of all failing tests" })
	file, known := "", ""
	for i := max(0, start); i < len(s.lines); i++ {
		if m := jestFile.FindStringSubmatch(s.lines[i]); m != nil {
			file, known = s.workspacePath(m[1]), s.knownFile(m[1])
			continue
		}
		m := matchContaining(jestTest, "●", s.lines[i])
		if m == nil || m[1] == "Console" {
			continue
		}
		end := s.findLine(i+1, maxBlock, func(t, line string) bool {
			return strings.HasPrefix(line, "  ● ") || jestFile.MatchString(line) ||
				strings.HasPrefix(line, "Test Suites:") || strings.HasPrefix(line, "Snapshot Summary")
		})
		f := proposal.Diagnostic{Tool: "jest", Suite: file, Test: strings.ReplaceAll(m[1], " › ", " > ")}
		body := s.lines[i+1 : end]
		if strings.HasPrefix(m[1], "Test suite failed to run") {
			f.Test = ""
			for j, line := range body {
				if strings.TrimSpace(line) == "Details:" {
					body = body[j+1:]
					break
				}
			}
			f.File = known
			s.addBlock(rankRunner, f, body)
		} else {
			s.addBlock(rankTest, f, body)
		}
		i = end - 1
	}
}

// readVitest reads the sections of failed tests, suites and unhandled errors.
func readVitest(s *scan) {
	var heads []proposal.Diagnostic
	for i := 0; i < len(s.lines); i++ {
		line := s.lines[i]
		if strings.HasPrefix(line, "⎯") && strings.Contains(line, "Unhandled ") &&
			!strings.Contains(line, "Unhandled Errors") {
			heads = []proposal.Diagnostic{{Tool: "vitest"}}
			continue
		}
		if m := matchContaining(vitestTest, " FAIL  ", line); m != nil {
			f := proposal.Diagnostic{Tool: "vitest", Suite: s.workspacePath(m[1]), Test: m[2], File: s.knownFile(m[1])}
			if i := strings.Index(f.Test, " [ "); i > 0 && strings.HasSuffix(f.Test, " ]") {
				f.Test = f.Test[:i]
			}
			heads = append(heads, f)
			continue
		}
		if len(heads) == 0 {
			continue
		}
		end := s.findLine(i, maxBlock,
			func(t, line string) bool { return strings.HasPrefix(line, "⎯") || vitestTest.MatchString(line) })
		for _, f := range heads {
			rank := rankTest
			if f.Test == "" {
				rank = rankRunner
			}
			s.addBlock(rank, f, s.lines[i:end])
		}
		heads, i = nil, end-1
	}
}

// readMocha reads the list after the number of failing tests.
func readMocha(s *scan) {
	isCount := func(line string) bool { return strings.HasSuffix(line, " failing") && mochaCount.MatchString(line) }
	start := s.findLast(func(t string) bool { return isCount("  " + t) })
	if start < 0 {
		return
	}
	inList := true
	for i := start + 1; i < len(s.lines); i++ {
		if isCount(s.lines[i]) || mochaPassing.MatchString(s.lines[i]) { // of a further run
			inList = isCount(s.lines[i])
			continue
		}
		m := numbered.FindStringSubmatch(s.lines[i])
		if m == nil || !inList {
			continue
		}
		names := []string{m[1]}
		for i++; i < len(s.lines) && !strings.HasSuffix(s.lines[i-1], ":") && strings.TrimSpace(s.lines[i]) != ""; i++ {
			names = append(names, strings.TrimSpace(s.lines[i]))
		}
		end := s.findLine(i, maxBlock, func(t, line string) bool {
			return numbered.MatchString(line) && indentWidth(line) == 2 || mochaPassing.MatchString(line)
		})
		f := proposal.Diagnostic{Tool: "mocha", Test: strings.TrimSuffix(strings.Join(names, " > "), ":")}
		s.addBlock(rankTest, f, s.lines[i:end])
		i = end - 1
	}
}

// readNodeSpec reads the section of failing tests that node's test runner prints last.
func readNodeSpec(s *scan) {
	start := s.findLast(func(t string) bool { return t == "✖ failing tests:" || t == "Failed tests:" })
	if start < 0 {
		return
	}
	for i := start + 1; i < len(s.lines); i++ {
		m := matchContaining(nodeTest, "✖", strings.TrimSpace(s.lines[i]))
		if m == nil {
			continue
		}
		end := s.findLine(i+1, maxBlock, func(t, line string) bool {
			return strings.HasPrefix(line, "test at ") || strings.HasPrefix(line, "✖ ")
		})
		if matchContaining(nodeTodo, "s) # ", m[0]) != nil && !nodeTook.MatchString(m[0]) {
			i = end - 1
			continue
		}
		f := proposal.Diagnostic{Tool: "node:test", Test: m[1]}
		rank := rankTest
		if at := matchContaining(nodeTestAt, "test at ", s.lines[i-1]); at != nil {
			if p, ok := parsePlace(at[1]); ok {
				s.setPlace(&f, p)
			}
			if name := s.workspacePath(m[1]); name != "" && name == f.File {
				rank = rankLine // the file did not run: what it printed says why
			}
		}
		f.Suite = f.File
		b := strings.Join(s.lines[i+1:end], " ")
		if !strings.Contains(b, "subtests failed'") && !strings.Contains(b, "subtest failed'") {
			s.addBlock(rank, f, s.lines[i+1:end])
		}
		i = end - 1
	}
}

// readAVA reads the blocks that begin with the name of a test in the list of failed ones.
func readAVA(s *scan) {
	failed := []string{}
	isTitle := func(line string) string {
		if len(line) < 3 || !strings.HasPrefix(line, "  ") || line[2] == ' ' {
			return ""
		}
		for _, f := range failed {
			if f == line[2:] || strings.HasPrefix(f, line[2:]+" ") {
				return line[2:]
			}
		}
		return ""
	}
	for i := 0; i < len(s.lines); i++ {
		line := s.lines[i]
		if m := matchContaining(avaFail, "✘ [fail]", line); m != nil && len(failed) < s.maxListed() {
			failed = append(failed, m[1])
			continue
		}
		title, rank := isTitle(line), rankTest
		f := proposal.Diagnostic{Tool: "ava", Test: title}
		if m := matchContaining(avaUncaught, "Uncaught", line); m != nil {
			title, rank, f.Suite = m[1], rankRunner, s.workspacePath(m[1])
		}
		if title == "" {
			continue
		}
		end := s.findLine(i+1, maxBlock, func(t, line string) bool {
			return t == "─" || isTitle(line) != "" || avaUncaught.MatchString(line) || strings.HasPrefix(t, "✘ ")
		})
		s.addBlock(rank, f, dropAVAValue(s.lines[i+1:end]))
		i = end - 1
	}
}

// dropAVAValue removes the value "TypeError { … }" that is printed before the stack of it, and
// the sentence that announces it.
func dropAVAValue(lines []string) []string {
	for i, line := range lines {
		if line == "  }" {
			for j := i; j >= 0; j-- {
				if strings.HasSuffix(lines[j], "Error {") {
					return lines[i+1:]
				}
			}
		}
	}
	return lines
}

// readJasmine reads "1) name" with a message and a stack.
func readJasmine(s *scan) {
	for i := 0; i+1 < len(s.lines); i++ {
		m := matchContaining(numbered, ") ", s.lines[i])
		if m == nil || strings.TrimSpace(s.lines[i+1]) != "Message:" {
			continue
		}
		end := s.findLine(i+2, maxBlock,
			func(t, line string) bool { return numbered.MatchString(line) || strings.HasSuffix(t, " failures") })
		var body []string
		for _, line := range s.lines[i+2 : end] {
			if t := strings.TrimSpace(line); t != "Stack:" && t != "Message:" {
				body = append(body, line)
			}
		}
		s.addBlock(rankTest, proposal.Diagnostic{Tool: "jasmine", Test: m[1]}, body)
		i = end - 1
	}
}

// headedBlocks are runners that print a line with the name of a test, and below it all about
// that test. An end is a line after the last of them.
var headedBlocks = []struct {
	tool, has string
	head, end *pattern.Pattern
}{
	{"playwright", "─", pattern.New(`^  \d{1,6}\) (?:\[[^\]]{1,60}\] › )?\S{1,300}:\d{1,7}:\d{1,5} › (.{1,600}?) ─+$`), pattern.New(`^  \d{1,6} (?:failed|flaky|passed|skipped|did not run|interrupted)\b|^    Retry #\d`)},
	{"uvu", "  FAIL  ", pattern.New(`^ {2,4}FAIL  (.{1,300}?  ".{1,300})"$`), pattern.New(`^  Total: `)},
	{"deno", " => ", pattern.New(`^(\S.{0,600}) => \S{1,300}:\d{1,7}:\d{1,5}$`), pattern.New(`^ FAILURES |^FAILED \|`)},
}

// readHeaded reads headedBlocks.
func readHeaded(s *scan) {
	for _, b := range headedBlocks {
		for i := 0; i < len(s.lines); i++ {
			m := matchContaining(b.head, b.has, s.lines[i])
			if m == nil {
				continue
			}
			end := s.findLine(i+1, maxBlock, func(t, line string) bool {
				return matchContaining(b.head, b.has, line) != nil || b.end.MatchString(line)
			})
			if strings.TrimSpace(strings.Join(s.lines[i+1:end], "")) != "" {
				name := strings.NewReplacer(" › ", " > ", " ... ", " > ", `  "`, " > ").Replace(m[1])
				s.addBlock(rankTest, proposal.Diagnostic{Tool: b.tool, Test: name}, s.lines[i+1:end])
			}
			i = end - 1
		}
	}
}

var (
	bunVerdict = pattern.New(`^\((pass|fail|skip|todo)\) (.{1,600}?)(?: \[[\d.]{1,12}m?s\])?$`)
	bunDiff    = pattern.New(`^([-+]) {3}(.{1,400})$`)
	labFailed  = pattern.New(`^\s{2}\d{1,5}\) (.{1,600}):$`)
)

// readBun reads what Bun's runner prints before the name of a test that failed.
func readBun(s *scan) {
	start := 0
	for i, line := range s.lines {
		m := matchContaining(bunVerdict, ") ", line)
		if m == nil {
			continue
		}
		if m[1] == "fail" {
			f := proposal.Diagnostic{Tool: "bun", Test: m[2]}
			body := s.lines[max(start, i-maxBlock):i]
			for j := len(body) - 1; j >= 0; j-- {
				said, ok := strings.CutPrefix(body[j], "error: ")
				if !ok {
					continue
				}
				body, f.Message = body[j+1:], said
				break
			}
			for _, line := range body {
				if d := matchContaining(bunDiff, "   ", line); d != nil && d[1] == "-" && f.Expected == "" {
					f.Expected = strings.TrimSuffix(d[2], ",")
				} else if d != nil && d[1] == "+" && f.Actual == "" {
					f.Actual = strings.TrimSuffix(d[2], ",")
				}
			}
			if i+1 < len(s.lines) && strings.HasPrefix(strings.TrimSpace(s.lines[i+1]), "^ ") { // it timed out
				f.Message = strings.TrimSpace(s.lines[i+1])[2:]
			}
			s.addBlock(rankTest, f, body)
		}
		start = i + 1
	}
}

// readLab reads the list that lab prints at the end.
func readLab(s *scan) {
	start := s.findLast(func(t string) bool { return t == "Failed tests:" })
	if start < 0 {
		return
	}
	for i := start + 1; i < len(s.lines); i++ {
		m := matchContaining(labFailed, ") ", s.lines[i])
		if m == nil {
			continue
		}
		isEnd := func(t, line string) bool {
			return labFailed.MatchString(line) ||
				strings.HasSuffix(t, " tests failed")
		}
		end := s.findLine(i+1, maxBlock, isEnd)
		body := slices.DeleteFunc(slices.Clone(s.lines[i+1:end]),
			func(line string) bool { return strings.TrimSpace(line) == "" })
		if len(body) > 2 && strings.TrimSpace(body[0]) == "actual expected" {
			body = body[2:] // both values without a blank between them
		}
		s.addBlock(rankTest, proposal.Diagnostic{Tool: "lab", Test: m[1]}, body)
		i = end - 1
	}
}
