// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var (
	ctestHead   = pattern.New(`^\s{0,8}\d{1,6}/\d{1,6} Test\s{1,6}#\d{1,6}: (\S{1,300}) \.{2,200}\s{0,3}(.{1,60}?)\s{1,10}[\d.]{1,12} sec`)
	ctestListed = pattern.New(`^\s{1,8}\d{1,6} - (\S.{0,300}?) \(([\w .*]{1,60})\)(?:\s.{0,200})?$`)
	cAssert     = pattern.New(`(?:^|: )([^\s:][^:]{0,300}\.\w{1,6}):(\d{1,7}): (?:.{1,300}: )?(Assertion .{1,600} failed\.?)$`)
	macAssert   = pattern.New(`^(Assertion failed: .{1,600}), function .{1,200}, file (\S{1,300}), line (\d{1,7})\.$`)
	sanitizer   = pattern.New(`^==\d{1,10}==\s?(ERROR: \w{1,40}Sanitizer: .{1,600})$`)
	ubsan       = pattern.New(`^([^\s:][^:]{0,300}):(\d{1,7}):(\d{1,5}): runtime error: (.{1,600})$`)
	gtestAt     = pattern.New(`^(?:unknown file|([^\s:][^:]{0,300}):(\d{1,7})): Failure$`)
	gtestFailed = pattern.New(`^\[  FAILED  \] ([\w./]{1,300})(?:, where .{1,300})?(?: \(\d{1,9} ms\))?$`)
	gtestRun    = pattern.New(`^\[ RUN      \] ([\w./]{1,300})$`)
	boostAt     = pattern.New(`^([^\s(][^(]{0,300})\((\d{1,7})\): (?:fatal )?error: in "([^"]{1,300})": (.{1,900})$`)
	boostValues = pattern.New(`\[(.{1,400}) [!=<>]{1,2} (.{1,400})\]$`)
	catchAt     = pattern.New(`^([^\s:][^:]{0,300}):(\d{1,7}): FAILED:$`)
	linkerAt    = pattern.New(`^(?:\S{0,200}ld(?:\.\w{1,10})?: )?([^\s:][^:]{0,300}\.\w{1,4}):(?:(\d{1,7})|\([^)]{1,100}\)): (undefined reference to .{1,300}|multiple definition of .{1,300})$`)
	linkerError = pattern.New(`^\S{0,200}(?:ld(?:\.\w{1,10})?|collect2|ld64\.lld|rust-lld)(?:: error)?: (.{1,600})$`)
	lldAt       = pattern.New(`^>>> (?:referenced by|defined at) ([^\s:]{1,300})(?::(\d{1,7}))?`)
	cmakeError  = pattern.New(`^CMake Error at ([^:]{1,300}):(\d{1,7}) \((.{1,100})\):$`)
	makeError   = pattern.New(`^([^\s:]{1,300}):(\d{1,7}): \*\*\* (.{1,600}?)(?:\s{1,3}Stop\.)?$`)
	makeStopped = pattern.New(`^g?make(?:\[\d{1,3}\])?: \*\*\* (No rule .{1,600}?|.{1,300}?missing .{1,300}?)(?:\s{1,3}Stop\.)?$`)
)

// readCTest reads the output of each test, and the list of those that failed at the end.
func readCTest(s *scan) {
	start := s.findLast(func(t string) bool { return t == "The following tests FAILED:" })
	if start < 0 {
		return
	}
	bodies := map[string][]string{}
	for i := 0; i < start; i++ {
		m := matchContaining(ctestHead, " sec", s.lines[i])
		if m == nil || !strings.Contains(m[2], "***") {
			continue
		}
		end := s.findLine(i+1, 4*maxBlock, func(t, line string) bool {
			return strings.HasPrefix(t, "Start ") || ctestHead.MatchString(line) ||
				strings.Contains(line, "% tests passed")
		})
		bodies[m[1]] = s.lines[i+1 : end]
	}
	for _, line := range s.lines[start+1:] {
		m := matchContaining(ctestListed, " - ", line)
		if m == nil {
			if strings.TrimSpace(line) != "" {
				break
			}
			continue
		}
		f := proposal.Diagnostic{Tool: "ctest", Test: m[1], Message: strings.ToLower(m[2])}
		body := bodies[m[1]]
		if inner, ok := s.readNested(body); ok {
			inner.Tool, inner.Test, inner.Suite, inner.Level = "ctest", m[1], "", Error
			f = inner
		} else if last := lastOf(body); last != "" {
			f.Message = last + " (" + f.Message + ")"
			if m[2] == "Failed" {
				f.Message = last
			}
		}
		s.addReport(rankTest, f)
	}
}

