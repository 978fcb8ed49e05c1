// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var (
	pytestHead    = pattern.New(`^_{3,200} (.{1,900}?) _{3,200}$`)
	pytestSection = pattern.New(`^={3,200} (.{1,200}?) ={3,200}$`)
	pytestCapture = pattern.New(`^-{3,200} ?Captured .{1,200} ?-{3,200}$`)
	pytestSummary = pattern.New(`^(FAILED|ERROR) (.+?)(?: - (.*))?$`)
	pytestSays    = pattern.New(`^E(?:\s{1,8}(.*))?$`)
	pytestAt      = pattern.New(`^([^\s:][^:]{0,400}\.py):(\d{1,7}): ([A-Za-z_.]*(?:Error|Exception|Failed|Exit|Warning|Interrupt|Timeout)?|in .{1,200})$`)
	pytestIndex   = pattern.New(`^At index \d{1,9} diff: (.{1,400}?) != (.{1,400})$`)
	pytestLine    = pattern.New(`^([^\s:][^:]{0,400}\.py):(\d{1,7}): ([A-Za-z_.]*(?:Error|Exception|Failed|Exit)\b: .+|assert .+)$`)
	unittestCount = pattern.New(`^FAILED \((?:failures=(\d{1,6}))?(?:, )?(?:errors=(\d{1,6}))?`)
	unittestHead  = pattern.New(`^(FAIL|ERROR): (\S{1,300}) \(([^()]{1,400})\)(?: (.{1,400}))?$`)
	pythonSays    = pattern.New(`^(?:E\s{1,8})?([A-Za-z_][A-Za-z0-9_.]{0,100}(?:Error|Exception|Failure|Interrupt|Exit|Warning|Timeout|Skip|Iteration|Group)|[a-z_][a-z0-9_]{0,60}(?:\.[A-Za-z_][A-Za-z0-9_]{0,60}){1,6})(?:: .*)?$`)
	chained       = []string{"During handling of the above exception", "The above exception was the direct cause"}
)

// readPytest reads the sections of FAILURES and ERRORS. If there is a summary, only the tests
// that it names have failed.
func readPytest(s *scan) {
	summary := s.pytestSummary()
	isNamed := func(head string) string {
		for _, name := range summary {
			if pytestNames(name, head) {
				return name
			}
		}
		return ""
	}
	read := map[string]bool{}
	if !s.Every || len(summary) == 0 { // or each failure would count twice, once without its name
		s.pytestLines()
	}
	for i := 0; i < len(s.lines); i++ {
		m := matchContaining(pytestHead, "___", s.lines[i])
		if m == nil {
			continue
		}
		head := m[1]
		end := s.findLine(i+1, 4*maxBlock, func(t, line string) bool {
			return strings.HasPrefix(line, "___") && pytestHead.MatchString(line) ||
				strings.HasPrefix(line, "===") && pytestSection.MatchString(line) ||
				strings.HasPrefix(line, "---") && pytestCapture.MatchString(line)
		})
		name := isNamed(head)
		if name == "" && len(summary) > 0 && !s.Every {
			continue
		}
		f := proposal.Diagnostic{Tool: "pytest", Test: head}
		if name != "" {
			f.Test = name
		}
		rank := rankTest
		if rest, isFile := strings.CutPrefix(head, "ERROR collecting "); isFile {
			rank, f.Test, f.Suite, f.File = rankRunner, "", s.workspacePath(rest), s.knownFile(rest)
		}
		s.pytestBlock(&f, s.lines[i+1:end])
		if f.Message == "" {
			f.Message = summaryMessage(s.lines, f.Test)
		}
		s.addReport(rank, f)
		read[name], i = true, end-1
	}
	for _, line := range s.lines {
		if m := matchContaining(pytestSummary, " ", line); m != nil && slices.Contains(summary, m[2]) && !read[m[2]] {
			read[m[2]] = true
			f := proposal.Diagnostic{Tool: "pytest", Test: m[2], Message: m[3]}
			rank := rankTest
			if !strings.Contains(m[2], "::") {
				rank, f.Test, f.Suite = rankRunner, "", m[2]
			}
			if !s.Every && !s.setPlace(&f, s.pytestLineOf(m[3])) { // which counts, and needs no place
				name, _, _ := strings.Cut(m[2], "::")
				f.File = s.knownFile(name)
			}
			s.addReport(rank, f)
		}
	}
}

