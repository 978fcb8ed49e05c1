// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bytes"
	"io"
	"slices"
)

// A masker replaces finds of words in what is written to it. It keeps back no more than
// may belong to a find that is not whole yet, which is bounded by the longest word.
type masker struct {
	to     io.Writer
	lenses []*lens
	rules  func(*word) (rule, text string) // what a find is counted by, and what stands for it
	count  func(rule, form string)

	held  []byte // not written yet
	base  int64  // place of its first byte
	end   int64  // of what was read
	spans []span // finds in held, by their beginning, none touching another
}

func newMasker(to io.Writer, lenses []*lens, rules func(*word) (string, string), count func(rule, form string)) *masker {
	return &masker{to: to, lenses: lenses, rules: rules, count: count}
}

// Write looks at p and writes what is known to be clean.
func (m *masker) Write(p []byte) (int, error) {
	m.held = append(m.held, p...)
	for _, l := range m.lenses {
		l.read(p, m.end, m.tell)
	}
	m.end += int64(len(p))
	safe := m.end
	for _, l := range m.lenses {
		safe = l.pending(safe)
	}
	return len(p), m.flush(safe - 1) // the byte before a find in base64 may hold part of it
}

// Close writes the rest.
func (m *masker) Close() error {
	for _, l := range m.lenses {
		l.end(m.tell)
	}
	return m.flush(m.end)
}

// tell enters a find, joined with those that it overlaps. The word of the longest names
// the whole.
func (m *masker) tell(s span) {
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

// flush writes what stands before place safe, and no part of a find.
func (m *masker) flush(safe int64) error {
	var out bytes.Buffer
	at := m.base
	done := 0
	for _, s := range m.spans {
		if s.to > safe {
			safe = min(safe, s.from)
			break
		}
		out.Write(m.held[at-m.base : s.from-m.base])
		rule, text := m.rules(s.word)
		out.WriteString(text)
		m.count(rule, s.word.form)
		at = s.to
		done++
	}
	if safe > at {
		out.Write(m.held[at-m.base : safe-m.base])
		at = safe
	}
	m.spans = slices.Delete(m.spans, 0, done)
	m.held = append(m.held[:0], m.held[at-m.base:]...)
	m.base = at
	_, err := m.to.Write(out.Bytes())
	return err
}
