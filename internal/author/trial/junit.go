// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"
	"io"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/junit"
)

// JUnit writes r for CI systems: one test suite for each file, one test case for each test.
func (r Report) JUnit(w io.Writer) error {
	var suites []junit.Suite
	at := map[string]int{}
	for _, t := range r.Tests {
		key := t.Layer + "/" + t.File
		i, known := at[key]
		if !known {
			i = len(suites)
			at[key] = i
			suites = append(suites, junit.Suite{Name: key, File: t.File})
		}
		suites[i].Add(t.junitCase(), float64(t.WallUS)/1e6)
	}
	return junit.Write(w, "fumehood policy test", suites, float64(r.WallMS)/1e3)
}

func (t Result) junitCase() junit.Case {
	c := junit.Case{Name: t.Name, ClassName: t.Layer + "." + t.Kind, File: t.File, Line: t.Line, Output: t.Print}
	message := &junit.Message{Message: t.Message, Type: string(t.Status), Text: t.detailLines()}
	switch t.Status {
	case Passed:
	case Skipped:
		c.Skipped = &junit.Skipped{}
	case Failed:
		c.Failure = message
	default:
		c.Error = message
	}
	return c
}

// detailLines are the lines besides Message.
func (t Result) detailLines() string {
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