// pytestLines reads messages and places outside sections: of output whose beginning is cut
// off, and of --tb=line. The first section ends them.
func (s *scan) pytestLines() {
	var says []string
	var at proposal.Diagnostic
	flush := func(ending string) {
		f := at
		switch {
		case len(says) > 0:
			f.Message = pythonMessage(says)
		case ending != "":
			f.Message = ending
		}
		if f.Message != "" && f.File != "" {
			f.Tool = "pytest"
			s.addReport(rankTool, f)
		}
		says, at = nil, proposal.Diagnostic{}
	}
	for i, line := range s.lines {
		if m := matchContaining(pytestSays, "E  ", line); m != nil {
			says = append(says, m[1])
			continue
		}
		if len(says) > 0 && at.File != "" && i > 0 {
			flush("") // --tb=short: the place is above
		}
		if m := matchContaining(pytestHead, "___", line); m != nil {
			return
		}
		if m := matchContaining(pytestLine, ".py:", line); m != nil {
			f := proposal.Diagnostic{Tool: "pytest", Message: m[3]}
			if s.setPlace(&f, place{name: m[1], row: parseNumber(m[2])}) {
				s.addReport(rankTool, f)
			}
			continue
		}
		m := matchContaining(pytestAt, ".py:", line)
		if m == nil {
			continue
		}
		known := s.setPlace(&at, place{name: m[1], row: parseNumber(m[2])})
		switch {
		case strings.HasPrefix(m[3], "in "):
		case known && m[3] != "":
			flush(m[3])
		default:
			says, at = nil, proposal.Diagnostic{}
		}
	}
	flush("")
}

// pytestLineOf returns the place of a message that --tb=line prints.
func (s *scan) pytestLineOf(message string) place {
	for _, line := range s.lines {
		if m := matchContaining(pytestLine, ".py:", line); m != nil && message != "" &&
			strings.HasPrefix(m[3], strings.TrimSuffix(message, "...")) {
			return place{name: m[1], row: parseNumber(m[2])}
		}
	}
	return place{}
}

// pytestSummary returns the names in the last short summary.
func (s *scan) pytestSummary() []string {
	start := s.findLast(func(t string) bool {
		m := matchContaining(pytestSection, "short test summary info", t)
		return m != nil && m[1] == "short test summary info"
	})
	if start < 0 {
		return nil
	}
	var names []string
	for _, line := range s.lines[start+1:] {
		if m := pytestSummary.FindStringSubmatch(line); m != nil && len(names) < s.maxListed() {
			names = append(names, m[2])
		}
	}
	return names
}

func summaryMessage(lines []string, name string) string {
	for _, line := range lines {
		if m := matchContaining(pytestSummary, name, line); m != nil && m[2] == name {
			return m[3]
		}
	}
	return ""
}

// pytestNames reports whether the name of a section, TestA.test_b[1], is that of an id,
// tests/test_a.py::TestA::test_b[1].
func pytestNames(id, head string) bool {
	for _, prefix := range []string{"ERROR at setup of ", "ERROR at teardown of ", "ERROR collecting ", "[doctest] "} {
		head = strings.TrimPrefix(head, prefix)
	}
	if id == head {
		return true
	}
	_, name, ok := strings.Cut(id, "::")
	return ok && strings.ReplaceAll(name, "::", ".") == head
}

// pytestBlock reads a section: lines that begin with E are the message, and places come
// from the outermost to the innermost.
func (s *scan) pytestBlock(f *proposal.Diagnostic, lines []string) {
	var says []string
	var frames []proposal.Frame
	for _, line := range lines {
		t := strings.TrimSpace(line)
		if strings.HasPrefix(t, chained[0]) || strings.HasPrefix(t, chained[1]) {
			says, frames = nil, nil
			continue
		}
		if m := matchContaining(pytestSays, "E", line); m != nil {
			says = append(says, m[1])
			if p, ok := parseFrame(m[1]); ok {
				frames = s.appendFrame(frames, p)
			}
			continue
		}
		if m := matchContaining(pytestAt, ".py:", line); m != nil {
			frames = s.appendFrame(frames, place{name: m[1], row: parseNumber(m[2])})
			continue
		}
		if p, ok := parseFrame(line); ok && strings.HasPrefix(t, "File \"") {
			frames = s.appendFrame(frames, p)
		}
	}
	if len(says) == 0 { // --tb=native
		s.readTraceback(f, lines)
		if f.Message == "" { // a doctest
			b := s.readBody(lines)
			b.messages = nil
			f.Message, f.Expected, f.Actual = b.shortMessage(), b.expected, b.actual
			s.Options.choosePlace(f, frames)
		}
		return
	}
	f.Message = clipText(pythonMessage(says))
	b := s.readBody(says[min(1, len(says)):])
	f.Expected, f.Actual = b.expected, b.actual
	if have, want := differingItems(says); have != "" {
		f.Expected, f.Actual = want, have
	}
	slices.Reverse(frames)
	s.Options.choosePlace(f, frames)
}

