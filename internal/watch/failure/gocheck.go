// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var (
	goCheckFails = pattern.New(`^(?:FAIL|PANIC): (\S{1,200}\.go):(\d{1,7}): (\S{1,300})$`)
	goCheckAt    = pattern.New(`^(\S{1,200}\.go):(\d{1,7}):$`)
	goCheckEnds  = pattern.New(`^OOPS: (?:\d{1,7} passed, )?.{0,100}(?:FAILED|PANICKED)`)
)

// A goInner is a test of a suite of gocheck (gopkg.in/check.v1), which is in one test of go test.
type goInner struct {
	found     proposal.Diagnostic
	file, row string
	isPlaced  bool
}

// readInner reads a line of gocheck. It changes nothing that other readers of the line see.
func (g *goScan) readInner(line string) {
	g.innerEnds = goCheckEnds.MatchString(line) || g.innerEnds && strings.TrimSpace(line) == ""
	if m := matchContaining(goCheckFails, ".go:", line); m != nil && len(g.inner) < maxRead {
		g.inner = append(g.inner, &goInner{found: proposal.Diagnostic{Tool: "gocheck", Test: m[3]}, file: m[1],
			row: m[2]})
		g.innerOpen = true
		return
	}
	if !g.innerOpen {
		return
	}
	last := g.inner[len(g.inner)-1]
	m := matchContaining(goCheckAt, ".go:", line)
	value, isValue := strings.CutPrefix(line, "... ")
	switch {
	case g.innerEnds || strings.HasPrefix(line, "-----"):
		g.innerOpen = false
	case m != nil && !last.isPlaced:
		last.file, last.row, last.isPlaced = m[1], m[2], true
	case isValue:
		label, text, _ := strings.Cut(value, " = ")
		switch {
		case strings.HasPrefix(label, "expected ") && last.found.Expected == "":
			last.found.Expected = text
		case (strings.HasPrefix(label, "obtained ") || strings.HasPrefix(label, "value ")) && last.found.Actual == "":
			last.found.Actual = text
		case strings.HasPrefix(value, "Panic: ") || last.found.Message == "":
			last.found.Message, _, _ = strings.Cut(value, " (PC=")
		}
	case last.isPlaced && last.found.Message == "" && indentWidth(line) > 0:
		last.found.Message = strings.TrimSpace(line) // the assertion
	}
}

// settleInner reports the tests of a package's suites.
func (g *goScan) settleInner(tree *Tree, pkg string) {
	for _, inner := range g.inner {
		f := inner.found
		f.Suite = pkg
		if f.File = tree.goFile(inner.file, pkg, g.GoModules); f.File != "" {
			f.Line = parseNumber(inner.row)
		}
		g.addReport(rankTest, f)
	}
}

// A goExample is an example whose output is not the one in its comment.
type goExample struct {
	test      string
	got, want []string
	isWant    bool
}

// readExample reads a line below an example that failed, and reports whether it is part of it.
func (g *goScan) readExample(line string) bool {
	e := g.example
	switch {
	case e == nil:
		return false
	case line == "got:" && e.got == nil:
		e.got = []string{}
	case (line == "want:" || line == "want (unordered):") && e.got != nil && !e.isWant:
		e.isWant = true
	case e.got == nil || line == "FAIL" || line == "PASS" || goVerdict.MatchString(line) ||
		goPackage.MatchString(line) || goRuns.MatchString(line):
		g.example = nil
		return false
	case e.isWant:
		e.want = appendSome(e.want, line)
	default:
		e.got = appendSome(e.got, line)
	}
	return true
}

func appendSome(lines []string, line string) []string {
	if len(lines) < 60 {
		lines = append(lines, line)
	}
	return lines
}

// describeDifference returns the first line in which the outputs differ.
func (e *goExample) describeDifference(f *proposal.Diagnostic) {
	for i := range max(len(e.got), len(e.want)) {
		line := func(lines []string) string {
			if i < len(lines) {
				return strings.TrimSpace(lines[i])
			}
			return "nothing more"
		}
		if got, want := line(e.got), line(e.want); got != want {
			f.Message, f.Actual, f.Expected = "prints other output", got, want
			return
		}
	}
}
