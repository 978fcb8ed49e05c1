// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Most rules match a keyword with a value beside it. Their patterns are compared only with what is around keywords that
// a value may follow: a pattern with counted repetitions takes a microsecond for each byte of a text.

// A vicinity says where around keywords a rule can match. It is made from the rule's pattern, of which one part, the
// word, always has a keyword.
type vicinity struct {
	before  int            // most bytes of a match before the word
	after   []stretch      // the parts from the word on
	offsets []int          // of keywords in the word
	begins  *regexp.Regexp // matches at the word of every match, and at few others
	begun   int            // most bytes that begins looks at
}

// A stretch is a part of a pattern: at most most bytes or, if more is not nil, any number of bytes that more has.
type stretch struct {
	most int
	more *[256]bool
}

const (
	minRow   = 8  // repetitions that make a value
	maxWords = 64 // different texts of a word
	edge     = 4  // bytes around a match that a pattern may look at
)

// vicinityOf returns the vicinity of a rule, or nil if its pattern has another form.
func vicinityOf(r *rule) *vicinity {
	pattern, err := syntax.Parse(r.Regex, syntax.Perl)
	if err != nil || strings.Contains(r.Regex, `\B`) { // which would look at what is cut off
		return nil
	}
	parts := flattenParts(nil, pattern)
	at := slices.IndexFunc(parts, func(p *syntax.Regexp) bool { return hasKeyword(p, r.Keywords) })
	if at < 0 {
		return nil
	}
	v := &vicinity{}
	for _, p := range parts[:at] {
		most, ok := longestMatch(p)
		if !ok {
			return nil
		}
		v.before += most
	}
	beginning := []*syntax.Regexp{{Op: syntax.OpBeginText}}
	whole, begun := 0, 0 // parts of beginning from the word on, and their most bytes
	for i, p := range parts[at:] {
		most, ok := longestMatch(p)
		s := stretch{most: most}
		if !ok {
			s = stretch{more: bytesOf(p)}
		}
		v.after = append(v.after, s)
		switch {
		case whole < i || v.begun > 0: // the beginning has ended
		case i > 0 && shortestMatch(p) >= minRow:
			row := beginningOf(p)
			most, _ = longestMatch(row)
			beginning, v.begun = append(beginning, row), begun+most
		case ok:
			beginning, whole, begun = append(beginning, p), i+1, begun+most
		}
	}
	if v.begun == 0 { // no value: the word alone
		v.begun = v.after[0].most
		beginning = beginning[:2]
	}
	for _, word := range wordsOf(parts[at]) {
		for _, k := range r.Keywords {
			if o := strings.Index(word, k); o >= 0 && !slices.Contains(v.offsets, o) {
				v.offsets = append(v.offsets, o)
			}
		}
	}
	v.begins, err = regexp.Compile((&syntax.Regexp{Op: syntax.OpConcat, Sub: beginning}).String())
	if err != nil {
		return nil
	}
	return v
}

// flattenParts appends the parts of a concatenation. A group is its parts.
func flattenParts(list []*syntax.Regexp, p *syntax.Regexp) []*syntax.Regexp {
	if p.Op == syntax.OpConcat || p.Op == syntax.OpCapture {
		for _, sub := range p.Sub {
			list = flattenParts(list, sub)
		}
		return list
	}
	return append(list, p)
}

// hasKeyword reports whether all that p matches has one of the keywords.
func hasKeyword(p *syntax.Regexp, keywords []string) bool {
	words := wordsOf(p)
	return len(words) > 0 && !slices.ContainsFunc(words, func(word string) bool {
		return !slices.ContainsFunc(keywords, func(k string) bool { return strings.Contains(word, k) })
	})
}

