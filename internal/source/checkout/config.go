// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"errors"
	"fmt"
	"strings"
)

// A setting is one line of a git config file. Section and key are in lower case, as
// git compares them; sub is verbatim.
type setting struct{ section, sub, key, value string }

// name returns the setting's name as git config --list writes it.
func (s setting) name() string {
	if s.sub == "" {
		return s.section + "." + s.key
	}
	return s.section + "." + s.sub + "." + s.key
}

// parseConfig reads the syntax that git-config(1) describes under SYNTAX. It returns an
// error for everything that git refuses, and for everything that git may read
// differently: only a file that was read with certainty is known to hold no credential.
func parseConfig(data string) ([]setting, error) {
	if strings.Contains(data, "\x00") {
		return nil, errors.New("invalid git config: it contains a NUL")
	}
	p := configParser{rest: strings.TrimPrefix(data, "\ufeff"), line: 1}
	p.rest = strings.ReplaceAll(p.rest, "\r\n", "\n")
	var settings []setting
	for {
		p.skipBlanks("\n")
		switch c := p.peek(); {
		case c == 0:
			return settings, nil
		case c == '#' || c == ';':
			p.skipComment()
		case c == '[':
			if err := p.readSectionHeader(); err != nil {
				return nil, err
			}
		case isLetter(c) && p.section != "":
			s, err := p.readSetting()
			if err != nil {
				return nil, err
			}
			settings = append(settings, s)
		default:
			return nil, p.syntaxError("character %q", c)
		}
	}
}

type configParser struct {
	rest         string
	line         int
	section, sub string
}

func (p *configParser) syntaxError(format string, a ...any) error {
	return fmt.Errorf("invalid git config, line %d: %s", p.line, fmt.Sprintf(format, a...))
}

func (p *configParser) peek() byte {
	if p.rest == "" {
		return 0
	}
	return p.rest[0]
}

func (p *configParser) next() byte {
	c := p.peek()
	if p.rest != "" {
		p.rest = p.rest[1:]
	}
	if c == '\n' {
		p.line++
	}
	return c
}

func (p *configParser) skipBlanks(also string) {
	for p.rest != "" && strings.ContainsRune(" \t"+also, rune(p.peek())) {
		p.next()
	}
}

func (p *configParser) skipComment() {
	for p.rest != "" && p.peek() != '\n' {
		p.next()
	}
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func (p *configParser) readWord(more string) string {
	n := 0
	for n < len(p.rest) && (isLetter(p.rest[n]) || p.rest[n] >= '0' && p.rest[n] <= '9' ||
		strings.IndexByte(more, p.rest[n]) >= 0) {
		n++
	}
	word := p.rest[:n]
	p.rest = p.rest[n:]
	return word
}

// readSectionHeader reads [section], [section "sub"] or the old [section.sub].
func (p *configParser) readSectionHeader() error {
	p.next()
	section, sub, _ := strings.Cut(strings.ToLower(p.readWord("-.")), ".")
	if section == "" {
		return p.syntaxError("no section name")
	}
	if p.peek() == ' ' || p.peek() == '\t' {
		if sub != "" {
			return p.syntaxError("two subsections")
		}
		p.skipBlanks("")
		var err error
		if sub, err = p.readQuoted(); err != nil {
			return err
		}
		if sub == "" {
			return p.syntaxError("empty subsection")
		}
	}
	if p.next() != ']' {
		return p.syntaxError("section does not end")
	}
	p.section, p.sub = section, sub
	return nil
}

func (p *configParser) readQuoted() (string, error) {
	var b strings.Builder
	if p.next() != '"' {
		return "", p.syntaxError("subsection is not quoted")
	}
	for {
		switch c := p.next(); c {
		case 0, '\n':
			return "", p.syntaxError("subsection does not end")
		case '"':
			return b.String(), nil
		case '\\':
			if c = p.next(); c == 0 || c == '\n' {
				return "", p.syntaxError("subsection does not end")
			}
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
}

func (p *configParser) readSetting() (setting, error) {
	s := setting{section: p.section, sub: p.sub, key: strings.ToLower(p.readWord("-"))}
	p.skipBlanks("")
	switch p.peek() {
	case '=':
		p.next()
		value, err := p.readValue()
		s.value = value
		return s, err
	case '\n', 0:
	default:
		return s, p.syntaxError("character %q after a key", p.peek())
	}
	s.value = "true" // a key without a value
	return s, nil
}

var configEscapes = map[byte]byte{'n': '\n', 't': '\t', 'b': '\b', '"': '"', '\\': '\\'}

func (p *configParser) readValue() (string, error) {
	var b strings.Builder
	quoted, end := false, 0 // blanks after end are dropped
	for {
		switch c := p.next(); {
		case c == '\r':
			return "", p.syntaxError("a carriage return")
		case c == 0 || c == '\n':
			if quoted {
				return "", p.syntaxError("quotes do not end")
			}
			return b.String()[:end], nil
		case !quoted && (c == '#' || c == ';'):
			p.skipComment()
		case !quoted && (c == ' ' || c == '\t'):
			if b.Len() > 0 {
				b.WriteByte(c)
			}
		case c == '"':
			quoted = !quoted
			end = b.Len()
		case c == '\\' && p.peek() == '\n':
			p.next()
		case c == '\\':
			real, known := configEscapes[p.next()]
			if !known {
				return "", p.syntaxError("unknown escape")
			}
			b.WriteByte(real)
			end = b.Len()
		default:
			b.WriteByte(c)
			end = b.Len()
		}
	}
}
