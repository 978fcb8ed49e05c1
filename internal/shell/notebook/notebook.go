// SPDX-License-Identifier: Apache-2.0

// Package notebook translates the cells of notebooks to Python: what IPython reads beside Python
// itself. The syntax is that of IPython's documentation, "Built-in magic commands" and "Using
// IPython for interactive work":
//
//	%%name arguments    a cell magic, of the cell's first line; the rest of the cell is its text
//	%name arguments     a line magic
//	!text, !!text       a shell command; with two, its output is the value
//	x = !text           the same, with the output as a list of lines
//	x = %name arguments
//	x?, ?x, x??         help
//
// None of these lines begins or ends a statement of Python, so that a cell of plain Python stays as
// it is, except that an indentation of the whole cell is removed.
package notebook

import (
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// Translate returns cell as Python with the same number of lines. Magics, commands and questions
// are calls of methods of get_ipython(), which have the names and arguments of IPython's own. What is
// neither IPython's nor Python's syntax is left as it is: the interpreter says what is wrong with it.
func Translate(cell string) string {
	lines := removeIndentation(strings.Split(cell, "\n"))
	if translated, ok := translateCellMagic(lines); ok {
		return translated
	}
	var s scanner
	for i := 0; i < len(lines); i++ {
		first := i
		if !s.isInside() {
			joined := lines[i]
			for strings.HasSuffix(joined, `\`) && i+1 < len(lines) && isCommand(joined) {
				i++
				joined = strings.TrimSuffix(joined, `\`) + strings.TrimLeft(lines[i], " \t")
			}
			if translated, ok := translateLine(joined); ok {
				lines[first] = translated
				clear(lines[first+1 : i+1])
				continue
			}
			i = first
		}
		s.readLine(lines[i])
	}
	return strings.Join(lines, "\n")
}

// removeIndentation removes the indentation of the first statement from all lines that have it.
func removeIndentation(lines []string) []string {
	for _, line := range lines {
		text := strings.TrimLeft(line, " \t")
		if strings.TrimSpace(text) == "" || strings.HasPrefix(text, "#") {
			continue
		}
		if indentation := line[:len(line)-len(text)]; indentation != "" {
			for i := range lines {
				lines[i] = strings.TrimPrefix(lines[i], indentation)
			}
		}
		break
	}
	return lines
}

var (
	magicLine  = pattern.New(`^%([A-Za-z_][A-Za-z0-9_.]*)[ \t]*(.*)$`)
	cellMagic  = pattern.New(`^%%([A-Za-z_!][A-Za-z0-9_.]*)[ \t]*(.*)$`)
	assignment = pattern.New(`^([A-Za-z_][A-Za-z0-9_., \[\]]*=[ \t]*)([!%].*)$`)
	question   = pattern.New(`^(%{0,2}[A-Za-z_][A-Za-z0-9_.]*)(\?\??)[ \t]*$`)
	asked      = pattern.New(`^(\?\??)[ \t]*(%{0,2}[A-Za-z_][A-Za-z0-9_.]*)[ \t]*$`)
)

func translateCellMagic(lines []string) (string, bool) {
	for i, line := range lines {
		if strings.TrimSpace(line) == "" {
			continue
		}
		m := cellMagic.FindStringSubmatch(strings.TrimRight(line, " \t\r"))
		if m == nil || question.MatchString(line) {
			return "", false
		}
		text := strings.Join(lines[i+1:], "\n")
		call := strings.Repeat("\n", i) + callOf("run_cell_magic", m[1], m[2], text)
		return call + strings.Repeat("\n", len(lines)-1-i), true
	}
	return "", false
}

// isCommand reports whether line is one whose end can be continued by a backslash as a shell's can.
func isCommand(line string) bool {
	text := strings.TrimLeft(line, " \t")
	return strings.HasPrefix(text, "!") || strings.HasPrefix(text, "%") || assignment.MatchString(text)
}

// translateLine translates the first line of a statement.
func translateLine(line string) (string, bool) {
	text := strings.TrimLeft(line, " \t")
	indentation := line[:len(line)-len(text)]
	text = strings.TrimRight(text, " \t\r")
	if m := question.FindStringSubmatch(text); m != nil {
		return indentation + callOf("run_line_magic", helpOf(m[2]), m[1]), true
	}
	if m := asked.FindStringSubmatch(text); m != nil {
		return indentation + callOf("run_line_magic", helpOf(m[1]), m[2]), true
	}
	target := ""
	if m := assignment.FindStringSubmatch(text); m != nil {
		target, text = m[1], m[2]
	}
	m := magicLine.FindStringSubmatch(text)
	switch {
	case m != nil:
		return indentation + target + callOf("run_line_magic", m[1], m[2]), true
	case strings.HasPrefix(text, "!!"):
		return indentation + target + callOf("getoutput", text[2:]), true
	case strings.HasPrefix(text, "!") && target != "":
		return indentation + target + callOf("getoutput", text[1:]), true
	case strings.HasPrefix(text, "!"):
		return indentation + callOf("system", text[1:]), true
	}
	return "", false
}

func helpOf(marks string) string {
	if marks == "??" {
		return "pinfo2"
	}
	return "pinfo"
}

// callOf returns the call of a method with strings as arguments, in one line.
func callOf(method string, args ...string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = "'" + escapes.Replace(a) + "'"
	}
	return "get_ipython()." + method + "(" + strings.Join(quoted, ", ") + ")"
}

var escapes = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`, "\f", `\f`)

// A scanner knows whether a line of Python begins inside of a statement. Of what is not Python it may
// believe anything: such a cell does not run.
type scanner struct {
	depth     int    // of brackets
	quotes    string // that end the string which goes on
	continued bool   // the line before ended in a backslash
}

func (s *scanner) isInside() bool { return s.depth > 0 || s.quotes != "" || s.continued }

func (s *scanner) readLine(line string) {
	line = strings.TrimSuffix(line, "\r")
	s.continued = false
	for at := 0; at < len(line); at++ {
		c := line[at]
		switch {
		case c == '\\' && at == len(line)-1:
			s.continued = true
		case c == '\\':
			at++
		case s.quotes != "":
			if strings.HasPrefix(line[at:], s.quotes) {
				at += len(s.quotes) - 1
				s.quotes = ""
			}
		case c == '#':
			return
		case c == '"' || c == '\'':
			s.quotes = line[at : at+1]
			if triple := strings.Repeat(s.quotes, 3); strings.HasPrefix(line[at:], triple) {
				s.quotes = triple
				at += 2
			}
		case strings.IndexByte("([{", c) >= 0:
			s.depth++
		case strings.IndexByte(")]}", c) >= 0:
			s.depth = max(0, s.depth-1)
		}
	}
	if len(s.quotes) == 1 && !s.continued { // a string that was not ended
		s.quotes = ""
	}
}
