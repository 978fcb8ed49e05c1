// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// An arg is one word of a command. Split means that an unquoted expansion may make
// it several words, or none.
type arg struct {
	proposal.Word
	split bool
	src   *syntax.Word // nil for words that a wrapper adds
	span  proposal.Span

	compound bool // NAME=(…) in a declaration, which the parser has read
	assigned bool // NAME=value in a declaration, whose value is already recorded

	head, tail string // of that value, as in a Word
}

// A reading is what bash does to a word in addition to removing its quotes.
type reading int

const (
	readWord   reading = iota // tildes, globs and splitting
	readAssign                // tildes only: assignment values and here-strings
	readQuoted                // neither of these: here-document bodies
)

// A quoteRemover collects the longest literal prefix of a word.
type quoteRemover struct {
	text   strings.Builder
	how    reading
	static bool
	glob   bool
	split  bool
	known  knownVariables
}

// literalWord removes word's quotes as bash does, without knowing any variable.
func literalWord(word *syntax.Word, how reading) (proposal.Word, bool) {
	return knownVariables(nil).expandLiteral(word, how)
}

// expandLiteral removes word's quotes and replaces the variables in k, as bash does.
func (k knownVariables) expandLiteral(word *syntax.Word, how reading) (proposal.Word, bool) {
	if word == nil {
		return proposal.Word{Static: true}, false
	}
	if len(word.Parts) == 1 { // fast path for the common word
		if lit, ok := word.Parts[0].(*syntax.Lit); ok && isPlainText(lit.Value) {
			return proposal.Word{Value: lit.Value, Static: true}, false
		}
	}
	q := quoteRemover{how: how, static: true, known: k}
	for i, part := range word.Parts {
		q.addPart(part, i == 0)
	}
	out := proposal.Word{Value: q.text.String(), Static: q.static, Glob: q.glob, Split: q.split}
	out.Star = q.glob && len(word.Parts) == 1 && strings.Trim(word.Lit(), "*?") == ""
	if !q.static && !q.glob && out.Value == "" {
		out.Head, out.Tail = headOf(word)
	}
	if !q.static && !q.glob && !q.split {
		out.Variables = strings.Join(quotedVariables(word), " ")
	}
	return out, q.split
}

// quotedVariables returns the variables that word expands, plainly and in double quotes; nil if it has anything else
// that is not literal.
func quotedVariables(word *syntax.Word) (names []string) {
	for _, part := range word.Parts {
		switch part := part.(type) {
		case *syntax.Lit, *syntax.SglQuoted:
		case *syntax.DblQuoted:
			for _, part := range part.Parts {
				variable, expands := part.(*syntax.ParamExp)
				if _, literal := part.(*syntax.Lit); literal {
					continue
				}
				if !expands || variable.Param == nil || !isPlainParam(variable) ||
					!syntax.ValidName(variable.Param.Value) {
					return nil
				}
				names = append(names, variable.Param.Value)
			}
		default:
			return nil
		}
	}
	return names
}

func isPlainText(text string) bool {
	return text == "[" || !strings.ContainsAny(text, "\\*?[~{")
}

// endPrefix ends the literal prefix.
func (q *quoteRemover) endPrefix() { q.static = false }

func (q *quoteRemover) addText(text string) {
	if q.static {
		q.text.WriteString(text)
	}
}

func (q *quoteRemover) addPart(part syntax.WordPart, first bool) {
	switch part := part.(type) {
	case *syntax.Lit:
		q.addUnquoted(part.Value, first)
	case *syntax.SglQuoted:
		if !part.Dollar {
			q.addText(part.Value)
			return
		}
		text, ok := ansiQuoted(part.Value)
		q.addText(text)
		if !ok {
			q.endPrefix()
		}
	case *syntax.DblQuoted:
		if part.Dollar { // translated by the locale
			q.endPrefix()
		}
		q.doubleQuoted(part.Parts)
	case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ArithmExp:
		if value, ok := q.known.valueOf(part); ok && (q.how != readWord || oneField(value)) {
			q.addText(value)
			return
		}
		q.split = q.split || q.how == readWord
		q.endPrefix()
	default: // process substitutions, extended globs, braces that were not expanded
		if _, ok := part.(*syntax.ExtGlob); ok {
			q.glob = true
		}
		q.split = true
		q.endPrefix()
	}
}

// addUnquoted adds text outside quotes: a backslash keeps the next character.
func (q *quoteRemover) addUnquoted(text string, first bool) {
	if q.how == readQuoted {
		q.addEscaped(text, "$`\\")
		return
	}
	tilde := first
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\':
			i++
			if i < len(text) && text[i] != '\n' {
				q.addText(text[i : i+1])
			}
		case c == '~' && tilde:
			q.endPrefix()
		case q.how == readWord && (c == '*' || c == '?' || c == '['):
			q.glob = true
			q.endPrefix()
		default:
			q.addText(text[i : i+1])
		}
		tilde = c == '=' || c == ':'
	}
}

func (q *quoteRemover) doubleQuoted(parts []syntax.WordPart) {
	for _, part := range parts {
		if lit, ok := part.(*syntax.Lit); ok {
			q.addEscaped(lit.Value, "$`\"\\")
		} else if value, ok := q.known.valueOf(part); ok {
			q.addText(value)
		} else {
			q.endPrefix()
			q.split = q.split || severalWords(part)
		}
	}
}

// severalWords reports whether part may expand to several words even in double
// quotes: "$@" and "${a[@]}".
func severalWords(part syntax.WordPart) bool {
	exp, ok := part.(*syntax.ParamExp)
	if !ok || exp.Length {
		return false
	}
	if exp.Param != nil && exp.Param.Value == "@" || exp.Names == syntax.NamesPrefixWords {
		return true
	}
	index, ok := exp.Index.(*syntax.Word)
	return ok && index.Lit() == "@"
}

// addEscaped adds text in which a backslash only escapes the bytes of special.
func (q *quoteRemover) addEscaped(text, special string) {
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			switch next := text[i+1]; {
			case next == '\n':
				i++
				continue
			case strings.IndexByte(special, next) >= 0:
				i++
			}
		}
		q.addText(text[i : i+1])
	}
}
