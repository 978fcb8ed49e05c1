// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var (
	rustTest     = pattern.New(`^---- (.{1,600}) stdout ----$`)
	rustPanic    = pattern.New(`^\s{0,8}thread '(.{0,300})' (?:\(\d{1,10}\) )?panicked at (.{1,400}?):(\d{1,7}):(\d{1,5}):$`)
	rustPanicOld = pattern.New(`^\s{0,8}thread '(.{0,300})' panicked at '(.{0,900})', (.{1,400}?):(\d{1,7}):(\d{1,5})$`)
	docTest      = pattern.New(`^(\S{1,300}) - .{0,300}\(line (\d{1,7})\)`)
	rustExpects  = pattern.New(`^\s{0,8}(panic message|expected substring): (".{1,900}"),?$`)
	rustListed   = pattern.New(`^    (\S.{0,600})$`)
	nextestFail  = pattern.New(`^\s{0,20}(?:FAIL|TIMEOUT|SIGABRT|SIGSEGV) \[\s{0,10}[\d.]{1,12}s\] (?:\(\s{0,5}\d+/\d+\) )?(\S{1,200})(?: (\S.{0,600}))?$`)
)

// readCargo reads the output of each test that failed. The list of failed tests at the end
// says which they are.
func readCargo(s *scan) {
	var listed []string
	inList := false // each target has a list
	for _, line := range s.lines {
		if line == "failures:" {
			inList = true
		} else if m := rustListed.FindStringSubmatch(line); m != nil && inList && len(listed) < MaxListed {
			listed = append(listed, m[1])
		} else if line != "" {
			inList = false
		}
	}
	isListed := func(name string) bool {
		for _, l := range listed {
			if l == name {
				return true
			}
		}
		return len(listed) == 0 || s.Every
	}
	reported, panics := map[string]bool{}, s.panicLines()
	for i := 0; i < len(s.lines); i++ {
		m := matchContaining(rustTest, " stdout ----", s.lines[i])
		if m == nil || !isListed(m[1]) {
			continue
		}
		end := s.findLine(i+1, 4*maxBlock, func(t, line string) bool {
			return rustTest.MatchString(line) || line == "failures:" || strings.HasPrefix(line, "test result: ")
		})
		f := proposal.Diagnostic{Tool: "cargo test", Test: m[1]}
		s.rustBlock(&f, s.lines[i+1:end])
		if n, known := panics[m[1]]; known && f.File == "" { // --no-capture prints it elsewhere
			elsewhere := proposal.Diagnostic{}
			s.panicAt(&elsewhere, s.lines[n:min(len(s.lines), n+60)])
			f.File, f.Line, f.Column, f.Frames = elsewhere.File, elsewhere.Line, elsewhere.Column, elsewhere.Frames
		}
		s.placeDocTest(&f)
		s.addReport(rankTest, f)
		reported[m[1]] = true
		i = end - 1
	}
	s.readUncapturedPanics(listed, reported)
}

// readUncapturedPanics reads the panics of the listed tests that have no block, as with --nocapture: a
// test runs in a thread of its name.
func (s *scan) readUncapturedPanics(listed []string, reported map[string]bool) {
	at := s.panicLines()
	for _, line := range s.lines {
		if m := matchContaining(nextestFail, " [", line); m != nil {
			reported[m[2]] = true
		}
	}
	for _, name := range listed {
		if reported[name] {
			continue
		}
		f := proposal.Diagnostic{Tool: "cargo test", Test: name}
		i, known := at[name]
		if docTest.MatchString(name) {
			i, known = at["main"] // a program of its own
		}
		if known {
			s.panicAt(&f, s.lines[i:min(len(s.lines), i+60)])
		}
		s.placeDocTest(&f)
		s.addReport(rankTest, f)
		reported[name] = true
	}
}

// panicLines returns the index of the last panic of each thread.
func (s *scan) panicLines() map[string]int {
	at := map[string]int{}
	for i, line := range s.lines {
		if m := matchContaining(rustPanic, " panicked at ", line); m != nil {
			at[m[1]] = i
		}
	}
	return at
}

// placeDocTest sets the place of a test in documentation, which is in its name: its panic is in
// generated code.
func (s *scan) placeDocTest(f *proposal.Diagnostic) {
	if at := matchContaining(docTest, " (line ", f.Test); at != nil {
		s.setPlace(f, place{name: at[1], row: parseNumber(at[2])})
		f.Frames = nil
	}
}

