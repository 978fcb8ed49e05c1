// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"cmp"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxJUnitText is the maximum length of what a JUnit document says of one test, in bytes.
const maxJUnitText = 64 << 10

// A junitTest is a test that failed, as a JUnit document has it.
type junitTest struct {
	name, suite string
	file        string // as the runner names it; "" if it does not
	line        int    // 0 if unknown
	message     string // of the first failure or error
	text        string // of all of them
}

// readJUnit reads JUnit XML that a command prints.
func readJUnit(s *scan) {
	tests, _ := parseJUnit(strings.Join(s.lines, "\n"), maxReports)
	for _, test := range tests {
		s.addJUnit(test)
	}
}

// parseJUnit returns the tests that failed in a JUnit document, at most limit, and whether it was read
// to its end. Elements are not matched, and behind what is wrong, reading goes on at the next test.
// Entities of the document's own are not expanded.
func parseJUnit(text string, limit int) (tests []junitTest, isWhole bool) {
	start := strings.Index(text, "<testsuite")
	if start < 0 {
		return nil, true
	}
	suite, isWhole := junitSuite{}, true
	for start >= 0 && len(tests) < limit {
		text = text[start:]
		decoder := xml.NewDecoder(strings.NewReader(text))
		decoder.Strict = false
		decoder.Entity = map[string]string{}
		part, err := parseJUnitPart(decoder, &suite, limit-len(tests))
		tests = append(tests, part...)
		if err == nil {
			break
		}
		isWhole = false
		from := max(1, min(int(decoder.InputOffset()), len(text)))
		if start = strings.Index(text[from:], "<testcase"); start >= 0 {
			start += from
		}
	}
	return tests, isWhole && suite.depth == 0
}

// A junitSuite is the suite that is being read.
type junitSuite struct {
	name, file string
	depth      int // of suites that have not ended
}

// parseJUnitPart reads until the end, or until something is wrong.
func parseJUnitPart(decoder *xml.Decoder, suite *junitSuite, limit int) (tests []junitTest, err error) {
	for len(tests) < limit {
		token, err := decoder.RawToken()
		switch {
		case errors.Is(err, io.EOF):
			return tests, nil
		case err != nil:
			return tests, err
		}
		if end, ok := token.(xml.EndElement); ok && end.Name.Local == "testsuite" {
			suite.depth--
		}
		element, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch element.Name.Local {
		case "testsuite":
			suite.depth++
			suite.name, suite.file = attributeOf(element, "name"), suiteFile(element)
		case "testcase":
			test, failed, err := parseJUnitTest(decoder, element,
				junitTest{name: attributeOf(element, "name"), suite: attributeOf(element, "classname")})
			if failed {
				test.name, test.file = cmp.Or(test.name, "without a name"), cmp.Or(test.file, suite.file)
				tests = append(tests, test)
			}
			if err != nil {
				return tests, err
			}
		case "failure", "error":
			test, _, err := parseJUnitTest(decoder, element,
				junitTest{name: "outside its tests", suite: suite.name, file: suite.file})
			tests = append(tests, test)
			if err != nil {
				return tests, err
			}
		}
	}
	return tests, nil
}

