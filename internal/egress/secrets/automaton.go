// SPDX-License-Identifier: Apache-2.0

package secrets

// An automaton finds any of many words in a text in one pass (Aho–Corasick): its time
// is proportional to the text, whatever the text and the words are.
type automaton struct {
	nodes   []node // the first is the root
	first   [256]int32
	words   []word
	maximum int // length of the longest word
}

// A node is a prefix of words. Its children are a linked list: few nodes have more than one.
type node struct {
	child, sibling int32 // 0 means none: the root is never a child
	fail           int32 // the longest other prefix that is a suffix of this one
	word           int32 // the longest word that is a suffix of this prefix, plus one
	depth          int32
	char           byte
}

// A word is one form of one value.
type word struct {
	text  string
	value int    // its index in the list of values
	form  string // "plain", "base64" …
}

func newAutomaton(words []word) *automaton {
	a := &automaton{nodes: make([]node, 1), words: words}
	for i, w := range words {
		a.insertWord(w.text, int32(i+1))
		a.maximum = max(a.maximum, len(w.text))
	}
	a.linkStates()
	return a
}

func (a *automaton) insertWord(text string, number int32) {
	at := int32(0)
	for i := range len(text) {
		next := a.childOf(at, text[i])
		if next == 0 {
			next = int32(len(a.nodes))
			a.nodes = append(a.nodes, node{sibling: a.nodes[at].child, depth: int32(i + 1), char: text[i]})
			a.nodes[at].child = next
			if at == 0 {
				a.first[text[i]] = next
			}
		}
		at = next
	}
	if at != 0 && a.nodes[at].word == 0 {
		a.nodes[at].word = number
	}
}

func (a *automaton) childOf(at int32, c byte) int32 {
	if at == 0 {
		return a.first[c]
	}
	for n := a.nodes[at].child; n != 0; n = a.nodes[n].sibling {
		if a.nodes[n].char == c {
			return n
		}
	}
	return 0
}

// linkStates sets the state to continue with when a prefix ends, shorter prefixes first.
func (a *automaton) linkStates() {
	queue := make([]int32, 0, len(a.nodes))
	for n := a.nodes[0].child; n != 0; n = a.nodes[n].sibling {
		queue = append(queue, n)
	}
	for i := 0; i < len(queue); i++ {
		at := queue[i]
		for n := a.nodes[at].child; n != 0; n = a.nodes[n].sibling {
			a.nodes[n].fail = a.nextState(a.nodes[at].fail, a.nodes[n].char)
			if a.nodes[n].word == 0 {
				a.nodes[n].word = a.nodes[a.nodes[n].fail].word
			}
			queue = append(queue, n)
		}
	}
}

// nextState advances by one character.
func (a *automaton) nextState(at int32, c byte) int32 {
	for at != 0 {
		if n := a.childOf(at, c); n != 0 {
			return n
		}
		at = a.nodes[at].fail
	}
	return a.first[c]
}

// longestWordAt returns the longest word that ends at a state, or nil.
func (a *automaton) longestWordAt(at int32) *word {
	if n := a.nodes[at].word; n != 0 {
		return &a.words[n-1]
	}
	return nil
}

// containsWord reports whether text contains any word.
func (a *automaton) containsWord(text string) bool {
	at := int32(0)
	for i := range len(text) {
		if at = a.nextState(at, text[i]); a.nodes[at].word != 0 {
			return true
		}
	}
	return false
}
