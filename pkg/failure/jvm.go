// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"encoding/xml"
	"strings"

	"github.com/fumehood/fumehood/pkg/internal/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var (
	mavenLevel    = pattern.New(`^\[(?:ERROR|WARNING|INFO)\]\s?`)
	surefireTest  = pattern.New(`^([\w$.<> ,\[\]"'=:-]{1,300}?(?:\(.{0,400}\))?)\s{1,4}(?:-- )?Time elapsed: [\d.,]{1,20} s?(?:ec)?\s{1,4}<<< (?:FAILURE|ERROR)!`)
	surefireClass = pattern.New(`^Tests run: .{1,200}<<< (?:FAILURE|ERROR)!.{0,10}[ -]in ([\w$.]{1,300})$`)
	surefireLine  = pattern.New(`^  ([\w$]{1,200})(?:\.([\w$]{1,200}))?(?::(\d{1,7}))?(?:->\S{1,300})? (?:» )?(.{1,900})$`)
	gradleTest    = pattern.New(`^(\S.{0,300}?) > (\S.{0,600}) FAILED$`)
	consoleTest   = pattern.New(`^  (?:JUnit \w{1,40}:)(.{1,600})$`)
	javaException = pattern.New(`^(?:Exception in thread ".{0,200}" |Caused by: |Uncaught exception: )?((?:[a-z][\w$]{0,60}\.){1,12}[A-Z][\w$]{0,100})(?:: .*)?$`)
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
	for i := 0; i < len(lines); i++ {
		if m := match(surefireClass, "<<<", lines[i]); m != nil {
			class = m[1]
			continue
		}
		m := match(surefireTest, "<<<", lines[i])
		if m == nil {
			continue
		}
		end := i + 1
		for end < len(lines) && end < i+maxBlock && strings.TrimSpace(lines[end]) != "" && !mavenLevel.MatchString(s.lines[end]) {
			end++
		}
		f := proposal.Diagnostic{Tool: "surefire", Suite: class, Test: strings.TrimSuffix(m[1], "()")}
		if name, rest, ok := strings.Cut(f.Test, "("); ok && strings.HasSuffix(rest, ")") && strings.Contains(rest, ".") {
			f.Test, f.Suite = name, strings.TrimSuffix(rest, ")") // junit 4
		}
		if rest, ok := strings.CutPrefix(f.Test, class+"."); ok {
			f.Test = rest
		}
		s.addBlock(rankTest, f, lines[i+1:end])
		seen[f.Test] = true
		i = end - 1
	}
	section := ""
	for i, line := range lines {
		if t := strings.TrimSpace(line); t == "Failures:" || t == "Errors:" || t == "Failed tests:" || t == "Tests in error:" {
			section = t
			continue
		}
		m := surefireLine.FindStringSubmatch(line)
		if section == "" || m == nil || seen[m[2]] || !strings.HasPrefix(s.lines[i], "[ERROR]") && !strings.HasPrefix(line, "  ") {
			if !strings.HasPrefix(line, "  ") {
				section = ""
			}
			continue
		}
		if len(seen) > 0 {
			continue
		}
		f := proposal.Diagnostic{Tool: "surefire", Suite: m[1], Test: m[2], Message: m[4]}
		s.at(&f, place{name: m[1] + ".java", row: number(m[3]), className: "?"})
		s.add(rankTest, f)
	}
}

// readGradle reads "Class > test FAILED" and the exception below it.
func readGradle(s *scan) {
	for i := 0; i < len(s.lines); i++ {
		m := match(gradleTest, " FAILED", s.lines[i])
		if m == nil {
			continue
		}
		end := s.until(i+1, maxBlock, func(t, line string) bool { return t == "" })
		s.addBlock(rankTest, proposal.Diagnostic{Tool: "gradle", Suite: m[1], Test: strings.TrimSuffix(m[2], "()")}, s.lines[i+1:end])
		i = end - 1
	}
}

