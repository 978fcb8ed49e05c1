// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"sync"
)

//go:embed rules.json
var rulesJSON []byte

// providersJSON are rules for formats of keys that gitleaks does not know yet, or reads only at the
// end of a word: large providers change theirs more often than gitleaks is released. A rule has the name
// of gitleaks' own, if there is one.
//
//go:embed providers.json
var providersJSON []byte

// A rule is one of gitleaks' detectors, or of providers.json.
type rule struct {
	ID       string      `json:"id"`
	Regex    string      `json:"regex"`
	Group    int         `json:"group"`    // of Regex that is the secret; 0 is the first that is not empty
	Entropy  float64     `json:"entropy"`  // a secret has more, in bits per character
	Keywords []string    `json:"keywords"` // a text that Regex matches has one of them, lower case
	Allow    []allowRule `json:"allow"`

	pattern  func() *regexp.Regexp
	vicinity func() *vicinity // nil for a pattern that is compared with the whole text
}

// An allowRule describes text that is not a secret although its rule finds it:
// placeholders, examples.
type allowRule struct {
	And       bool     `json:"and"`    // all conditions must hold, not any
	Target    string   `json:"target"` // what Regexes match: "match", "line" or "", the secret
	Regexes   []string `json:"regexes"`
	Stopwords []string `json:"stopwords"` // in the secret

	patterns func() []*regexp.Regexp
	words    func() *automaton
}

type ruleFile struct {
	Rules []rule      `json:"rules"`
	Allow []allowRule `json:"allow"` // for every rule
}

// readRules reads the table. Patterns are compiled when a text first needs them: a
// gateway that filters nothing compiles none.
func readRules() (ruleFile, error) {
	var f, more ruleFile
	if err := errors.Join(json.Unmarshal(rulesJSON, &f), json.Unmarshal(providersJSON, &more)); err != nil {
		return f, fmt.Errorf("cannot read the rules about secrets: %w", err)
	}
	f.Rules = append(f.Rules, more.Rules...)
	for i := range f.Rules {
		r := &f.Rules[i]
		r.pattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(r.Regex) })
		r.vicinity = sync.OnceValue(func() *vicinity { return vicinityOf(r) })
		compileLazily(r.Allow)
	}
	compileLazily(f.Allow)
	return f, nil
}

func compileLazily(list []allowRule) {
	for i := range list {
		a := &list[i]
		a.patterns = sync.OnceValue(func() []*regexp.Regexp {
			var compiled []*regexp.Regexp
			for _, text := range a.Regexes {
				compiled = append(compiled, regexp.MustCompile(text))
			}
			return compiled
		})
		a.words = sync.OnceValue(func() *automaton {
			var words []word
			for _, text := range a.Stopwords {
				words = append(words, word{text: strings.ToLower(text)})
			}
			return newAutomaton(words)
		})
	}
}

// secretOffsets returns where in m, the offset pairs of a match, the secret is.
func (r *rule) secretOffsets(m []int) (start, end int) {
	if g := 2 * r.Group; g > 0 && g+1 < len(m) && m[g] >= 0 {
		return m[g], m[g+1]
	}
	for i := 2; i+1 < len(m); i += 2 {
		if m[i] >= 0 && m[i+1] > m[i] {
			return m[i], m[i+1]
		}
	}
	return m[0], m[1]
}

// allowsMatch reports whether a applies, so that the match is not a secret.
func (a *allowRule) allowsMatch(secret, match, line string) bool {
	target := secret
	switch a.Target {
	case "match":
		target = match
	case "line":
		target = line
	}
	byPattern, byWord := false, false
	for _, p := range a.patterns() {
		byPattern = byPattern || p.MatchString(target)
	}
	byWord = len(a.Stopwords) > 0 && a.words().containsWord(strings.ToLower(secret))
	if a.And {
		return (byPattern || len(a.Regexes) == 0) && (byWord || len(a.Stopwords) == 0)
	}
	return byPattern || byWord
}

// shannonEntropy returns the Shannon entropy in bits per byte.
func shannonEntropy(s string) float64 {
	var counts [256]int
	for i := range len(s) {
		counts[s[i]]++
	}
	var bits float64
	for _, n := range counts {
		if n == 0 {
			continue
		}
		share := float64(n) / float64(len(s))
		bits -= share * math.Log2(share)
	}
	return bits
}
