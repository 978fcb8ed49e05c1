// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// argsOf returns the words that word becomes: several when it holds braces.
func (w *walker) argsOf(word *syntax.Word, s scope) []arg {
	span := w.span(word, s)
	if args, ok := w.knownArgs(word, span); ok {
		return args
	}
	if w.posix || !hasBrace(word) {
		value, split := w.known.literal(word, readWord)
		return []arg{{Word: value, split: split, src: word, span: span}}
	}
	var out []arg
	expanded := w.braces(word)
	for _, one := range expanded {
		value, split := w.known.literal(one, readWord)
		if value == (proposal.Word{Static: true}) && !hasQuotes(one) {
			continue // bash drops empty words that no quotes hold
		}
		out = append(out, arg{Word: value, split: split, src: word, span: span})
	}
	if expanded == nil {
		value, _ := w.known.literal(&syntax.Word{Parts: beforeBrace(word)}, readWord)
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

// beforeBrace is the part of word before its first brace.
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

// braces expands word's braces; nil when there are too many or the form is not
// one that every reader agrees on.
func (w *walker) braces(word *syntax.Word) []*syntax.Word {
	cloned := &syntax.Word{Parts: append([]syntax.WordPart{}, word.Parts...)}
	if !syntax.SplitBraces(cloned) {
		return []*syntax.Word{word}
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