// lastOf returns the last line that is not empty.
func lastOf(lines []string) string {
	for i := len(lines) - 1; i >= 0; i-- {
		if t := strings.TrimSpace(lines[i]); t != "" {
			return t
		}
	}
	return ""
}

// readGoogleTest reads the failures between the start and the end of a test.
func readGoogleTest(s *scan) {
	test := ""
	var pending []proposal.Diagnostic
	for i := 0; i < len(s.lines); i++ {
		line := s.lines[i]
		if m := matchContaining(gtestRun, "[ RUN ", line); m != nil {
			test, pending = m[1], nil
			continue
		}
		if strings.HasPrefix(line, "[       OK ]") {
			test, pending = "", nil
			continue
		}
		if m := matchContaining(gtestFailed, "[  FAILED  ]", line); m != nil && m[1] == test && test != "" {
			if len(pending) == 0 {
				pending = []proposal.Diagnostic{{Tool: "googletest", Test: test, Message: "failed"}}
			}
			for _, f := range pending {
				s.addReport(rankTest, f)
			}
			test, pending = "", nil
			continue
		}
		m := matchContaining(gtestAt, ": Failure", line)
		if m == nil || len(pending) >= s.maxListed() {
			continue
		}
		end := s.findLine(i+1, 60, func(t, line string) bool {
			return t == "" || strings.HasPrefix(line, "[") ||
				gtestAt.MatchString(line)
		})
		f := proposal.Diagnostic{Tool: "googletest", Test: test}
		s.setPlace(&f, place{name: m[1], row: parseNumber(m[2])})
		body := s.lines[i+1 : end]
		if len(body) > 0 && strings.HasPrefix(body[0], gtestEquals) {
			s.readGTestValues(&f, body[1:])
		}
		s.fillReport(&f, body)
		pending = append(pending, f)
	}
}

// gtestEquals is before two values.
const gtestEquals = "Expected equality of these values:"

// readGTestValues sets the values and the message of an equality that does not hold.
func (s *scan) readGTestValues(f *proposal.Diagnostic, lines []string) {
	said := ""
	f.Actual, f.Expected, said = gtestValues(lines)
	f.Message = strings.TrimPrefix(said+": expected "+f.Expected+", got "+f.Actual, ": ")
}

// gtestValues reads two expressions, each with its value on the next line if that differs, and
// the test's own message below them.
func gtestValues(lines []string) (first, second, said string) {
	var values []string
	for _, line := range lines {
		t := strings.TrimSpace(line)
		if value, ok := strings.CutPrefix(t, "Which is: "); ok && len(values) > 0 {
			values[len(values)-1] = value
		} else {
			values = append(values, t)
		}
	}
	for len(values) < 2 {
		values = append(values, "")
	}
	return values[0], values[1], strings.Join(values[2:], " ")
}

