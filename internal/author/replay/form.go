// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// maxExample is the maximum size of a text shown as an example, maxExamples the
// number for one rule.
const (
	maxExample  = 2000
	maxExamples = 5
	maxValues   = 500 // different words in one rule
)

// A command is the part of a command's input document from which a rule is made:
// see internal/policy.
type command struct {
	Program   string   `json:"program"`
	Place     string   `json:"place"`
	Argv      []string `json:"argv"`
	Sub       string   `json:"sub"`
	Options   []word   `json:"options"`
	Unknown   []string `json:"unknown"`
	Operands  []word   `json:"operands"`
	Loose     bool     `json:"loose"`
	Script    script   `json:"script"`
	Via       []string `json:"via"`
	Function  bool     `json:"function"`
	StdinFrom string   `json:"stdin_from"`
	Homes     []word   `json:"homes"`
	// Credentials are variables with the names of credentials.
	Credentials []string   `json:"credentials"`
	Assigns     []word     `json:"assigns"`
	Redirects   []redirect `json:"redirects"`
}

type word struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Static bool   `json:"static"`
	Place  string `json:"place"`
}

type redirect struct {
	Kind   string `json:"kind"`
	Value  string `json:"value"`
	Static bool   `json:"static"`
	Place  string `json:"place"`
}

// texts are the kinds of redirections that are followed by the text to read and not
// by a file name.
var texts = []string{"heredoc", "herestring", "dup"}

type script struct {
	Plain bool `json:"plain"`
}

// noRuleReason returns the reason why no rule is made from c, or "".
func (c command) noRuleReason() string {
	switch {
	case len(c.Credentials) > 0:
		return "it reads a variable with the name of a credential"
	case len(c.Homes) > 0:
		return "it names a path in the home directory"
	case c.Loose:
		return "one of its words is known only at run time and could be an option"
	case len(c.Unknown) > 0:
		return "it has an option that the policy does not know"
	}
	return ""
}

// A commandForm is all that was seen of one program, or of one of its subcommands.
// Everything in it is untrusted text.
type commandForm struct {
	program, place, sub string
	function            bool
	plain               bool // all scripts were plain
	times               int
	runs                map[string]bool
	examples            []string
	options, operands   values
	via, stdin          map[string]bool
	assigns             values
	redirects           values
}

// values maps the names of words, or the kinds of redirections, to words; operands
// have no name.
type values map[string]map[word]bool

func newForm(c command) *commandForm {
	return &commandForm{program: c.Program, place: c.Place, sub: c.Sub, function: c.Function, plain: true,
		runs: map[string]bool{}, options: values{}, operands: values{},
		via: map[string]bool{}, stdin: map[string]bool{}, assigns: values{}, redirects: values{}}
}

func (f *commandForm) addCommand(c command, run, text string) {
	f.times++
	f.runs[run] = true
	f.plain = f.plain && c.Script.Plain
	if len(f.examples) < maxExamples && !slices.Contains(f.examples, strings.TrimSpace(text)) {
		f.examples = append(f.examples, strings.TrimSpace(text))
	}
	for _, o := range c.Options {
		f.options.addWord(o)
	}
	for _, w := range c.Operands {
		w.Name = ""
		f.operands.addWord(w)
	}
	for _, a := range c.Assigns {
		f.assigns.addWord(a)
	}
	for _, v := range c.Via {
		f.via[v] = true
	}
	f.stdin[c.StdinFrom] = true
	for _, r := range c.Redirects {
		f.redirects.addWord(word{r.Kind, r.Value, r.Static, r.Place})
	}
}

// isFull reports whether f has as many different words as one rule may have.
func (f *commandForm) isFull() bool {
	n := 0
	for _, v := range []values{f.options, f.operands, f.assigns, f.redirects} {
		for _, words := range v {
			n += len(words)
		}
	}
	return n >= maxValues
}

func (v values) addWord(w word) {
	if v[w.Name] == nil {
		v[w.Name] = map[word]bool{}
	}
	v[w.Name][w] = true
}

func (v values) wordsOf(name string) []word {
	return slices.SortedFunc(maps.Keys(v[name]), func(a, b word) int {
		return cmp.Or(strings.Compare(a.Value, b.Value), strings.Compare(a.Place, b.Place))
	})
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// pathPattern matches a word for which a rule may allow other words in the same
// place: letters, digits and joining characters, with a dot or a slash.
const pathPattern = `^([A-Za-z0-9_][A-Za-z0-9_@+-]*)?[./][A-Za-z0-9_.@+/-]*$`

var pathlike = pattern.New(pathPattern)

// isWideWord reports whether a rule may allow other words of the same place instead of w:
// w is a path of the workspace or of /tmp, and cannot be a verb.
func isWideWord(w word) bool {
	return w.Static && (w.Place == "workspace" || w.Place == "tmp") && pathlike.MatchString(w.Value) &&
		!slices.Contains(texts, w.Name)
}

// splitWords divides words into places, in which any path is allowed, and exact words.
func splitWords(words []word) (places []string, exact []word) {
	for _, w := range words {
		if isWideWord(w) {
			if !slices.Contains(places, w.Place) {
				places = append(places, w.Place)
			}
		} else {
			exact = append(exact, w)
		}
	}
	slices.Sort(places)
	return places, exact
}

// widerNotes says how the rule allows more than was seen.
func (f *commandForm) widerNotes() []string {
	var list []string
	for _, name := range sortedKeys(f.options) {
		if places, _ := splitWords(f.options.wordsOf(name)); len(places) > 0 {
			list = append(list, fmt.Sprintf("any path of %s as the value of %s", strings.Join(places, " and "), name))
		}
	}
	if places, _ := splitWords(f.operands.wordsOf("")); len(places) > 0 {
		list = append(list, "any path of "+strings.Join(places, " and ")+" as an operand")
	}
	for _, kind := range sortedKeys(f.redirects) {
		if places, _ := splitWords(f.redirects.wordsOf(kind)); len(places) > 0 {
			list = append(list, fmt.Sprintf("any path of %s as the file of a redirection (%s)",
				strings.Join(places, " and "), kind))
		}
	}
	if slices.ContainsFunc(f.operands.wordsOf(""), func(w word) bool { return !w.Static }) {
		list = append(list, "words that are known only at run time, in the places where some were seen")
	}
	return append(list, "words that were seen together may also appear alone, repeated, in another order, and in another directory")
}

// plainText reports whether text is printable ASCII and line ends.
func plainText(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && (r < ' ' || r > '~') })
}
