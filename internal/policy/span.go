// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"

	"github.com/fumehood/fumehood/internal/policy/facts"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// spanOf is the part of the text that r is about: the word of the command that its message
// names, the command, or the text that could not be known.
func spanOf(a proposal.Analysis, r proposal.Reason) (proposal.Span, bool) {
	for _, u := range a.Unknowns {
		if u.Code == r.Rule {
			return u.Span, u.Span.End > u.Span.Start
		}
	}
	if r.Command < 0 || r.Command >= len(a.Commands) {
		return proposal.Span{}, false
	}
	c := a.Commands[r.Command]
	if c.Span.Start < 0 || c.Span.End > len(a.Canonical) || c.Span.Start >= c.Span.End {
		return proposal.Span{}, false
	}
	return wordSpan(a.Canonical, c, r.Message), true
}

// wordSpan narrows c's span to the longest of its words, except for the program, that
// message names and that appears in it once.
func wordSpan(text string, c proposal.Command, message string) proposal.Span {
	within, named, found := text[c.Span.Start:c.Span.End], "", ""
	for _, value := range wordsOf(c) {
		for _, word := range optionSpellings(value) {
			if len(word) <= max(1, len(named)) || !facts.HoldsWord(message, word) {
				continue
			}
			for _, place := range []string{value, word} { // the whole word, if it is written as it is read
				if facts.CountWord(within, place) == 1 {
					named, found = word, place
					break
				}
			}
		}
	}
	if found == "" {
		return c.Span
	}
	start := c.Span.Start + facts.IndexWord(within, found)
	return spanIn(text, start, start+len(found))
}

// wordsOf are the words of c that a message may be about.
func wordsOf(c proposal.Command) []string {
	var all []string
	for i, w := range c.Args {
		if i > 0 {
			all = append(all, w.Value)
		}
	}
	for _, r := range c.Redirects {
		all = append(all, r.Target.Value)
	}
	for _, as := range c.Assigns {
		all = append(all, as.Name)
	}
	return all
}

// optionSpellings are value, and the option whose value it is.
func optionSpellings(value string) []string {
	if name, _, cut := strings.Cut(value, "="); cut && strings.HasPrefix(name, "-") {
		return []string{value, name}
	}
	return []string{value}
}

// ownSpan is the place in the proposal's own text of the part at s of the text that was
// read, or nil: printing may have changed that part.
func ownSpan(p proposal.Proposal, a proposal.Analysis, s proposal.Span) *proposal.Span {
	own, read := facts.OwnText(p, a), a.Canonical
	if read == "" || own == read {
		if s.Start < 0 || s.Start > s.End || s.End > len(own) {
			return nil
		}
		return &s
	}
	if s.Start < 0 || s.Start >= s.End || s.End > len(read) {
		return nil
	}
	piece := read[s.Start:s.End]
	if strings.Count(own, piece) != strings.Count(read, piece) {
		piece, _, _ = strings.Cut(piece, " ") // if blanks were printed differently, its first word
		if strings.Count(own, piece) != strings.Count(read, piece) {
			return nil
		}
	}
	before := strings.Count(read[:s.Start], piece)
	at := 0
	for range before {
		at += strings.Index(own[at:], piece) + len(piece)
	}
	i := strings.Index(own[at:], piece)
	if i < 0 { // occurrences that overlap
		return nil
	}
	found := spanIn(own, at+i, at+i+len(piece))
	return &found
}

// placeInCell makes the place of r one of the new cell's code, or says that it is none.
func placeInCell(p proposal.Proposal, r *proposal.Reason) {
	begins := len(p.Earlier.Text)
	if r.Span.Start < begins {
		r.Span, r.Message = nil, "in an earlier cell of the context: "+r.Message
		return
	}
	own := spanIn(p.Code, r.Span.Start-begins, r.Span.End-begins)
	r.Span = &own
}

// spanIn is the Span of text[start:end].
func spanIn(text string, start, end int) proposal.Span {
	line := strings.Count(text[:start], "\n") + 1
	return proposal.Span{Start: start, End: end, Line: line, Col: start - strings.LastIndexByte(text[:start], '\n')}
}