// readNative reads what compiled programs, linkers, make and cmake print.
func readNative(s *scan) {
	undefined := false
	for i, line := range s.lines {
		if m := matchContaining(cAssert, "Assertion ", line); m != nil {
			s.addAt(rankStack, proposal.Diagnostic{Tool: "assert", Message: m[3]},
				place{name: m[1], row: parseNumber(m[2])})
		} else if m := matchContaining(macAssert, "Assertion failed", line); m != nil {
			s.addAt(rankStack, proposal.Diagnostic{Tool: "assert", Message: m[1]},
				place{name: m[2], row: parseNumber(m[3])})
		} else if m := matchContaining(sanitizer, "Sanitizer: ", line); m != nil {
			end := s.findLine(i+1, 60, func(t, line string) bool { return t == "" })
			f := proposal.Diagnostic{Tool: "sanitizer", Message: m[1]}
			b := s.readBody(s.lines[i+1 : end])
			s.choosePlace(&f, b.frames)
			s.addReport(rankStack, f)
		} else if m := matchContaining(ubsan, "runtime error: ", line); m != nil {
			s.addAt(rankStack, proposal.Diagnostic{Tool: "sanitizer", Message: "runtime error: " + m[4]},
				place{name: m[1], row: parseNumber(m[2]), col: parseNumber(m[3])})
		} else if m := matchContaining(linkerAt, "e", line); m != nil &&
			(strings.Contains(line, "undefined reference") || strings.Contains(line, "multiple definition")) {
			undefined = true
			f := proposal.Diagnostic{Tool: "linker", Message: m[3]}
			s.setPlace(&f, place{name: m[1], row: max(1, parseNumber(m[2]))})
			f.Line = parseNumber(m[2])
			s.addReport(rankTool, f)
		} else if m := matchContaining(linkerError, ": ", line); m != nil && !undefined && isLinker(line, m[1]) {
			f := proposal.Diagnostic{Tool: "linker", Message: m[1]}
			if i+1 < len(s.lines) {
				if at := lldAt.FindStringSubmatch(s.lines[i+1]); at != nil {
					s.setPlace(&f, place{name: at[1], row: parseNumber(at[2])})
				}
			}
			s.addReport(rankTool, f)
			undefined = true
		} else if m := matchContaining(cmakeError, "CMake Error", line); m != nil {
			end := s.findLine(i+1, 12, func(t, line string) bool {
				return t == "" && line == "" ||
					t != "" && indentWidth(line) == 0
			})
			f := proposal.Diagnostic{Tool: "cmake", Message: joinTrimmed(s.lines[i+1 : min(end, i+4)])}
			s.addAt(rankTool, f, place{name: m[1], row: parseNumber(m[2])})
		} else if m := matchContaining(makeError, ": *** ", line); m != nil {
			s.addAt(rankTool, proposal.Diagnostic{Tool: "make", Message: m[3]},
				place{name: m[1], row: parseNumber(m[2])})
		} else if m := matchContaining(makeStopped, ": *** ", line); m != nil {
			s.addReport(rankTool, proposal.Diagnostic{Tool: "make", Message: m[1]})
		}
	}
}

// isLinker reports whether a line is a linker's error, and not that of a program whose name
// ends in "ld" or a line that only follows one.
func isLinker(line, message string) bool {
	program, _, _ := strings.Cut(line, ":")
	base := program[strings.LastIndexByte(program, '/')+1:]
	if base != "ld" && !strings.HasPrefix(base, "ld.") && base != "ld64.lld" && base != "rust-lld" {
		return false
	}
	return !strings.HasSuffix(message, ":") && !strings.Contains(message, "in function") &&
		!strings.HasPrefix(message, "warning:")
}

// addAt adds a report with a place.
func (s *scan) addAt(rank int, f proposal.Diagnostic, p place) {
	s.setPlace(&f, p)
	s.addReport(rank, f)
}

// readBoost reads the lines of Boost.Test.
func readBoost(s *scan) {
	for _, line := range s.lines {
		m := matchContaining(boostAt, "error: in ", line)
		if m == nil {
			continue
		}
		suite, test := "", m[3]
		if i := strings.LastIndexByte(test, '/'); i >= 0 {
			suite, test = test[:i], test[i+1:]
		}
		f := proposal.Diagnostic{Tool: "boost test", Suite: suite, Test: test, Message: m[4]}
		if values := matchContaining(boostValues, "[", m[4]); values != nil && strings.Contains(m[4], " == ") {
			f.Actual, f.Expected = values[1], values[2]
		}
		s.addAt(rankTest, f, place{name: m[1], row: parseNumber(m[2])})
	}
}

// readCatch2 reads the assertions that failed below the name of their test, which is between rules.
func readCatch2(s *scan) {
	test := ""
	for i, line := range s.lines {
		if i > 0 && strings.HasPrefix(s.lines[i-1], "-----") && isRule(s.lines[i-1]) && line != "" &&
			indentWidth(line) == 0 && !isRule(line) {
			if _, isPlace := parsePlace(line); !isPlace {
				test = line
			}
		}
		m := matchContaining(catchAt, ": FAILED:", line)
		if m == nil || test == "" {
			continue
		}
		end := s.findLine(i+1, 60, func(t, line string) bool { return t == "" })
		var said []string
		for _, line := range s.lines[i+1 : end] {
			if t := strings.TrimSpace(line); !strings.HasSuffix(t, ":") && len(said) < 3 {
				said = append(said, t)
			}
		}
		s.addAt(rankTest, proposal.Diagnostic{Tool: "catch2", Test: test, Message: strings.Join(said, ": ")},
			place{name: m[1], row: parseNumber(m[2])})
	}
}