func attributeOf(element xml.StartElement, name string) string {
	for _, a := range element.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// suiteFile returns the file of a suite, which linters and runners of JavaScript name only there.
func suiteFile(suite xml.StartElement) (name string) {
	for _, a := range suite.Attr {
		switch {
		case a.Name.Local == "file" || a.Name.Local == "filepath":
			return a.Value
		case a.Name.Local == "name" && strings.Contains(a.Value, "/") && isFileName(a.Value):
			name = a.Value
		}
	}
	return name
}

// parseJUnitTest reads the rest of an element, a test or its failure, into test. The error is the reader's.
func parseJUnitTest(decoder *xml.Decoder, start xml.StartElement, test junitTest) (junitTest, bool, error) {
	test.file = cmp.Or(attributeOf(start, "file"), test.file)
	test.line = parseNumber(cmp.Or(attributeOf(start, "lineno"), attributeOf(start, "line")))
	inFailure, failed := false, false
	var text, output strings.Builder // output is of the test's program
	begin := func(t xml.StartElement) {
		if t.Name.Local != "failure" && t.Name.Local != "error" {
			return
		}
		if !failed {
			test.message = attributeOf(t, "message")
		}
		inFailure, failed = true, true
	}
	begin(start)
	var wrong error
	for {
		token, err := decoder.RawToken()
		if err != nil {
			wrong = err
			break
		}
		switch t := token.(type) {
		case xml.StartElement:
			begin(t)
		case xml.CharData:
			to := &output
			if inFailure {
				to = &text
			}
			if room := maxJUnitText - to.Len(); room > 0 {
				to.Write(t[:min(len(t), room)])
			}
		case xml.EndElement:
			if t.Name.Local == "failure" || t.Name.Local == "error" {
				inFailure = false
			}
		}
		if end, ok := token.(xml.EndElement); ok && end.Name.Local == start.Name.Local {
			break
		}
	}
	test.text = text.String()
	if strings.TrimSpace(test.message+test.text) == "" {
		test.text = output.String() // as CTest writes it
	}
	return test, failed, wrong
}

// addJUnit adds a report of a test that failed.
func (s *scan) addJUnit(test junitTest) {
	f := proposal.Diagnostic{Tool: "junit", Test: test.name, Suite: test.suite}
	file, _, _ := strings.Cut(test.file, "::") // Pest adds the name
	if s.setPlace(&f, place{name: file, row: max(test.line, 1)}) {
		f.Line = test.line
	}
	body := strings.Split(test.text, "\n")
	switch first, _, _ := strings.Cut(strings.TrimSpace(test.message), "\n"); {
	case strings.Contains(test.text, "Traceback (most recent call last):") || strings.Contains(test.text, "\nE  "):
		s.pytestBlock(&f, body)
		if f.Message == "" {
			f.Message = test.message
		}
		s.addReport(rankTest, f)
		return
	case batsPlace.MatchString(test.text):
		s.readBats(f, body)
		return
	case first == "Failed": // go test prints no message
		s.addGoTest(f, body)
		return
	case first != "" && !strings.HasSuffix(first, ":") && !isPlaceOnly(first) && first != "failure":
		f.Message = first
	}
	if strings.HasPrefix(strings.ReplaceAll(body[0], `\`, "."), strings.ReplaceAll(f.Suite, `\`, ".")+"::"+f.Test) {
		body = body[1:] // PHPUnit repeats the name
	}
	body = s.readJUnitFields(&f, body)
	if f.Message == "" && len(body) > 0 && body[0] == gtestEquals {
		s.readGTestValues(&f, body[1:])
	}
	lines := body
	if !isPlaceOnly(strings.TrimSpace(test.message)) && f.Message != "" {
		lines = append(strings.Split(test.message, "\n"), body...)
	}
	s.fillReport(&f, lines)
	if isVague := f.Message == "" || strings.Contains(f.Message, " panicked at "); isVague || f.Line == 0 {
		if inner, ok := s.readNested(body); ok { // what the test's program printed
			if isVague {
				f.Message, f.Expected, f.Actual = inner.Message, inner.Expected, inner.Actual
			}
			if f.Line == 0 && inner.File != "" {
				f.File, f.Line, f.Column, f.Frames = inner.File, inner.Line, inner.Column, inner.Frames
			}
		}
	}
	if f.File == "" {
		s.setPythonFile(&f)
	}
	s.addReport(rankTest, f)
}

// isPlaceOnly reports whether a text is nothing but a place, as "t.cpp:5".
func isPlaceOnly(text string) bool {
	p, ok := parsePlace(text)
	return ok && isFileName(p.name) && !strings.ContainsAny(text, " \t\n")
}

var (
	junitField = pattern.New(`^- (file|line|message)\s{0,3}: (.{1,900})$`) // Boost.Test
	junitNamed = pattern.New(`^\S.{0,300} \[([^\s:\]]{1,300}):(\d{1,7})\]:$`)
	junitLine  = pattern.New(`^line (\d{1,7}), col (\d{1,5}), `)
)

// readJUnitFields reads lines that are only in JUnit documents, and returns the others.
func (s *scan) readJUnitFields(f *proposal.Diagnostic, body []string) (rest []string) {
	at := place{}
	for i, line := range body {
		t := strings.TrimSpace(line)
		if m := matchContaining(junitField, "- ", t); m != nil {
			switch m[1] {
			case "file":
				at.name = m[2]
			case "line":
				at.row = parseNumber(m[2])
			default:
				f.Message = m[2]
			}
		} else if m := matchContaining(junitNamed, "]:", t); m != nil { // minitest
			at = place{name: m[1], row: parseNumber(m[2])}
		} else if m := matchContaining(junitLine, "line ", t); m != nil && f.File != "" { // ESLint, Ruff
			f.Line, f.Column = parseNumber(m[1]), parseNumber(m[2])
		} else if expansion := i > 0 && strings.TrimSpace(body[i-1]) == "with expansion:"; expansion { // Catch2
			f.Message = strings.TrimPrefix(f.Message+": "+t, ": ")
		} else if !isPlaceOnly(t) || i > 0 {
			rest = append(rest, line)
		} else {
			at, _ = parsePlace(t) // GoogleTest
		}
	}
	s.setPlace(f, at)
	return rest
}

// setPythonFile sets the file of a test of which only the module is known, as "tests.test_a.TestA".
func (s *scan) setPythonFile(f *proposal.Diagnostic) {
	f.File, f.Line = "", 0
	parts := strings.Split(f.Suite, ".")
	for n := len(parts); n > 0 && n >= len(parts)-1 && s.Tree != nil; n-- {
		if name := strings.Join(parts[:n], "/") + ".py"; s.Tree.Has(s.Tree.Resolve(s.Cwd, name)) {
			f.File = s.Tree.Resolve(s.Cwd, name)
			return
		}
	}
}

// addGoTest adds a report of a Go test, whose text is what the test printed.
func (s *scan) addGoTest(f proposal.Diagnostic, lines []string) {
	lines = slices.Concat([]string{"=== RUN   " + f.Test}, lines,
		[]string{"--- FAIL: " + f.Test + " (0.00s)", "FAIL\t" + f.Suite + "\t0.000s"})
	part := &scan{Options: s.Options, lines: lines, work: 20*len(lines) + 1000}
	readGo(part)
	n := len(s.found)
	for _, r := range part.found {
		if r.Message != Unsaid && r.Level == Error {
			d := r.Diagnostic
			d.Tool, d.Suite, d.Test = f.Tool, f.Suite, f.Test
			s.addReport(rankTest, d)
		}
	}
	if len(s.found) == n {
		s.addReport(rankTest, f)
	}
}