// readConsole reads the list of failures of JUnit's console launcher.
func readConsole(s *scan) {
	for i := 0; i < len(s.lines); i++ {
		m := match(consoleTest, "JUnit ", s.lines[i])
		if m == nil {
			continue
		}
		end := s.until(i+1, maxBlock, func(t, line string) bool { return t == "" || consoleTest.MatchString(line) })
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
		s.addBlock(rankTest, proposal.Diagnostic{Tool: "junit", Suite: suite, Test: strings.TrimSuffix(test, "()")}, body)
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
		end := s.until(i+1, maxBlock, func(t, line string) bool {
			return !strings.HasPrefix(t, "at ") && !strings.HasPrefix(t, "Caused by: ") && !strings.HasPrefix(t, "... ")
		})
		f := proposal.Diagnostic{Tool: "java", Message: line}
		s.addBlock(rankStack, f, s.lines[i+1:end])
		i = end - 1
	}
}

// readJUnit reads JUnit XML that a command prints.
func readJUnit(s *scan) {
	text := strings.Join(s.lines, "\n")
	start := strings.Index(text, "<testsuite")
	if start < 0 {
		return
	}
	decoder := xml.NewDecoder(strings.NewReader(text[start:]))
	decoder.Strict = false
	decoder.Entity = map[string]string{}
	for {
		token, err := decoder.RawToken()
		if err != nil {
			return
		}
		element, ok := token.(xml.StartElement)
		if !ok || element.Name.Local != "testcase" {
			continue
		}
		s.junitCase(decoder, element)
		if len(s.found) >= maxReports {
			return
		}
	}
}

// junitCase reads one test from the tokens after its start. Elements are not matched, so that
// a document that is cut or wrong is read as far as it goes.
func (s *scan) junitCase(decoder *xml.Decoder, start xml.StartElement) {
	f := proposal.Diagnostic{Tool: "junit"}
	row := 0
	for _, a := range start.Attr {
		switch a.Name.Local {
		case "name":
			f.Test = a.Value
		case "classname":
			f.Suite = a.Value
		case "file":
			f.File = a.Value
		case "line":
			row = number(a.Value)
		}
	}
	if f.File != "" {
		name := f.File
		f.File = ""
		s.at(&f, place{name: name, row: max(row, 1)})
		if row == 0 {
			f.Line = 0
		}
	}
	inFailure, found := false, false
	message := ""
	var text strings.Builder
	for {
		token, err := decoder.RawToken()
		if err != nil {
			break
		}
		switch t := token.(type) {
		case xml.StartElement:
			if t.Name.Local != "failure" && t.Name.Local != "error" {
				continue
			}
			inFailure = true
			for _, a := range t.Attr {
				if a.Name.Local == "message" && !found {
					message = a.Value
				}
			}
			found = true
		case xml.CharData:
			if inFailure && text.Len() < 64<<10 {
				text.Write(t)
			}
		case xml.EndElement:
			switch t.Name.Local {
			case "failure", "error":
				inFailure = false
			case "testcase":
				if found {
					s.addJUnit(f, message, text.String())
				}
				return
			}
		}
	}
	if found {
		s.addJUnit(f, message, text.String())
	}
}

func (s *scan) addJUnit(f proposal.Diagnostic, message, text string) {
	body := strings.Split(text, "\n")
	if strings.Contains(text, "Traceback (most recent call last):") || strings.Contains(text, "\nE  ") {
		p := f
		s.pytestBlock(&p, body)
		if p.Message == "" {
			p.Message = message
		}
		s.add(rankTest, p)
		return
	}
	if len(body) > 0 && strings.HasPrefix(body[0], f.Suite+"::"+f.Test) {
		body = body[1:] // PHPUnit repeats the name
	}
	if first, _, _ := strings.Cut(strings.TrimSpace(message), "\n"); first != "" && !strings.HasSuffix(first, ":") {
		f.Message = first
	}
	s.addBlock(rankTest, f, append(strings.Split(message, "\n"), body...))
}
