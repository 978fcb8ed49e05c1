// SPDX-License-Identifier: Apache-2.0

package report

import "github.com/fumehood/fumehood/pkg/internal/pattern"

// A testLog is a line that a Go test printed with t.Error or t.Log. It has a bare
// file name. Its package, and whether the test failed, are not known yet.
type testLog struct {
	test, file, line, text string
}

var (
	goRuns    = pattern.New(`^=== (?:RUN|NAME|CONT|PAUSE)\s+(\S{1,400})$`)
	goVerdict = pattern.New(`^\s*--- (PASS|FAIL|SKIP): (\S{1,400}) \([0-9.]+s\)$`)
	goPackage = pattern.New(`^(?:ok  |FAIL)\t(\S{1,400})\s`)
	goPanics  = pattern.New(`^(panic: .+?)(?: \[recovered.*\])?$`)
	goFrame   = pattern.New(`^\t(/\S{1,400}\.go):(\d{1,7})(?: \+0x[0-9a-f]+)?$`)
	goLog     = pattern.New(`^\s{4,64}([^\s:/]{1,200}\.go):(\d{1,7}): (.*)$`)
)

// maxLogs is the maximum number of lines of Go tests that are kept until the
// verdict is known.
const maxLogs = 5000

// goTest reads the lines that go test prints around a test's own lines.
func (s *scanner) goTest(line string) bool {
	if m := match(goLog, ".go:", line); m != nil {
		if (s.found.tree.open || len(s.found.tree.bases[m[1]]) > 0) && len(s.logs) < maxLogs {
			s.logs = append(s.logs, testLog{test: s.test, file: m[1], line: m[2], text: m[3]})
		}
		return true
	}
	if m := match(goRuns, "=== ", line); m != nil {
		s.test = m[1]
		return true
	}
	if m := match(goVerdict, "--- ", line); m != nil {
		s.verdicts[m[2]], s.test = m[1], m[2]
		return true
	}
	if m := match(goPackage, "\t", line); m != nil {
		s.settle(m[1])
		return true
	}
	return s.goPanic(line)
}

// goPanic reads a panic and uses the first location of its stack in a file of the
// pull request.
func (s *scanner) goPanic(line string) bool {
	if m := match(goPanics, "panic: ", line); m != nil {
		s.said = remark{"go panic", "failure", m[1]}
		return true
	}
	m := match(goFrame, ".go:", line)
	if m == nil {
		return false
	}
	if s.said.tool == "go panic" && s.place(m[1], m[2], "") {
		s.say(s.said.tool, s.said.level, s.said.text)
		s.said = remark{}
	}
	return true
}

// settle assigns the logs since the last package to pkg, and drops those of tests
// that did not fail: names of tests are unique only within a package.
func (s *scanner) settle(pkg string) {
	for _, l := range s.logs {
		level := "warning" // the end of the output may have been cut
		switch s.verdicts[l.test] {
		case "FAIL":
			level = "failure"
		case "PASS", "SKIP":
			continue
		}
		s.path, s.row, s.col = s.found.tree.inPackage(l.file, pkg), number(l.line), 0
		s.say("go test", level, l.text)
	}
	s.logs, s.verdicts, s.test = s.logs[:0], map[string]string{}, ""
}

// finish handles the logs without a package line.
func (s *scanner) finish() { s.settle("") }
