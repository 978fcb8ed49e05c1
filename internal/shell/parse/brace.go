// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// argsOf returns the words that word becomes: several if it contains braces.
func (w *walker) argsOf(word *syntax.Word, s scope) []arg {
	span := w.spanOf(word, s)
	if args, ok := w.knownArgs(word, span); ok {
		return args
	}
	if w.posix || !hasBrace(word) {
		value, split := w.known.expandLiteral(word, readWord)
		return []arg{{Word: value, split: split, src: word, span: span}}
	}
	var out []arg
	expanded := w.expandBraces(word)
	for _, one := range expanded {
		value, split := w.known.expandLiteral(one, readWord)
		if value == (proposal.Word{Static: true}) && !hasQuotes(one) {
			continue // bash drops empty words that are not quoted
		}
		out = append(out, arg{Word: value, split: split, src: word, span: span})
	}
	if expanded == nil {
		value, _ := w.known.expandLiteral(&syntax.Word{Parts: beforeBrace(word)}, readWord)
		value.Static = false
		out = []arg{{Word: value, split: true, src: word, span: span}}
	}
	return out
}

func hasBrace(word *syntax.Word) bool {
	for _, part := range word.Parts {
		if lit, ok := part.(*syntax.Lit); ok && strings.Contains(lit.Value, "{") {
			return true
		}
	}
	return false
}

func hasQuotes(word *syntax.Word) bool {
	for _, part := range word.Parts {
		switch part.(type) {
		case *syntax.SglQuoted, *syntax.DblQuoted:
			return true
		}
	}
	return false
}

// beforeBrace returns the part of word before its first brace.
func beforeBrace(word *syntax.Word) []syntax.WordPart {
	for i, part := range word.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			if cut := strings.IndexByte(lit.Value, '{'); cut >= 0 {
				parts := append([]syntax.WordPart{}, word.Parts[:i]...)
				return append(parts, &syntax.Lit{Value: lit.Value[:cut]})
			}
		}
	}
	return nil
}

// expandBraces expands word's braces. It returns nil if there are too many or if shells
// differ on the form.
func (w *walker) expandBraces(word *syntax.Word) []*syntax.Word {
	text := braceText(word)
	if !bashExpands(text) {
		return []*syntax.Word{word}
	}
	cloned := &syntax.Word{Parts: append([]syntax.WordPart{}, word.Parts...)}
	if !hasRegularBraces(text) || namesMore(word) || !syntax.SplitBraces(cloned) {
		return nil
	}
	var out []*syntax.Word
	for expanded, err := range expand.BracesSeq(nil, cloned) {
		if err != nil || len(out) == maxBraces {
			return nil
		}
		copied := *expanded
		copied.Parts = append([]syntax.WordPart{}, expanded.Parts...)
		out = append(out, &copied)
	}
	return out
}

// namesMore reports whether braces may lengthen the name of a variable: {$a,b}c is $ac
// and bc.
func namesMore(word *syntax.Word) bool {
	return slices.ContainsFunc(word.Parts, func(part syntax.WordPart) bool {
		p, ok := part.(*syntax.ParamExp)
		return ok && p.Short
	})
}

// braceText returns word with a 0 byte for each quoted part or character.
func braceText(word *syntax.Word) string {
	var out strings.Builder
	for _, part := range word.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			out.WriteByte(0)
			continue
		}
		for i := 0; i < len(lit.Value); i++ {
			if lit.Value[i] != '\\' {
				out.WriteByte(lit.Value[i])
				continue
			}
			out.WriteByte(0)
			i++
		}
	}
	return out.String()
}

// bashExpands looks for a brace in text as bash does: a closing brace ends a group
// only after a comma or two dots, so {0},} is 0} and an empty word.
func bashExpands(text string) bool {
	for start, c := range []byte(text) {
		if c != '{' {
			continue
		}
		level, parts := 0, 0
		for i := start + 1; i < len(text); i++ {
			rest := text[i:]
			switch {
			case rest[0] == '}' && level == 0 && parts > 0:
				return true
			case rest[0] == '}' && level > 0:
				level--
			case rest[0] == '{':
				level++
			case level == 0 && (rest[0] == ',' || strings.HasPrefix(rest, "..")):
				parts++
			}
		}
	}
	return false
}

var sequence = pattern.New(`^(-?\d{1,4}\.\.-?\d{1,4}|[a-z]\.\.[a-z]|[A-Z]\.\.[A-Z])(\.\.-?[1-9]\d{0,3})?$`)

// hasRegularBraces reports whether all braces of text are balanced and each contains its own
// comma or a plain sequence. Bash expands braces first, as text, so a literal dollar
// sign may begin an expansion afterwards: {,$}HOME becomes HOME and $HOME.
func hasRegularBraces(text string) bool {
	if strings.Contains(text, "$") {
		return false
	}
	var open, commas []int
	for i, c := range []byte(text) {
		last := len(open) - 1
		switch {
		case c == '{':
			open, commas = append(open, i), append(commas, 0)
		case c == ',' && last >= 0:
			commas[last]++
		case c == '}' && last < 0, c == '}' && commas[last] == 0 && !sequence.MatchString(text[open[last]+1:i]):
			return false
		case c == '}':
			open, commas = open[:last], commas[:last]
		}
	}
	return len(open) == 0
}
