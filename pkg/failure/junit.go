// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"encoding/xml"
	"slices"
	"strings"

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
	for _, test := range parseJUnit(strings.Join(s.lines, "\n"), maxReports) {
		s.addJUnit(test)
	}
}

// parseJUnit returns the tests that failed in a JUnit document, at most limit. Elements are not
// matched, so that a document that is cut or wrong is read as far as it goes. Entities of the
// document's own are not expanded.
func parseJUnit(text string, limit int) (tests []junitTest) {
	start := strings.Index(text, "<testsuite")
	if start < 0 {
		return nil
	}
	decoder := xml.NewDecoder(strings.NewReader(text[start:]))
	decoder.Strict = false
	decoder.Entity = map[string]string{}
	for len(tests) < limit {
		token, err := decoder.RawToken()
		if err != nil {
			break
		}
		if element, ok := token.(xml.StartElement); ok && element.Name.Local == "testcase" {
			if test, failed := parseJUnitTest(decoder, element); failed {
				tests = append(tests, test)
			}
		}
	}
	return tests
}

// parseJUnitTest reads one test from the tokens after its start.
func parseJUnitTest(decoder *xml.Decoder, start xml.StartElement) (test junitTest, failed bool) {
	for _, a := range start.Attr {
		switch a.Name.Local {
		case "name":
			test.name = a.Value
		case "classname":
			test.suite = a.Value
		case "file":
			test.file = a.Value
		case "line":
			test.line = number(a.Value)
		}
	}
	inFailure := false
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
			for _, a := range t.Attr {
				if a.Name.Local == "message" && !failed {
					test.message = a.Value
				}
			}
			inFailure, failed = true, true
		case xml.CharData:
			if room := maxJUnitText - text.Len(); inFailure && room > 0 {
				text.Write(t[:min(len(t), room)])
			}
		case xml.EndElement:
			if t.Name.Local == "failure" || t.Name.Local == "error" {
				inFailure = false
			}
		}
		if end, ok := token.(xml.EndElement); ok && end.Name.Local == "testcase" {
			break
		}
	}
	test.text = text.String()
	return test, failed
}

// addJUnit adds a report of a test that failed.
func (s *scan) addJUnit(test junitTest) {
	f := proposal.Diagnostic{Tool: "junit", Test: test.name, Suite: test.suite}
	if test.file != "" {
		s.setPlace(&f, place{name: test.file, row: max(test.line, 1)})
		if test.line == 0 {
			f.Line = 0
		}
	}
	body := strings.Split(test.text, "\n")
	switch first, _, _ := strings.Cut(strings.TrimSpace(test.message), "\n"); {
	case strings.Contains(test.text, "Traceback (most recent call last):") || strings.Contains(test.text, "\nE  "):
		s.pytestBlock(&f, body)
		if f.Message == "" {
			f.Message = test.message
		}
		s.add(rankTest, f)
		return
	case batsPlace.MatchString(test.text):
		s.bats(f, body)
		return
	case first == "Failed": // go test prints no message
		s.addGoTest(f, body)
		return
	case first != "" && !strings.HasSuffix(first, ":"):
		f.Message = first
	}
	if strings.HasPrefix(body[0], f.Suite+"::"+f.Test) {
		body = body[1:] // PHPUnit repeats the name
	}
	s.addBlock(rankTest, f, append(strings.Split(test.message, "\n"), body...))
}

// addGoTest adds a report of a Go test, whose text is what the test printed.
func (s *scan) addGoTest(f proposal.Diagnostic, lines []string) {
	lines = slices.Concat([]string{"=== RUN   " + f.Test}, lines, []string{"--- FAIL: " + f.Test + " (0.00s)", "FAIL\t" + f.Suite + "\t0.000s"})
	part := &scan{Options: s.Options, lines: lines, work: 20*len(lines) + 1000}
	readGo(part)
	n := len(s.found)
	for _, r := range part.found {
		if r.Message != Unsaid && r.Level == Error {
			d := r.Diagnostic
			d.Tool, d.Suite, d.Test = f.Tool, f.Suite, f.Test
			s.add(rankTest, d)
		}
	}
	if len(s.found) == n {
		s.add(rankTest, f)
	}
}
