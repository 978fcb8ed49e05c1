// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var (
	mavenLevel     = pattern.New(`^\[(?:ERROR|WARNING|INFO)\]\s?`)
	surefireTest   = pattern.New(`^([\w$.<> ,\[\]"'=:-]{1,300}?(?:\(.{0,400}\))?)\s{1,4}(?:-- )?Time elapsed: [\d.,]{1,20} s?(?:ec)?\s{1,4}<<< (?:FAILURE|ERROR)!`)
	surefireClass  = pattern.New(`^Tests run: .{1,200}<<< (?:FAILURE|ERROR)!.{0,10}[ -]in ([\w$.]{1,300})$`)
	surefireLine   = pattern.New(`^  ([\w$]{1,200})(?:\.([\w$]{1,200}))?(?::(\d{1,7}))?(?:->\S{1,300})? (?:» )?(.{1,900})$`)
	surefireTotals = pattern.New(`^Tests run: \d{1,7}, Failures: (\d{1,7}), Errors: (\d{1,7})`)
	gradleTest     = pattern.New(`^(\S.{0,300}?) > (\S.{0,600}) FAILED$`)
	consoleTest    = pattern.New(`^  (?:JUnit \w{1,40}:)(.{1,600})$`)
	javaException  = pattern.New(`^(?:Exception in thread ".{0,200}" |Caused by: |Uncaught exception: )?((?:[a-z][\w$]{0,60}\.){1,12}[A-Z][\w$]{0,100})(?:: .*)?$`)
)

// readMaven reads what surefire prints about each test, and its list of results for tests
// about which it prints nothing else.
func readMaven(s *scan) {
	lines := make([]string, len(s.lines))
	for i, line := range s.lines {
		lines[i] = mavenLevel.ReplaceAllString(line, "")
	}
	class := ""
	seen := map[string]bool{}
	before := len(s.found)
	for i := 0; i < len(lines); i++ {
		if m := matchContaining(surefireClass, "<<<", lines[i]); m != nil {
			class = m[1]
			continue
		}
		m := matchContaining(surefireTest, "<<<", lines[i])
		if m == nil {
			continue
		}
		end := i + 1
		for end < len(lines) && end < i+maxBlock && strings.TrimSpace(lines[end]) != "" &&
			!mavenLevel.MatchString(s.lines[end]) {
			end++
		}
		f := proposal.Diagnostic{Tool: "surefire", Suite: class, Test: strings.TrimSuffix(m[1], "()")}
		if name, rest, ok := strings.Cut(f.Test, "("); ok && strings.HasSuffix(rest, ")") &&
			strings.Contains(rest, ".") {
			f.Test, f.Suite = name, strings.TrimSuffix(rest, ")") // junit 4
		}
		if rest, ok := strings.CutPrefix(f.Test, class+"."); ok {
			f.Test = rest
		}
		s.addBlock(rankTest, f, lines[i+1:end])
		seen[f.Test] = true
		i = end - 1
	}
	if listed, count := surefireListed(lines); count > 0 && len(s.found)-before > count {
		// A test printed a block.
		s.found = slices.DeleteFunc(s.found, func(r report) bool {
			name := r.Test[:len(r.Test)-len(strings.TrimLeft(r.Test, identifier))]
			return r.Tool == "surefire" && !listed[name]
		})
	}
	section := ""
	for i, line := range lines {
		if t := strings.TrimSpace(line); t == "Failures:" || t == "Errors:" || t == "Failed tests:" ||
			t == "Tests in error:" {
			section = t
			continue
		}
		m := surefireLine.FindStringSubmatch(line)
		if section == "" || m == nil || seen[m[2]] ||
			!strings.HasPrefix(s.lines[i], "[ERROR]") && !strings.HasPrefix(line, "  ") {
			if !strings.HasPrefix(line, "  ") {
				section = ""
			}
			continue
		}
		if len(seen) > 0 {
			continue
		}
		f := proposal.Diagnostic{Tool: "surefire", Suite: m[1], Test: m[2], Message: m[4]}
		s.setPlace(&f, place{name: m[1] + ".java", row: parseNumber(m[3]), className: "?"})
		s.addReport(rankTest, f)
	}
}

