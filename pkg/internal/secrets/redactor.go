// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Redactor puts markers in the place of secrets: "[redacted github-pat]" for what
// looks like one, "[redacted NAME]" for the value of a Mask. Any number of goroutines
// may use it.
type Redactor struct {
	scanner *Scanner
	masks   []Mask
	marks   *automaton // the marker, in texts that hold none of ours
	words   *automaton // all forms of the masks; nil without any

	patience time.Duration // leastPatience
}

// NewRedactor returns a Redactor for masks, which may be none. Its error says what is
// wrong with one, and holds nothing of a value.
func NewRedactor(masks []Mask) (*Redactor, error) {
	if len(masks) > MostMasks {
		return nil, fmt.Errorf("there are %d values to mask, %d may be", len(masks), MostMasks)
	}
	for _, m := range masks {
		if err := m.check(); err != nil {
			return nil, err
		}
	}
	scanner, err := New()
	if err != nil {
		return nil, err
	}
	r := &Redactor{scanner: scanner, masks: masks, patience: leastPatience, marks: newAutomaton([]word{{text: marker, value: -1}})}
	words, err := newWords(masks)
	if len(words) > 0 {
		r.words = newAutomaton(words)
	}
	return r, err
}

// A Tally is what was found in one text.
type Tally struct {
	Found     []proposal.Redaction // by rule, sorted
	Encodings []string             // the forms of values of masks, sorted
}

// counter counts finds.
type counter struct {
	found map[string]int
	forms map[string]bool
}

func newCounter() *counter { return &counter{map[string]int{}, map[string]bool{}} }

func (c *counter) mask(rule, form string) {
	c.found[rule]++
	if form != "" {
		c.forms[form] = true
	}
}

func (c *counter) rule(rule, _ string) { c.found[rule]++ }

func (c *counter) tally() Tally {
	t := Tally{Encodings: []string{}}
	for rule, n := range c.found {
		t.Found = proposal.AddRedactions(t.Found, []proposal.Redaction{{Rule: rule, Count: n}})
	}
	for form := range c.forms {
		t.Encodings = append(t.Encodings, form)
	}
	slices.Sort(t.Encodings)
	return t
}

// stands is what a find of w is counted by, and what stands in its place.
func (r *Redactor) stands(w *word) (rule, text string) {
	if w.value < 0 {
		return ForgedMarker, "(" + marker[1:]
	}
	m := r.masks[w.value]
	return m.rule(), mark(m.Name)
}

// Copy copies a text with markers in the place of secrets, in time in proportion to its
// length and with memory that does not depend on it. keep, which may be nil, says by
// which rules finds stay; no value of a mask does. What could not be searched in time is
// not copied, and counts as found by the rule Unscanned.
func (r *Redactor) Copy(to io.Writer, from io.Reader, keep func(rule string) bool) (Tally, error) {
	p := r.pipe(to, true, keep)
	_, err := io.CopyBuffer(p.mask, justReader{from}, make([]byte, window))
	if err == nil {
		err = p.close()
	}
	return p.count.tally(), err
}

// What a text that breaks off may end with, unseen to be the beginning of a find.
const (
	leastBegun = 4  // letters of a mask's value
	leastRun   = 16 // characters of what looks like a token
)

// Begun is how much of text, which breaks off at its end, comes before what may be the
// beginning of a secret: of a mask's, or of anything that is one long word.
func (r *Redactor) Begun(text string) int {
	end := int64(len(text))
	begun := end
	for _, l := range r.lenses(false) {
		l.read([]byte(text), 0, func(span) {})
		begun = min(begun, l.pending(end))
	}
	if end-begun < leastBegun {
		begun = end
	}
	run := len(text)
	for run > 0 && (alphabet[text[run-1]] != 0 || strings.IndexByte("=.%~", text[run-1]) >= 0) {
		run--
	}
	if len(text)-run >= leastRun {
		begun = min(begun, int64(run))
	}
	return int(begun)
}

// A pipe is the way of one text: masks first, since what they leave is searched.
type pipe struct {
	mask   *masker
	search *searcher
	count  *counter
}

// pipe is for one text; foreign says that no marker in it is ours.
func (r *Redactor) pipe(to io.Writer, foreign bool, keep func(string) bool) pipe {
	c := newCounter()
	search := &searcher{scanner: r.scanner, patience: r.patience, to: to, keep: keep, count: c.rule}
	return pipe{newMasker(search, r.lenses(foreign), r.stands, c.mask), search, c}
}

func (r *Redactor) lenses(foreign bool) []*lens {
	var list []*lens
	if foreign { // a marker in colours looks like one without
		list = append(list, newLens(r.marks, false, false), newLens(r.marks, true, false))
	}
	if r.words != nil {
		list = append(list, newLens(r.words, false, false), newLens(r.words, true, false), newLens(r.words, true, true))
	}
	return list
}

func (p pipe) close() error {
	if err := p.mask.Close(); err != nil {
		return err
	}
	return p.search.Close()
}

// justReader hides that a reader can write itself, which would ignore the buffer.
type justReader struct{ io.Reader }

// Text returns text with markers in the place of secrets, and what was found.
func (r *Redactor) Text(text []byte) ([]byte, Tally) { return r.text(text, true) }

func (r *Redactor) text(text []byte, foreign bool) ([]byte, Tally) {
	var out bytes.Buffer
	p := r.pipe(&out, foreign, nil)
	_, _ = p.mask.Write(text) // a buffer takes everything
	_ = p.close()
	return out.Bytes(), p.count.tally()
}
