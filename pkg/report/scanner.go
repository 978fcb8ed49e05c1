// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"

	"github.com/fumehood/fumehood/pkg/internal/pattern"
)

// A scanner reads the lines of one piece of output. Some tools report a problem on
// several lines; the scanner keeps the message and the location between them.
type scanner struct {
	found     *finds
	cwd, id   string
	succeeded bool

	path      string // the last location, if it is in a file of the pull request
	row, col  int
	file      string // the file of the following problems (eslint)
	said      remark
	awaited   string // the tool whose text about the last location follows
	traceback bool   // the last location is in a Python traceback

	test     string // the Go test that is printing
	verdicts map[string]string
	logs     []testLog
}

// A remark is the message of a tool that prints the location after it.
type remark struct{ tool, level, text string }

var (
	eslintLine = pattern.New(`^\s{1,8}(\d{1,7}):(\d{1,5})\s{1,8}(error|warning)\s+(.+?)(?:\s{2,}(\S{1,100}))?$`)
	arrow      = pattern.New(`^\s{0,8}--> (.{1,400}?):(\d{1,7}):(\d{1,5})$`)
	rustSays   = pattern.New(`^(error|warning)(?:\[E\d{4}\])?: (.+)$`)
	ruffSays   = pattern.New(`^([A-Z]{1,4}\d{3,4}) (?:\[\*\] )?(.+)$`)
	rustPanics = pattern.New(`^thread '.{0,200}' (?:\(\d+\) )?panicked at (.{1,400}?):(\d{1,7}):(\d{1,5}):$`)
	pytestSays = pattern.New(`^E\s{1,8}(.+)$`)
	pytestAt   = pattern.New(`^([^\s:][^:]{0,400}\.py):(\d{1,7}): ([A-Za-z_.]*(?:Error|Exception|Failed|Exit)|in \S{1,200})$`)
	pythonAt   = pattern.New(`^\s{2,8}File "([^"]{1,400})", line (\d{1,7})\b`)
	pythonSays = pattern.New(`^([A-Za-z_][A-Za-z0-9_.]{0,100}(?:Error|Exception|Failure|Interrupt|Exit))(?:: .*)?$`)
)

// line reads one line.
func (s *scanner) line(line string) {
	if strings.TrimSpace(line) == "" {
		s.file = ""
		return
	}
	if s.awaited != "" {
		tool := s.awaited
		s.awaited = ""
		s.say(tool, "failure", line)
		return
	}
	for _, read := range []func(string) bool{s.goTest, s.eslint, s.pointed, s.pytest, s.python, s.one} {
		if read(line) {
			return
		}
	}
}

// match is FindStringSubmatch for an expression whose every match contains has.
// Most lines do not, and so are not matched.
func match(form *pattern.Pattern, has, line string) []string {
	if !strings.Contains(line, has) {
		return nil
	}
	return form.FindStringSubmatch(line)
}

// place records a location, if it is in a file of the pull request.
func (s *scanner) place(name, row, col string) bool {
	s.path, s.row, s.col = s.found.tree.resolve(s.cwd, name), number(row), number(col)
	return s.path != "" && s.row > 0
}

// say adds a message about the last location.
func (s *scanner) say(tool, level, message string) {
	if s.path == "" || s.row == 0 {
		return
	}
	if level == "" {
		level = "failure"
	}
	if level == "failure" && s.succeeded {
		level = "warning" // the tool itself succeeded
	}
	s.found.add(Annotation{Path: s.path, Line: s.row, Col: s.col, Level: level, Title: tool + " · " + s.id, Message: message})
}

// eslint reads a file name on a line by itself, and problems on the lines below.
func (s *scanner) eslint(line string) bool {
	if s.file != "" {
		if m := eslintLine.FindStringSubmatch(line); m != nil {
			s.problem(m)
			return true
		}
	}
	if line[0] == ' ' || line[0] == '\t' || len(line) > 500 {
		return false
	}
	file := s.found.tree.resolve(s.cwd, line)
	if file != "" {
		s.file = file
	}
	return file != ""
}

// problem adds one of the problems of a file.
func (s *scanner) problem(m []string) {
	s.path, s.row, s.col = s.file, number(m[1]), number(m[2])
	message := m[4]
	if m[5] != "" {
		message += " (" + m[5] + ")"
	}
	s.say("eslint", levelOf[m[3]], message)
}

// pointed reads the form of rustc and ruff: the message, then an arrow and the location.
func (s *scanner) pointed(line string) bool {
	if m := match(arrow, "--> ", line); m != nil {
		if s.said.text != "" && s.place(m[1], m[2], m[3]) {
			s.say(s.said.tool, s.said.level, s.said.text)
		}
		s.said = remark{}
		return true
	}
	if m := match(rustPanics, " panicked at ", line); m != nil {
		if s.place(m[1], m[2], m[3]) {
			s.awaited = "rust"
		}
		return true
	}
	if m := match(rustSays, ": ", line); m != nil {
		s.said = remark{"rustc", levelOf[m[1]], m[2]}
		return true
	}
	if m := ruffSays.FindStringSubmatch(line); m != nil {
		s.said = remark{"ruff", "failure", m[1] + " " + m[2]}
		return true
	}
	return false
}

// pytest reads errors on lines that begin with E, and the location after them or,
// with --tb=short, before them.
func (s *scanner) pytest(line string) bool {
	if m := match(pytestSays, "E  ", line); m != nil {
		if s.said.tool == "pytest at" {
			s.say("pytest", "failure", m[1])
			s.said = remark{}
		} else if s.said.tool != "pytest" {
			s.said = remark{"pytest", "failure", m[1]}
		}
		return true
	}
	m := match(pytestAt, ".py:", line)
	if m == nil {
		return false
	}
	known := s.place(m[1], m[2], "")
	switch {
	case strings.HasPrefix(m[3], "in ") && known:
		s.said = remark{tool: "pytest at"}
	case s.said.tool == "pytest" && known:
		s.say("pytest", "failure", s.said.text)
		s.said = remark{}
	case known:
		s.say("pytest", "failure", m[3])
	default:
		s.said = remark{}
	}
	return true
}

// python reads a traceback. It uses the last location in a file of the pull
// request, and the exception below it.
func (s *scanner) python(line string) bool {
	if m := match(pythonAt, "File \"", line); m != nil {
		path, row, col := s.path, s.row, s.col
		if s.place(m[1], m[2], "") {
			s.traceback = true
		} else if s.traceback {
			s.path, s.row, s.col = path, row, col
		}
		return true
	}
	if !s.traceback || !pythonSays.MatchString(line) {
		return false
	}
	s.say("python", "failure", line)
	s.traceback = false
	return true
}