// wordsOf returns all that p matches, in lower case and without kelvin and longS, or nil if that is too much, or not
// ASCII.
func wordsOf(p *syntax.Regexp) []string {
	var list []string
	switch p.Op {
	case syntax.OpEmptyMatch:
		list = []string{""}
	case syntax.OpLiteral:
		word := strings.ToLower(string(p.Rune))
		if strings.ContainsFunc(word, func(c rune) bool { return c > unicode.MaxASCII }) {
			return nil
		}
		list = []string{word}
	case syntax.OpCharClass:
		for i := 0; i < len(p.Rune); i += 2 {
			for c := p.Rune[i]; c <= p.Rune[i+1]; c++ {
				if word := strings.ToLower(string(c)); c <= unicode.MaxASCII && !slices.Contains(list, word) {
					list = append(list, word)
				}
				if len(list) > 4 || c > unicode.MaxASCII && !hasFolded(string(c)) {
					return nil
				}
			}
		}
	case syntax.OpCapture:
		return wordsOf(p.Sub[0])
	case syntax.OpAlternate:
		for _, sub := range p.Sub {
			words := wordsOf(sub)
			if words == nil || len(list)+len(words) > maxWords {
				return nil
			}
			list = append(list, words...)
		}
	case syntax.OpConcat:
		list = []string{""}
		for _, sub := range p.Sub {
			var longer []string
			for _, end := range wordsOf(sub) {
				for _, word := range list {
					longer = append(longer, word+end)
				}
			}
			if list = longer; len(list) == 0 || len(list) > maxWords {
				return nil
			}
		}
	case syntax.OpQuest:
		if words := wordsOf(p.Sub[0]); words != nil {
			list = append(words, "")
		}
	}
	return list
}

// The characters that a pattern may take for k and s. A text with one of them is searched whole.
const kelvin, longS = "\u212a", "\u017f"

func hasFolded(text string) bool {
	return strings.Contains(text, kelvin) || strings.Contains(text, longS)
}

// longestMatch returns the most bytes that p matches; ok is false if there is no limit.
func longestMatch(p *syntax.Regexp) (most int, ok bool) {
	switch p.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary:
		return 0, true
	case syntax.OpLiteral:
		for _, c := range p.Rune {
			one := utf8.RuneLen(c)
			for other := unicode.SimpleFold(c); other != c; other = unicode.SimpleFold(other) { // if p ignores case
				one = max(one, utf8.RuneLen(other))
			}
			most += one
		}
		return most, true
	case syntax.OpCharClass:
		return utf8.RuneLen(p.Rune[len(p.Rune)-1]), true
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return utf8.UTFMax, true
	case syntax.OpCapture, syntax.OpQuest:
		return longestMatch(p.Sub[0])
	case syntax.OpRepeat:
		most, ok = longestMatch(p.Sub[0])
		return most * p.Max, ok && p.Max >= 0
	case syntax.OpConcat, syntax.OpAlternate:
		for _, sub := range p.Sub {
			one, ok := longestMatch(sub)
			if !ok {
				return 0, false
			}
			if p.Op == syntax.OpConcat {
				most += one
			} else {
				most = max(most, one)
			}
		}
		return most, true
	}
	return 0, false
}

