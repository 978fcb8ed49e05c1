// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Script reports whether a sed or awk script only edits text, and if not why. A script
// that is known only at run time is not plain, and has no why.
type Script struct {
	Plain bool   `json:"plain"` // it only edits text
	Why   string `json:"why"`   // what else it does; "" if it is known only at run time
}

// ScriptOf reads the script of a sed or awk command. A script that is not completely known
// or not completely understood is not plain. A script that is known only at run time is
// read when the program starts; added means that words are added by then.
func ScriptOf(tool string, r reading, added bool) Script {
	var check func(string) string
	switch tool {
	case "sed", "gsed":
		check = sedProblem
	case "awk", "gawk", "mawk", "nawk", "original-awk":
		check = awkProblem
	default:
		return Script{Plain: true}
	}
	scripts, file := scriptWords(r)
	if len(scripts) == 0 && !file && !added {
		return Script{Why: "it has no script to run"}
	}
	known, all := len(scripts) > 0 || file, ""
	for _, w := range scripts {
		if !w.Static {
			known = false
		} else if why := check(w.Value); why != "" {
			return Script{Why: why}
		}
		all += w.Value + "\n"
	}
	if why := check(all); known && len(scripts) > 1 && why != "" { // a part may begin in the text of the one before it
		return Script{Why: why}
	}
	return Script{Plain: known}
}

func scriptWords(r reading) (scripts []proposal.Word, file bool) {
	for _, o := range r.Options {
		switch o.Name {
		case "--expression", "--source":
			scripts = append(scripts, o.Value)
		case "--file":
			file = true
		}
	}
	if len(scripts) == 0 && !file && len(r.Operands) > 0 {
		scripts = r.Operands[:1]
	}
	return scripts, file
}

// sedProblem accepts sed commands that only edit text. Otherwise it names the first that
// does more, or that it does not understand.
func sedProblem(script string) string {
	s := sedScanner{text: script}
	for s.skipAny(" \t\n;{}"); s.at < len(s.text); s.skipAny(" \t\n;{}") {
		if !s.skipAddresses() {
			return "unsupported sed address"
		}
		if why := s.checkCommand(); why != "" {
			return why
		}
	}
	return ""
}

type sedScanner struct {
	text string
	at   int
}

func (s *sedScanner) skipAny(set string) {
	for s.at < len(s.text) && strings.IndexByte(set, s.text[s.at]) >= 0 {
		s.at++
	}
}

func (s *sedScanner) nextByte() byte {
	if s.at >= len(s.text) {
		return 0
	}
	s.at++
	return s.text[s.at-1]
}

func (s *sedScanner) peekByte() byte {
	if s.at >= len(s.text) {
		return 0
	}
	return s.text[s.at]
}

func (s *sedScanner) skipAddresses() bool {
	for {
		switch c := s.peekByte(); {
		case c == '/':
			s.at++
			if !s.skipUntil('/') {
				return false
			}
			s.skipAny("IM")
		case c == '\\':
			s.at++
			if !s.skipUntil(s.nextByte()) {
				return false
			}
			s.skipAny("IM")
		case c >= '0' && c <= '9', c == '$', c == '+', c == '~':
			s.at++
			s.skipAny("0123456789~")
		case c == ',' || c == '!' || c == ' ' || c == '\t':
			s.at++
		default:
			return true
		}
	}
}

// skipBothParts skips the two parts of an s or y command.
func (s *sedScanner) skipBothParts(delim byte) bool {
	for range 2 {
		if !s.skipUntil(delim) {
			return false
		}
	}
	return true
}

// skipUntil skips past the next delim that no backslash precedes, as GNU sed does: a
// bracket does not hide a delimiter.
func (s *sedScanner) skipUntil(delim byte) bool {
	if delim == 0 || delim == '\n' || delim == '\\' {
		return false
	}
	for s.at < len(s.text) {
		switch c := s.nextByte(); c {
		case '\\':
			s.at++
		case delim:
			return true
		case '\n': // which ends the script's line before the delimiter
			return false
		}
	}
	return false
}

func (s *sedScanner) checkCommand() string {
	switch c := s.nextByte(); c {
	case 0:
		return "a sed address has no command"
	case '{', '}', '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'F', 'z', '#', ':', 'b', 't', 'T', 'a',
		'i', 'c', 'l', 'q', 'Q':
		return s.checkPlainCommand(c)
	case 's':
		return s.checkSubstitution()
	case 'y':
		delim := s.nextByte()
		if !s.skipBothParts(delim) {
			return "unsupported sed y command"
		}
		return ""
	case 'e':
		return "sed's e command runs a program"
	case 'w', 'W':
		return "sed's w command writes a file"
	case 'r', 'R':
		return "sed's r command reads another file"
	default:
		return "unsupported sed command"
	}
}

func (s *sedScanner) checkPlainCommand(c byte) string {
	switch c {
	case '#':
		for s.at < len(s.text) && s.text[s.at] != '\n' {
			s.at++
		}
		return ""
	case ':', 'b', 't', 'T': // a blank ends the label: another command may follow
		s.skipAny(" \t")
		for s.at < len(s.text) && strings.IndexByte(" \t\n;}", s.text[s.at]) < 0 {
			s.at++
		}
	case 'a', 'i', 'c':
		for s.at < len(s.text) {
			switch s.nextByte() {
			case '\\':
				s.at++
			case '\n':
				return ""
			}
		}
		return ""
	case 'l', 'q', 'Q':
		s.skipAny(" 0123456789")
	}
	return s.checkCommandEnd()
}

// checkCommandEnd checks that a command ends where the next one begins.
func (s *sedScanner) checkCommandEnd() string {
	s.skipAny(" \t")
	if c := s.peekByte(); c == 0 || strings.IndexByte("\n;}#", c) >= 0 || s.at > 0 && s.text[s.at-1] == '{' {
		return ""
	}
	return "unsupported sed command"
}

func (s *sedScanner) checkSubstitution() string {
	delim := s.nextByte()
	if !s.skipBothParts(delim) {
		return "unsupported sed s command"
	}
	for {
		switch c := s.peekByte(); {
		case c == 'e':
			return "the e flag of sed's s command runs a program"
		case c == 'w':
			return "the w flag of sed's s command writes a file"
		case strings.IndexByte("gpiImM0123456789", c) >= 0 && c != 0:
			s.at++
		default:
			return s.checkCommandEnd()
		}
	}
}
