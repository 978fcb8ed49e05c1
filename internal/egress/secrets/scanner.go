// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/kit/cputime"
)

const (
	maxFound = 256             // per text; the rest of it is not searched
	patience = 2 * time.Second // of processor time, for one call; see Unscanned
	atOnce   = 2               // calls; others wait, so that a flood uses no more processors
)

// Unscanned is the Rule of a part that could not be searched in time or is too long. It
// counts as a secret, so that a text cannot evade the search by being hard to search.
const Unscanned = "unscanned"

// A Scanner finds secrets. It is safe for concurrent use.
type Scanner struct {
	rules    []rule
	allow    []allowRule
	keywords []string
	byWord   map[string][]int // rules of a keyword, by index
	always   []int            // rules without keywords
	slots    chan struct{}
}

// New reads the rules. It opens no file.
func New() (*Scanner, error) {
	f, err := readRules()
	if err != nil {
		return nil, err
	}
	s := &Scanner{rules: f.Rules, allow: f.Allow, byWord: map[string][]int{}, slots: make(chan struct{}, atOnce)}
	for i, r := range s.rules {
		if len(r.Keywords) == 0 {
			s.always = append(s.always, i)
		}
		for _, word := range r.Keywords {
			if s.byWord[word] == nil {
				s.keywords = append(s.keywords, word)
			}
			s.byWord[word] = append(s.byWord[word], i)
		}
	}
	return s, nil
}

// A timeBudget is the processor time of one call. It is not wall-clock time, so that a busy
// machine does not make a text unsearchable.
type timeBudget struct {
	clock cputime.Clock
	limit time.Duration
}

func (b timeBudget) isSpent() bool { return b.clock.Used() > b.limit }

// acquireSlot waits for a slot. It returns the time budget of the call, for this goroutine
// alone, and a function that frees the slot.
func (s *Scanner) acquireSlot(patience time.Duration) (limit timeBudget, end func()) {
	s.slots <- struct{}{}
	b := timeBudget{cputime.Start(), patience}
	return b, func() { b.clock.Stop(); <-s.slots }
}

// secretFind is one secret: its rule and its position in the searched text.
type secretFind struct {
	rule       string
	start, end int
}

// findSecrets searches one text. It stops at most finds or when time is up, and then reports
// that as one find over the whole text.
func (s *Scanner) findSecrets(text string, maximum int, limit timeBudget) []secretFind {
	var list []secretFind
	lower := lowerASCII(text)
	rules := s.candidateRules(lower)
	if hasFolded(text) {
		lower = ""
	}
	for _, i := range rules {
		r := &s.rules[i]
		if limit.isSpent() {
			return append(list, secretFind{rule: Unscanned, end: len(text)})
		}
		for n, m := range r.findMatches(text, lower) {
			if len(list) >= maximum || n%64 == 63 && limit.isSpent() {
				return append(list, secretFind{rule: Unscanned, end: len(text)})
			}
			start, end := r.secretOffsets(m)
			if s.isSecret(r, text, m[0], m[1], start, end) {
				list = append(list, secretFind{rule: r.ID, start: start, end: end})
			}
		}
	}
	return list
}

// candidateRules returns the rules that have a keyword in a text in lower case, once each, in order.
func (s *Scanner) candidateRules(lower string) []int {
	pairs := pairsOf(lower)
	wanted := make([]bool, len(s.rules))
	for _, i := range s.always {
		wanted[i] = true
	}
	for _, word := range s.keywords {
		if !pairs.mayHold(word) || !strings.Contains(lower, word) {
			continue
		}
		for _, i := range s.byWord[word] {
			wanted[i] = true
		}
	}
	var list []int
	for i, ok := range wanted {
		if ok {
			list = append(list, i)
		}
	}
	return list
}

// pairs is the set of pairs of adjacent bytes in a text: most keywords have a pair that
// is not in it.
type pairs [1 << 10]uint64

func pairsOf(text string) *pairs {
	p := new(pairs)
	for i := 1; i < len(text); i++ {
		pair := uint(text[i-1])<<8 | uint(text[i])
		p[pair>>6] |= 1 << (pair & 63)
	}
	return p
}

func (p *pairs) mayHold(word string) bool {
	for i := 1; i < len(word); i++ {
		pair := uint(word[i-1])<<8 | uint(word[i])
		if p[pair>>6]&(1<<(pair&63)) == 0 {
			return false
		}
	}
	return true
}

func (s *Scanner) isSecret(r *rule, text string, from, to, start, end int) bool {
	secret := text[start:end]
	if secret == "" || r.Entropy > 0 && shannonEntropy(secret) <= r.Entropy {
		return false
	}
	match, line := text[from:to], lineAt(text, from, to)
	for _, lists := range [][]allowRule{s.allow, r.Allow} {
		for i := range lists {
			if lists[i].allowsMatch(secret, match, line) {
				return false
			}
		}
	}
	return true
}

// lineAt returns the line or lines of a match, bounded.
func lineAt(text string, from, to int) string {
	const far = 4096
	start, end := max(0, from-far), min(len(text), to+far)
	if i := strings.LastIndexByte(text[start:from], '\n'); i >= 0 {
		start += i + 1
	}
	if i := strings.IndexByte(text[to:end], '\n'); i >= 0 {
		end = to + i
	}
	return text[start:end]
}

// lowerASCII keeps every offset, unlike strings.ToLower.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
