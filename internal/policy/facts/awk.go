// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// awkProblem accepts awk programs that compute and print. Otherwise it names the first
// thing that runs a program, reads or writes another file, or loads code. It splits the
// text into tokens as awk does. If awks read a slash or a bracket differently, it refuses. A backslash at the
// end of a line continues it between two tokens, and in a comment means nothing: the program must be plain
// as it is, and if it joins the lines.
func awkProblem(script string) string {
	for _, text := range []string{script, strings.ReplaceAll(script, "\\\n", "")} {
		s := awkScanner{text: text, operand: true}
		for s.at < len(s.text) {
			if why := s.scanToken(); why != "" {
				return why
			}
		}
	}
	return ""
}

type awkScanner struct {
	text     string
	at       int
	operand  bool   // an operand is expected: a slash starts a regular expression
	word     string // the last name, until another token follows
	parens   []bool // for each open parenthesis: it belongs to if, while or for
	printing int    // depth at which a print statement began, plus one
	last     byte   // that of the last token, until a statement ends
}

func (s *awkScanner) scanToken() string {
	c := s.text[s.at]
	word := s.word
	s.word = ""
	if strings.IndexByte(" \t\r\n\\#", c) < 0 {
		s.last = c
	}
	switch {
	case c == ' ' || c == '\t' || c == '\r':
		s.at++
		s.word = word
	case c == '\\' && strings.HasPrefix(strings.TrimPrefix(s.text[s.at+1:], "\r"), "\n"):
		s.at = strings.IndexByte(s.text[s.at:], '\n') + s.at + 1
		s.word = word
	case c == '#':
		for s.at < len(s.text) && s.text[s.at] != '\n' {
			s.at++
		}
	case c == '"':
		return s.scanString()
	case c == '/' && s.operand:
		return s.scanRegex()
	case nameByte(c):
		return s.scanName()
	case c == '@':
		return "awk's @ loads code or calls by name"
	default:
		return s.scanPunctuation(c, word)
	}
	return ""
}

func nameByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}

func (s *awkScanner) scanString() string {
	for s.at++; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\\':
			s.at++
		case '\n':
			return "an awk string does not end on its line"
		case '"':
			s.at++
			s.operand = false
			return ""
		}
	}
	return "an awk string does not end"
}

var awkClass = pattern.New(`^\[:[a-z]+:\]`)

func (s *awkScanner) scanRegex() string {
	bracket := false
	for s.at++; s.at < len(s.text); s.at++ {
		rest := s.text[s.at:]
		switch c := s.text[s.at]; {
		case c == '\\':
			s.at++
		case c == '\n':
			return "an awk regular expression does not end on its line"
		case c == '[' && !bracket:
			bracket = true
			if after := strings.TrimPrefix(rest[1:], "^"); strings.HasPrefix(after, "]") {
				return "a bracket after [ is read differently by different awks: write [\\]]"
			}
		case c == '[' && awkClass.MatchString(rest):
			s.at += len(awkClass.FindString(rest)) - 1
		case c == '[' && len(rest) > 1 && strings.IndexByte(":.=", rest[1]) >= 0:
			return "a bracket in brackets is read differently by different awks: write [\\[]"
		case c == ']':
			bracket = false
		case c == '/' && bracket:
			return "a slash inside brackets is read differently by different awks: write [\\/]"
		case c == '/':
			s.at++
			s.operand = false
			return ""
		}
	}
	return "an awk regular expression does not end"
}

// awkNumber matches a number, up to the sign of its exponent.
var awkNumber = pattern.New(`^([0-9.]+([eE][0-9]*)?|0[xX][0-9A-Fa-f]+)$`)

func (s *awkScanner) scanName() string {
	start := s.at
	for s.at < len(s.text) && (nameByte(s.text[s.at]) || s.text[s.at] == '.') {
		s.at++
	}
	s.word = s.text[start:s.at]
	s.operand = false
	if c := s.word[0]; c >= '0' && c <= '9' && !awkNumber.MatchString(s.word) {
		return "a number and a name are not separated: write a blank between them"
	}
	switch s.word {
	case "system":
		return "awk's system() runs a program"
	case "getline":
		return "awk's getline reads another file or a program's output"
	case "print", "printf":
		s.printing = len(s.parens) + 1
		s.operand = true
	case "return", "in", "else", "do", "case", "if", "while", "for", "delete", "exit":
		s.operand = true
	}
	return ""
}

func (s *awkScanner) scanPunctuation(c byte, word string) string {
	rest := s.text[s.at:]
	s.at++
	s.operand = true
	switch c {
	case '(':
		s.parens = append(s.parens, word == "if" || word == "while" || word == "for")
	case ')':
		s.operand = false
		if n := len(s.parens); n > 0 {
			s.operand = s.parens[n-1]
			s.parens = s.parens[:n-1]
		}
	case ']', '$':
		s.operand = c == '$'
	case '\n': // after some tokens a statement goes on
		if len(s.parens) == 0 && strings.IndexByte(",&|?:", s.last) < 0 {
			s.printing, s.last = 0, 0
		}
	case ';', '}', '{':
		if len(s.parens) == 0 || c != ';' {
			s.printing = 0
		}
	case '|':
		if !strings.HasPrefix(rest, "||") {
			return "a pipe in awk runs a program"
		}
		s.at++
	case '>':
		return s.scanGreaterThan(rest)
	case '+', '-':
		if len(rest) > 1 && rest[1] == c {
			s.at++
			s.operand = false
		}
	}
	return ""
}

// scanGreaterThan distinguishes a comparison from the redirection of a print.
func (s *awkScanner) scanGreaterThan(rest string) string {
	if s.printing == 0 || len(s.parens)+1 != s.printing {
		return ""
	}
	target := strings.TrimLeft(strings.TrimLeft(rest, ">"), " \t")
	for _, ok := range []string{`"/dev/stderr"`, `"/dev/stdout"`} {
		after, found := strings.CutPrefix(target, ok)
		if after = strings.TrimLeft(after, " \t"); found && (after == "" || strings.IndexByte(";}\n#", after[0]) >= 0) {
			return "" // not "/dev/stderr" "/a", which is a file if 2 is a directory
		}
	}
	return "awk's print > writes a file"
}
