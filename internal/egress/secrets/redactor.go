// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/kit/redaction"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Redactor replaces secrets with markers: "[redacted github-pat]" for text that looks
// like one, "[redacted NAME]" for the value of a Mask. It is safe for concurrent use.
type Redactor struct {
	scanner *Scanner
	masks   []Mask
	marks   *automaton // the marker, for texts in which every marker is forged
	words   *automaton // all forms of the masks; nil without any

	patience time.Duration // minPatience
}

// NewRedactor returns a Redactor for masks, which may be empty. Its error says what is
// wrong with a mask, and contains nothing of its value.
func NewRedactor(masks []Mask) (*Redactor, error) {
	if len(masks) > MaxMasks {
		return nil, fmt.Errorf("there are %d values to mask, more than %d", len(masks), MaxMasks)
	}
	for _, m := range masks {
		if err := m.checkMask(); err != nil {
			return nil, err
		}
	}
	scanner, err := New()
	if err != nil {
		return nil, err
	}
	r := &Redactor{scanner: scanner, masks: masks, patience: minPatience,
		marks: newAutomaton([]word{{text: marker, value: -1}})}
	words, err := newWords(masks)
	if len(words) > 0 {
		r.words = newAutomaton(words)
	}
	return r, err
}

// A Tally is the result of searching one text.
type Tally struct {
	Found     []proposal.Redaction // by rule, sorted
	Encodings []string             // the forms of masked values, sorted
}

// counter counts finds.
type counter struct {
	found map[string]int
	forms map[string]bool
}

func newCounter() *counter { return &counter{map[string]int{}, map[string]bool{}} }

func (c *counter) countMask(rule, form string) {
	c.found[rule]++
	if form != "" {
		c.forms[form] = true
	}
}

func (c *counter) countRule(rule, _ string) { c.found[rule]++ }

func (c *counter) tally() Tally {
	t := Tally{Encodings: []string{}}
	for rule, n := range c.found {
		t.Found = redaction.SumByRule(t.Found, []proposal.Redaction{{Rule: rule, Count: n}})
	}
	for form := range c.forms {
		t.Encodings = append(t.Encodings, form)
	}
	slices.Sort(t.Encodings)
	return t
}

// replacementFor returns the name under which a find of w is counted, and its replacement.
func (r *Redactor) replacementFor(w *word) (rule, text string) {
	if w.value < 0 {
		return ForgedMarker, "(" + marker[1:]
	}
	m := r.masks[w.value]
	return m.ruleName(), markerFor(m.Name)
}

// Copy copies a text with markers in place of secrets, in time proportional to its
// length and with constant memory. keep, which may be nil, reports the rules whose finds
// stay; a masked value never stays. Text that could not be searched in time is not
// copied, and counts as found by the rule Unscanned.
func (r *Redactor) Copy(to io.Writer, from io.Reader, keep func(rule string) bool) (Tally, error) {
	p := r.newPipe(to, true, keep)
	_, err := io.CopyBuffer(p.mask, justReader{from}, make([]byte, window))
	if err == nil {
		err = p.close()
	}
	return p.count.tally(), err
}

// The minimum lengths at which the end of a cut text counts as the beginning of a secret.
const (
	minBegun = 4  // letters of a masked value
	minToken = 16 // characters that look like a token
)

// SafeLength returns how much of text, which breaks off at its end, precedes a possible
// beginning of a secret: of a masked value, or of any one long word.
func (r *Redactor) SafeLength(text string) int {
	end := int64(len(text))
	begun := end
	for _, l := range r.newStreamMatchers(false) {
		l.searchChunk([]byte(text), 0, func(span) {})
		begun = min(begun, l.pendingOffset(end, 0))
	}
	if end-begun < minBegun {
		begun = end
	}
	run := len(text)
	for run > 0 && (alphabet[text[run-1]] != 0 || strings.IndexByte("=.%~", text[run-1]) >= 0) {
		run--
	}
	if len(text)-run >= minToken {
		begun = min(begun, int64(run))
	}
	return int(begun)
}

// A pipe processes one text: masks first, since their result is searched.
type pipe struct {
	mask   *masker
	search *searcher
	count  *counter
}

// newPipe returns the pipe for one text; foreign means that no marker in it is ours.
func (r *Redactor) newPipe(to io.Writer, foreign bool, keep func(string) bool) pipe {
	c := newCounter()
	search := &searcher{scanner: r.scanner, patience: r.patience, to: to, keep: keep, count: c.countRule}
	return pipe{newMasker(search, r.newStreamMatchers(foreign), r.replacementFor, c.countMask), search, c}
}

func (r *Redactor) newStreamMatchers(foreign bool) []*streamMatcher {
	var list []*streamMatcher
	if foreign { // a marker in colors looks like one without
		list = append(list, newStreamMatcher(r.marks, false, false), newStreamMatcher(r.marks, true, false))
	}
	if r.words != nil {
		list = append(list, newStreamMatcher(r.words, false, false), newStreamMatcher(r.words, true, false),
			newStreamMatcher(r.words, true, true))
	}
	return list
}

func (p pipe) close() error {
	if err := p.mask.Close(); err != nil {
		return err
	}
	return p.search.Close()
}

// justReader hides a reader's WriterTo, which would bypass the buffer.
type justReader struct{ io.Reader }

// Text returns text with markers in place of secrets, and what was found.
func (r *Redactor) Text(text []byte) ([]byte, Tally) { return r.redactText(text, true) }

func (r *Redactor) redactText(text []byte, foreign bool) ([]byte, Tally) {
	var out bytes.Buffer
	p := r.newPipe(&out, foreign, nil)
	_, _ = p.mask.Write(text) // a buffer accepts everything
	_ = p.close()
	return out.Bytes(), p.count.tally()
}