const identifier = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$"

// surefireListed returns the methods in the list above the last totals, and how many tests
// these say failed.
func surefireListed(lines []string) (listed map[string]bool, count int) {
	listed = map[string]bool{}
	at := len(lines) - 1
	for at > 0 && (!strings.HasPrefix(lines[at], "Tests run: ") || strings.Contains(lines[at], "Time elapsed")) {
		at--
	}
	if m := surefireTotals.FindStringSubmatch(lines[max(at, 0)]); m != nil {
		count = parseNumber(m[1]) + parseNumber(m[2])
	}
	for at--; at > 0; at-- {
		t := strings.TrimSpace(lines[at])
		if m := surefireLine.FindStringSubmatch(lines[at]); m != nil && m[2] != "" {
			listed[m[2]] = true
		} else if t != "" && t != "Failures:" && t != "Errors:" {
			break
		}
	}
	return listed, count
}

// readGradle reads "Class > test FAILED" and the exception below it.
func readGradle(s *scan) {
	for i := 0; i < len(s.lines); i++ {
		m := matchContaining(gradleTest, " FAILED", s.lines[i])
		if m == nil {
			continue
		}
		end := s.findLine(i+1, maxBlock, func(t, line string) bool { return t == "" })
		s.addBlock(rankTest, proposal.Diagnostic{Tool: "gradle", Suite: m[1], Test: strings.TrimSuffix(m[2], "()")},
			s.lines[i+1:end])
		i = end - 1
	}
}

// readConsole reads the list of failures of JUnit's console launcher.
func readConsole(s *scan) {
	for i := 0; i < len(s.lines); i++ {
		m := matchContaining(consoleTest, "JUnit ", s.lines[i])
		if m == nil {
			continue
		}
		end := s.findLine(i+1, maxBlock, func(t, line string) bool { return t == "" || consoleTest.MatchString(line) })
		suite, test, _ := strings.Cut(m[1], ":")
		var body []string
		for _, line := range s.lines[i+1 : end] {
			t := strings.TrimPrefix(strings.TrimSpace(line), "=> ")
			if strings.HasPrefix(t, "MethodSource ") || strings.HasPrefix(t, "[...]") {
				continue
			}
			if jvmFrame.MatchString("at " + t) {
				t = "at " + t
			}
			body = append(body, t)
		}
		s.addBlock(rankTest, proposal.Diagnostic{Tool: "junit", Suite: suite, Test: strings.TrimSuffix(test, "()")},
			body)
		i = end - 1
	}
}

// readJava reads an exception that ended a program, with its stack.
func readJava(s *scan) {
	for i := 0; i+1 < len(s.lines); i++ {
		line := strings.TrimSpace(s.lines[i])
		if !strings.Contains(line, ".") || !javaException.MatchString(line) {
			continue
		}
		p, ok := parseFrame(s.lines[i+1])
		if !ok || p.className == "" {
			continue
		}
		end := s.findLine(i+1, maxBlock, func(t, line string) bool {
			return !strings.HasPrefix(t, "at ") && !strings.HasPrefix(t, "Caused by: ") && !strings.HasPrefix(t, "... ")
		})
		f := proposal.Diagnostic{Tool: "java", Message: line}
		for _, line := range s.lines[i+1 : end] {
			// the last is the first that was thrown
			if cause, ok := strings.CutPrefix(strings.TrimSpace(line), "Caused by: "); ok {
				f.Message = s.lines[i] + "; caused by " + cause
			}
		}
		s.addBlock(rankStack, f, s.lines[i+1:end])
		i = end - 1
	}
}
