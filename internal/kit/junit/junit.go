// SPDX-License-Identifier: Apache-2.0

// Package junit writes results as JUnit XML, in the form that CI systems read. Characters that
// hide or reorder others on terminals and pages are replaced.
package junit

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"unicode"
)

type suites struct {
	XMLName  xml.Name `xml:"testsuites"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Errors   int      `xml:"errors,attr"`
	Time     string   `xml:"time,attr"`
	Suites   []Suite  `xml:"testsuite"`
}

// A Suite is a list of cases. Add counts them.
type Suite struct {
	Name     string `xml:"name,attr"`
	File     string `xml:"file,attr,omitempty"`
	Tests    int    `xml:"tests,attr"`
	Failures int    `xml:"failures,attr"`
	Errors   int    `xml:"errors,attr"`
	Skipped  int    `xml:"skipped,attr"`
	Time     string `xml:"time,attr"`
	Cases    []Case `xml:"testcase"`
	seconds  float64
}

// A Case is one test. At most one of Skipped, Error and Failure is set.
type Case struct {
	Name      string   `xml:"name,attr"`
	ClassName string   `xml:"classname,attr"`
	File      string   `xml:"file,attr,omitempty"`
	Line      int      `xml:"line,attr,omitempty"`
	Time      string   `xml:"time,attr"`
	Skipped   *Skipped `xml:"skipped"`
	Error     *Message `xml:"error"`
	Failure   *Message `xml:"failure"`
	Output    string   `xml:"system-out,omitempty"`
	Errors    string   `xml:"system-err,omitempty"`
}

// Skipped says that a test did not run, and why.
type Skipped struct {
	Message string `xml:"message,attr,omitempty"`
}

// A Message is how a test ended.
type Message struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// Add adds a case that took some seconds, in the visible form.
func (s *Suite) Add(c Case, took float64) {
	for _, field := range []*string{&c.Name, &c.ClassName, &c.File, &c.Output, &c.Errors} {
		*field = escapeHidden(*field)
	}
	s.Tests, s.seconds, c.Time = s.Tests+1, s.seconds+took, formatSeconds(took)
	for _, m := range []*Message{c.Error, c.Failure} {
		if m != nil {
			m.Message, m.Text = escapeHidden(m.Message), escapeHidden(m.Text)
		}
	}
	switch {
	case c.Skipped != nil:
		c.Skipped.Message = escapeHidden(c.Skipped.Message)
		s.Skipped++
	case c.Failure != nil:
		s.Failures++
	case c.Error != nil:
		s.Errors++
	}
	s.Cases = append(s.Cases, c)
}

// Write writes suites that took some seconds together.
func Write(w io.Writer, name string, list []Suite, took float64) error {
	all := suites{Name: name, Time: formatSeconds(took), Suites: list}
	for i := range list {
		s := &list[i]
		s.Name, s.File, s.Time = escapeHidden(s.Name), escapeHidden(s.File), formatSeconds(s.seconds)
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

func formatSeconds(s float64) string { return fmt.Sprintf("%.3f", s) }

// escapeHidden replaces characters that hide or reorder others.
func escapeHidden(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return '\ufffd'
	}, text)
}