// shortestMatch returns the fewest characters that p matches.
func shortestMatch(p *syntax.Regexp) (fewest int) {
	switch p.Op {
	case syntax.OpLiteral:
		return len(p.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpCapture, syntax.OpPlus:
		return shortestMatch(p.Sub[0])
	case syntax.OpRepeat:
		return p.Min * shortestMatch(p.Sub[0])
	case syntax.OpConcat:
		for _, sub := range p.Sub {
			fewest += shortestMatch(sub)
		}
	case syntax.OpAlternate:
		fewest = shortestMatch(p.Sub[0])
		for _, sub := range p.Sub[1:] {
			fewest = min(fewest, shortestMatch(sub))
		}
	}
	return fewest
}

// beginningOf returns a pattern without open repetitions that matches where p does.
func beginningOf(p *syntax.Regexp) *syntax.Regexp {
	begin := *p
	switch p.Op {
	case syntax.OpStar, syntax.OpQuest:
		return &syntax.Regexp{Op: syntax.OpEmptyMatch}
	case syntax.OpPlus, syntax.OpCapture:
		return beginningOf(p.Sub[0])
	case syntax.OpRepeat:
		if begin.Max = p.Min; p.Min == 0 {
			return &syntax.Regexp{Op: syntax.OpEmptyMatch}
		}
		if sub := beginningOf(p.Sub[0]); !sub.Equal(p.Sub[0]) {
			return sub
		}
	case syntax.OpAlternate:
		begin.Sub = nil
		for _, sub := range p.Sub {
			begin.Sub = append(begin.Sub, beginningOf(sub))
		}
	case syntax.OpConcat:
		begin.Sub = nil
		for _, sub := range p.Sub {
			part := beginningOf(sub)
			begin.Sub = append(begin.Sub, part)
			if !part.Equal(sub) {
				break // what follows it may begin later
			}
		}
	}
	return &begin
}

// bytesOf returns the bytes of all that p matches.
func bytesOf(p *syntax.Regexp) *[256]bool {
	set := new([256]bool)
	addBytes(set, p)
	return set
}

func addBytes(set *[256]bool, p *syntax.Regexp) {
	ranges := p.Rune
	switch p.Op {
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		ranges = []rune{0, unicode.MaxRune}
	case syntax.OpLiteral:
		ranges = nil
		for _, c := range p.Rune {
			ranges = append(ranges, c, c)
			for other := unicode.SimpleFold(c); other != c; other = unicode.SimpleFold(other) {
				ranges = append(ranges, other, other)
			}
		}
	case syntax.OpCharClass:
	default:
		for _, sub := range p.Sub {
			addBytes(set, sub)
		}
		return
	}
	for i := 0; i < len(ranges); i += 2 {
		for c := ranges[i]; c <= min(ranges[i+1], unicode.MaxASCII); c++ {
			set[c] = true
		}
		for b := utf8.RuneSelf; ranges[i+1] >= utf8.RuneSelf && b < 256; b++ {
			set[b] = true
		}
	}
}

// findReach returns the most at which a match ends whose word begins at start. runs are, for each stretch, the part of
// text at which it was last, so that no part is read twice when start grows.
func (v *vicinity) findReach(text string, start int, runs []textWindow) int {
	for i, s := range v.after {
		if start += s.most; s.more == nil {
			continue
		}
		run := &runs[i]
		if start < run.from || start > run.to {
			*run = textWindow{start, start}
			for run.to < len(text) && s.more[text[run.to]] {
				run.to++
			}
		}
		start = run.to
	}
	return start
}

// A textWindow is a part of a text.
type textWindow struct{ from, to int }

// windowsIn returns the parts of text in which the rule's pattern can match, in order. lower is text in lower case.
func (v *vicinity) windowsIn(text, lower string, keywords []string) (list []textWindow) {
	var starts []int
	for _, k := range keywords {
		for at := 0; ; at++ {
			i := strings.Index(lower[at:], k)
			if i < 0 {
				break
			}
			at += i
			for _, o := range v.offsets {
				if at >= o {
					starts = append(starts, at-o)
				}
			}
		}
	}
	slices.Sort(starts)
	runs := make([]textWindow, len(v.after))
	for _, start := range slices.Compact(starts) {
		if !v.begins.MatchString(text[start:min(len(text), start+v.begun)]) {
			continue
		}
		w := textWindow{max(0, start-v.before-edge), min(len(text), v.findReach(text, start, runs)+edge)}
		if n := len(list); n > 0 && w.from <= list[n-1].to {
			list[n-1].to = max(list[n-1].to, w.to)
			continue
		}
		list = append(list, w)
	}
	return list
}

// findMatches returns the matches of the rule's pattern, as FindAllStringSubmatchIndex does. lower is text in lower
// case, or "" if text has kelvin or longS.
func (r *rule) findMatches(text, lower string) (list [][]int) {
	v := r.vicinity()
	if v == nil || lower == "" {
		return r.pattern().FindAllStringSubmatchIndex(text, -1)
	}
	for _, w := range v.windowsIn(text, lower, r.Keywords) {
		for _, m := range r.pattern().FindAllStringSubmatchIndex(text[w.from:w.to], -1) {
			for i := range m {
				if m[i] >= 0 {
					m[i] += w.from
				}
			}
			list = append(list, m)
		}
	}
	return list
}
