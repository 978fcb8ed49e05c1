// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// junitSuites is JUnit's format as CI systems read it.
type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	File     string      `xml:"file,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
	us       int64
}

type junitCase struct {
	Name      string        `xml:"name,attr"`
	ClassName string        `xml:"classname,attr"`
	File      string        `xml:"file,attr"`
	Line      int           `xml:"line,attr"`
	Time      string        `xml:"time,attr"`
	Skipped   *struct{}     `xml:"skipped"`
	Error     *junitMessage `xml:"error"`
	Failure   *junitMessage `xml:"failure"`
	Output    string        `xml:"system-out,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// JUnit writes r for CI systems: one test suite for each file, one test case for each test.
func (r Report) JUnit(w io.Writer) error {
	all := junitSuites{Name: "fumehood policy test", Time: seconds(r.WallMS * 1000)}
	at := map[string]int{}
	for _, t := range r.Tests {
		key := t.Layer + "/" + t.File
		i, known := at[key]
		if !known {
			i = len(all.Suites)
			at[key] = i
			all.Suites = append(all.Suites, junitSuite{Name: visible(key), File: visible(t.File)})
		}
		all.Suites[i].add(t)
	}
	for i := range all.Suites {
		s := &all.Suites[i]
		s.Time = seconds(s.us)
		all.Tests, all.Failures, all.Errors = all.Tests+s.Tests, all.Failures+s.Failures, all.Errors+s.Errors
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *junitSuite) add(t Result) {
	c := junitCase{Name: visible(t.Name), ClassName: visible(t.Layer + "." + t.Kind), File: visible(t.File), Line: t.Line, Time: seconds(t.WallUS), Output: visible(t.Print)}
	s.Tests, s.us = s.Tests+1, s.us+t.WallUS
	message := &junitMessage{Message: visible(t.Message), Type: string(t.Status), Text: visible(t.details())}
	switch t.Status {
	case Passed:
	case Skipped:
		c.Skipped = &struct{}{}
		s.Skipped++
	case Failed:
		c.Failure = message
		s.Failures++
	default:
		c.Error = message
		s.Errors++
	}
	s.Cases = append(s.Cases, c)
}

// details are the lines besides Message.
func (t Result) details() string {
	var b strings.Builder
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, text)
		}
	}
	line("at", fmt.Sprintf("%s:%d", t.File, t.Line))
	line("about", t.Subject)
	line("want", t.Want)
	line("got", t.Got)
	line("rules", strings.Join(t.Rules, ", "))
	for _, r := range t.Reasons {
		line(r.Rule, r.Message)
	}
	if t.Failure != nil {
		line(fmt.Sprintf("%s:%d", t.Failure.File, t.Failure.Line), "\n"+t.Failure.Text)
	}
	for _, p := range t.Parts {
		line(p.Name, string(p.Status))
		if p.Failure != nil {
			line(fmt.Sprintf("%s:%d", p.Failure.File, p.Failure.Line), "\n"+p.Failure.Text)
		}
	}
	line("hint", t.Hint)
	return b.String()
}

func seconds(us int64) string { return fmt.Sprintf("%.3f", float64(us)/1e6) }

// visible escapes characters that hide or reorder others on terminals and pages.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return '\ufffd'
	}, text)
}
