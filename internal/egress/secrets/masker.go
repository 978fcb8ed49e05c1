// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"io"
	"slices"
)

// A masker replaces finds of words in the text written to it. It holds back only text
// that may belong to an incomplete find, which the longest word bounds.
type masker struct {
	to     io.Writer
	lenses []*streamMatcher
	rules  func(*word) (rule, text string) // a find's name in counts, and its replacement
	count  func(rule, form string)
	least  int64 // letters of an incomplete find that need not be held back

	held  []byte // not written yet
	base  int64  // offset of its first byte
	end   int64  // of what was read
	spans []span // finds in held, sorted by their beginning, not overlapping
}

func newMasker(
	to io.Writer, lenses []*streamMatcher, rules func(*word) (string, string), count func(rule, form string),
) *masker {
	return &masker{to: to, lenses: lenses, rules: rules, count: count}
}

// Write searches p and writes the text that is known to be clean.
func (m *masker) Write(p []byte) (int, error) {
	m.held = append(m.held, p...)
	for _, l := range m.lenses {
		l.searchChunk(p, m.end, m.recordFind)
	}
	m.end += int64(len(p))
	safe := m.end
	for _, l := range m.lenses {
		safe = l.pendingOffset(safe, m.least)
	}
	if last := safe - 1 - m.base; last >= 0 && alphabet[m.held[last]] != 0 {
		safe-- // the byte before a find in base64 may hold part of it
	}
	return len(p), m.flushBefore(safe)
}

// Close writes the rest.
func (m *masker) Close() error {
	for _, l := range m.lenses {
		l.endEscape(m.recordFind)
	}
	return m.flushBefore(m.end)
}

// recordFind records a find, merged with those that it overlaps. The longest find's word
// names the result.
func (m *masker) recordFind(s span) {
	if s.word.form == "base64" && s.from > m.base && alphabet[m.held[s.from-1-m.base]] != 0 {
		s.from--
	}
	s.from = max(s.from, m.base)
	i := len(m.spans)
	for i > 0 && m.spans[i-1].from > s.from {
		i--
	}
	m.spans = slices.Insert(m.spans, i, s)
	for i > 0 && m.spans[i-1].to > s.from {
		i--
	}
	for i+1 < len(m.spans) && m.spans[i+1].from < m.spans[i].to {
		a, b := m.spans[i], m.spans[i+1]
		if b.to-b.from > a.to-a.from && b.word.value >= 0 || a.word.value < 0 {
			a.word = b.word
		}
		a.to = max(a.to, b.to)
		m.spans[i] = a
		m.spans = slices.Delete(m.spans, i+1, i+2)
	}
}

// flushBefore writes the text before offset safe, except for finds.
func (m *masker) flushBefore(safe int64) error {
	var out []byte // what was held before the text at offset at, replaced
	at := m.base
	done := 0
	for _, s := range m.spans {
		if s.to > safe {
			safe = min(safe, s.from)
			break
		}
		out = append(out, m.held[at-m.base:s.from-m.base]...)
		rule, text := m.rules(s.word)
		out = append(out, text...)
		m.count(rule, s.word.form)
		at = s.to
		done++
	}
	safe = max(at, safe)
	if len(out) == 0 {
		out = m.held[at-m.base : safe-m.base] // nothing was replaced: no copy
	} else {
		out = append(out, m.held[at-m.base:safe-m.base]...)
	}
	_, err := m.to.Write(out)
	m.spans = slices.Delete(m.spans, 0, done)
	m.held = append(m.held[:0], m.held[safe-m.base:]...)
	m.base = safe
	return err
}