// rustBlock reads what one test printed: the last panic of the test's own thread is why it
// failed, or else an error that it returned.
func (s *scan) rustBlock(f *proposal.Diagnostic, lines []string) {
	at := -1
	for i, line := range lines {
		if strings.Contains(line, " panicked at ") && (rustPanic.MatchString(line) || rustPanicOld.MatchString(line)) {
			at = i
		}
	}
	if at < 0 {
		b := s.readBody(lines)
		for _, line := range lines {
			if m := matchContaining(rustExpects, ": \"", line); m != nil && m[1] == "panic message" {
				f.Actual = m[2]
			} else if m != nil {
				f.Expected = m[2]
			}
		}
		for _, line := range b.messages {
			if strings.HasPrefix(line, "Error: ") || strings.HasPrefix(line, "note: test did not panic") {
				f.Message = line
			}
		}
		if f.Message == "" {
			f.Message = b.shortMessage()
		}
		if i := strings.LastIndex(f.Message, " at "); i > 0 && strings.HasPrefix(f.Message, "note: ") {
			if p, ok := parsePlace(f.Message[i+4:]); ok {
				s.setPlace(f, p)
			}
		}
		return
	}
	s.panicAt(f, lines[at:])
}

// panicAt reads a panic from its first line.
func (s *scan) panicAt(f *proposal.Diagnostic, lines []string) {
	var first proposal.Frame
	ok := false
	rest := lines[1:]
	if m := rustPanicOld.FindStringSubmatch(lines[0]); m != nil {
		f.Message = m[2]
		first, ok = s.resolvePlace(place{name: m[3], row: parseNumber(m[4]), col: parseNumber(m[5])})
	} else if m := rustPanic.FindStringSubmatch(lines[0]); m != nil {
		first, ok = s.resolvePlace(place{name: m[2], row: parseNumber(m[3]), col: parseNumber(m[4])})
	}
	end := len(rest)
	for i, line := range rest {
		if strings.HasPrefix(line, "note: ") || strings.HasPrefix(line, "thread '") {
			end = i
			break
		}
	}
	var text, stack []string
	for i, line := range rest[:end] {
		if line == "stack backtrace:" {
			stack = rest[i+1 : end]
			break
		}
		text = append(text, line)
	}
	b := s.readBody(text)
	if f.Message == "" {
		f.Message = b.shortMessage()
	}
	f.Expected, f.Actual = b.expected, b.actual
	frames := s.readBody(stack).frames
	if ok {
		frames = append([]proposal.Frame{first}, dropFrame(frames, first)...)
	}
	s.choosePlace(f, frames)
}

func dropFrame(frames []proposal.Frame, drop proposal.Frame) []proposal.Frame {
	var kept []proposal.Frame
	for _, f := range frames {
		if f != drop {
			kept = append(kept, f)
		}
	}
	return kept
}

// readRustPanics reads panics outside a test's output.
func readRustPanics(s *scan) {
	for i, line := range s.lines {
		if strings.Contains(line, " panicked at ") && (rustPanic.MatchString(line) || rustPanicOld.MatchString(line)) {
			f := proposal.Diagnostic{Tool: "rust"}
			s.panicAt(&f, s.lines[i:min(len(s.lines), i+60)])
			s.addReport(rankStack, f)
		}
	}
}

// readNextest reads the lines of cargo nextest that name a test, with the panic that follows.
func readNextest(s *scan) {
	seen := map[string]bool{}
	for i, line := range s.lines {
		m := matchContaining(nextestFail, " [", line)
		if m == nil || m[2] == "" || seen[m[2]] {
			continue
		}
		seen[m[2]] = true
		f := proposal.Diagnostic{Tool: "nextest", Suite: m[1], Test: m[2]}
		for j := i + 1; j < len(s.lines) && j < i+maxBlock; j++ {
			if matchContaining(nextestFail, " [", s.lines[j]) != nil {
				break
			}
			if p := matchContaining(rustPanic, " panicked at ", s.lines[j]); p != nil && p[1] == m[2] {
				s.panicAt(&f, s.lines[j:min(len(s.lines), j+60)])
			}
		}
		s.addReport(rankTest, f)
	}
}