// pythonMessage returns the first line of what an exception says; of a syntax error that is
// the last.
func pythonMessage(says []string) string {
	for _, line := range says {
		if t := strings.TrimSpace(line); strings.HasPrefix(t, "SyntaxError:") ||
			strings.HasPrefix(t, "IndentationError:") || strings.HasPrefix(t, "ModuleNotFoundError:") ||
			strings.HasPrefix(t, "ImportError:") {
			return t
		}
	}
	for _, line := range says {
		if t := strings.TrimSpace(line); t != "" {
			return t
		}
	}
	return ""
}

// differingItems returns the parts of two collections that pytest says are not the same.
func differingItems(says []string) (have, want string) {
	for i, line := range says {
		t := strings.TrimSpace(line)
		if m := pytestIndex.FindStringSubmatch(t); m != nil {
			return clipText(m[1]), clipText(m[2])
		}
		if t != "Differing items:" {
			continue
		}
		var haves, wants []string
		for _, line := range says[i+1 : min(len(says), i+6)] {
			a, b, ok := strings.Cut(strings.TrimSpace(line), " != ")
			if !ok {
				break
			}
			haves, wants = append(haves, a), append(wants, b)
		}
		return clipText(strings.Join(haves, ", ")), clipText(strings.Join(wants, ", "))
	}
	return "", ""
}

func (s *scan) appendFrame(frames []proposal.Frame, p place) []proposal.Frame {
	f, ok := s.resolvePlace(p)
	if !ok || slices.Contains(frames, f) {
		return frames
	}
	if len(frames) >= maxFrames {
		frames = frames[1:]
	}
	return append(frames, f)
}

// readTraceback reads a Python traceback, with the exceptions before it that it is chained to.
func (s *scan) readTraceback(f *proposal.Diagnostic, lines []string) {
	lines = ofGroup(lines)
	var frames []proposal.Frame
	message := -1
	for i, line := range lines {
		t := strings.TrimSpace(line)
		if strings.HasPrefix(t, chained[0]) || strings.HasPrefix(t, chained[1]) {
			frames, message = nil, -1
			continue
		}
		if p, ok := parseFrame(line); ok && strings.HasPrefix(t, "File \"") {
			frames = s.appendFrame(frames, p)
			continue
		}
		if indentWidth(line) == 0 && message < 0 && pythonSays.MatchString(line) {
			message = i
		}
	}
	slices.Reverse(frames)
	if message >= 0 {
		f.Message = clipText(strings.TrimSpace(lines[message]))
		if b := s.readBody(lines[message+1:]); b.expected+b.actual != "" {
			f.Expected, f.Actual = b.expected, b.actual
		}
	}
	s.Options.choosePlace(f, frames)
}

// ofGroup returns the lines about an exception group itself, without those about the exceptions
// in it, if that is what the lines begin with.
func ofGroup(lines []string) []string {
	for i, line := range lines {
		if !strings.HasSuffix(line, "+ Exception Group Traceback (most recent call last):") {
			continue
		}
		group := append([]string{}, lines[:i]...)
		for _, line := range lines[i+1:] {
			rest, ok := strings.CutPrefix(strings.TrimLeft(line, " "), "|")
			if !ok {
				break
			}
			group = append(group, strings.TrimPrefix(rest, " "))
		}
		return group
	}
	return lines
}

// readUnittest reads the blocks of unittest, which are divided by rules. They are printed when
// all tests have run: of more than the last line counts, the first were printed by tests.
func readUnittest(s *scan) {
	before := len(s.found)
	defer func() { s.keepCounted(before, unittestCount) }()
	for i := 1; i < len(s.lines); i++ {
		m := matchContaining(unittestHead, ": ", s.lines[i])
		if m == nil || !strings.HasPrefix(s.lines[i-1], "======") {
			continue
		}
		end := s.findLine(i+1, 4*maxBlock,
			func(t, line string) bool { return strings.HasPrefix(line, "======") || strings.HasPrefix(line, "Ran ") })
		f := proposal.Diagnostic{Tool: "unittest", Test: m[2], Suite: strings.TrimSuffix(m[3], "."+m[2])}
		if m[4] != "" {
			f.Test += " " + m[4]
		}
		rank := rankTest
		if strings.Contains(m[3], "unittest.loader._FailedTest") {
			rank, f.Test, f.Suite = rankRunner, "", m[2]
		}
		s.readTraceback(&f, s.lines[i+1:end])
		s.addReport(rank, f)
		i = end - 1
	}
}

// readTracebacks reads tracebacks outside a test runner's blocks. A syntax error has no first
// line.
func readTracebacks(s *scan) {
	for i := 0; i < len(s.lines); i++ {
		line := s.lines[i]
		start := strings.Contains(line, "Traceback (most recent call last):")
		if !start {
			if p, ok := parseFrame(line); !ok || !strings.HasPrefix(strings.TrimSpace(line), "File \"") || p.row == 0 {
				continue
			}
		}
		end := s.findLine(i+1, maxBlock,
			func(t, line string) bool { return indentWidth(line) == 0 && t != "" && pythonSays.MatchString(t) })
		if strings.Contains(line, "+ Exception Group") {
			end = s.findLine(i+1, maxBlock,
				func(t, line string) bool { return !strings.HasPrefix(t, "|") && !strings.HasPrefix(t, "+-") }) - 1
		}
		if end < len(s.lines) {
			end++
		}
		for end < len(s.lines) {
			more := s.findLine(end, 4, func(t, line string) bool {
				return strings.HasPrefix(t, chained[0]) ||
					strings.HasPrefix(t, chained[1])
			})
			if more >= len(s.lines) || !strings.HasPrefix(s.lines[more], "During") &&
				!strings.HasPrefix(s.lines[more], "The above") {
				break
			}
			end = s.findLine(more+3, maxBlock,
				func(t, line string) bool { return indentWidth(line) == 0 && t != "" && pythonSays.MatchString(t) })
			end = min(end+1, len(s.lines))
		}
		f := proposal.Diagnostic{Tool: "python"}
		s.readTraceback(&f, s.lines[i:end])
		if f.Message != "" {
			s.addReport(rankStack, f)
		}
		i = end - 1
	}
	s.keepLast("python")
}

var (
	doctestAt    = pattern.New(`^File "([^"]{1,400})", line (\d{1,7}), in (\S{1,300})$`)
	doctestCount = pattern.New(`^ {2,8}\d{1,6} of {1,6}\d{1,6} in (\S{1,300})$`)
	doctestRule  = strings.Repeat("*", 70)
)

// readDoctest reads the output of python -m doctest: the first example that failed of each text that its
// summary names.
func readDoctest(s *scan) {
	named := map[string]bool{}
	for _, line := range s.lines {
		if m := matchContaining(doctestCount, " of ", line); m != nil {
			named[m[1]] = true
		}
	}
	for i := 1; i+1 < len(s.lines); i++ {
		m := matchContaining(doctestAt, "File \"", s.lines[i])
		if m == nil || s.lines[i-1] != doctestRule || s.lines[i+1] != "Failed example:" || !named[m[3]] {
			continue
		}
		named[m[3]] = false
		f := proposal.Diagnostic{Tool: "doctest", Test: m[3]}
		s.setPlace(&f, place{name: m[1], row: parseNumber(m[2])})
		end := s.findLine(i+2, maxBlock, func(_, line string) bool { return line == doctestRule })
		parts, part := map[string][]string{}, ""
		for _, line := range s.lines[i+1 : end] {
			if line != "" && line[0] != ' ' {
				part = line
			} else if t := strings.TrimSpace(line); t != "" {
				parts[part] = append(parts[part], t)
			}
		}
		f.Message = joinTrimmed(parts["Failed example:"])
		if raised := parts["Exception raised:"]; len(raised) > 0 {
			f.Message += ": " + raised[len(raised)-1]
		} else {
			f.Expected, f.Actual = clipText(joinTrimmed(parts["Expected:"])), clipText(joinTrimmed(parts["Got:"]))
		}
		f.Message = clipText(f.Message)
		s.addReport(rankTest, f)
		i = end - 1
	}
}
