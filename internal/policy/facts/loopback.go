// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/fumehood/fumehood/policies"
)

// A LoopbackWord is a word of a client or a server that may run only on the loopback interface, as the
// tool reads it.
type LoopbackWord struct {
	Option string `json:"option"` // that is, or has the value; "" for an operand
	// what the value must be, by options.txt; flag for an option without a value, operand for another word, or
	// unknown for an option that is not listed, or lacks its value
	Kind     string `json:"kind"`
	Value    string `json:"value"`    // without quotes
	Attached bool   `json:"attached"` // it is in the same word as its option
}

// Kinds of a LoopbackWord that no table names.
const (
	kindFlag    = "flag"
	kindOperand = "operand"
	kindUnknown = "unknown"
)

// The ends of lines of options.txt about clients and servers, after the tools.
const (
	loopbackMark = " on loopback"
	hostsMark    = " on hosts"
)

// isPlaceLine reports whether a line of options.txt begins a table for a client or a server.
func isPlaceLine(line string) bool {
	return line != "" && !strings.ContainsAny(line[:1], "# \t") &&
		(strings.HasSuffix(line, loopbackMark) || strings.HasSuffix(line, hostsMark))
}

// A loopbackOption is an option of such a line.
type loopbackOption struct {
	name string
	kind string // "" without a value; with | one of these values
	// where its value is: ':' in the next word, '=' in the same word, '?' in either
	place byte
	then  string // kind of the word after the value, or ""
}

type loopbackTable map[string]loopbackOption

var (
	loopbackTables = sync.OnceValues(func() (map[string]loopbackTable, error) {
		return readPlaceTables(policies.Options, loopbackMark)
	})
	hostTables = sync.OnceValues(func() (map[string]loopbackTable, error) {
		return readPlaceTables(policies.Options, hostsMark)
	})
)

// readPlaceTables reads the lines of options.txt that end with mark. The options of one tool may be in several.
func readPlaceTables(text, mark string) (map[string]loopbackTable, error) {
	all := map[string]loopbackTable{}
	var current []string
	for n, line := range strings.Split(text, "\n") {
		switch {
		case isPlaceLine(line) && strings.HasSuffix(line, mark):
			current = strings.Split(strings.TrimSuffix(line, mark), ", ")
		case line == "" || !strings.ContainsAny(line[:1], " \t"):
			current = nil
		}
		for _, tool := range current {
			if all[tool] == nil {
				all[tool] = loopbackTable{}
			}
			if isPlaceLine(line) {
				continue
			}
			for _, token := range strings.Fields(line) {
				if err := all[tool].define(token); err != nil {
					return nil, fmt.Errorf("line %d: %s: %w", n+1, tool, err)
				}
			}
		}
	}
	return all, nil
}

// define adds the option of token: -o,--output:file.
func (t loopbackTable) define(token string) error {
	names, o := token, loopbackOption{}
	if i := strings.IndexAny(token, ":=?"); i > 0 {
		names, o.place, o.kind = token[:i], token[i], token[i+1:]
		o.kind, o.then, _ = strings.Cut(o.kind, "+")
		if o.kind == "" {
			return fmt.Errorf("%s has no kind", token)
		}
	}
	all := strings.Split(names, ",")
	o.name = all[len(all)-1]
	for _, name := range all {
		if _, twice := t[name]; twice || !strings.HasPrefix(name, "-") && !strings.HasPrefix(name, "+") {
			return fmt.Errorf("%s is no option, or listed twice", name)
		}
		t[name] = o
	}
	return nil
}

// ReadLoopback returns how the tool of this name reads words, of which all are known, if options.txt lists what it
// may do on loopback. Otherwise it returns no word.
func ReadLoopback(tool string, words []string) []LoopbackWord {
	all := mustRead(loopbackTables)
	if all[tool] == nil {
		return []LoopbackWord{}
	}
	return readLoopbackWords(all, all[tool], words)
}

// mustRead returns tables of the shipped options.txt, which a test reads.
func mustRead(read func() (map[string]loopbackTable, error)) map[string]loopbackTable {
	all, err := read()
	if err != nil {
		panic("facts: internal error: options.txt: " + err.Error())
	}
	return all
}

// kindRefused is the kind of an option that a client of a granted host must not have.
const kindRefused = "refused"

// RefusedOptions are the words of a client that are, end with or abbreviate an option with which it does more than
// ask a host, by options.txt. Each word is read, also one that is the value of the option before.
func RefusedOptions(tool string, words []string) []string {
	refused, t := []string{}, mustRead(hostTables)[tool]
	for _, w := range words {
		if t.refuses(w) {
			refused = append(refused, w)
		}
	}
	return refused
}

func (t loopbackTable) refuses(w string) bool {
	for _, o := range t {
		if o.refusesSetting(w) {
			return true
		}
	}
	if strings.HasPrefix(w, "--") || strings.HasPrefix(w, "+") {
		name, _, _ := strings.Cut(w, "=")
		if o, listed := t[name]; listed {
			return o.kind == kindRefused
		}
		for listed, o := range t {
			same, _ := path.Match(listed, name)
			if o.kind == kindRefused && (same || len(name) > len("--") && strings.HasPrefix(listed, name)) {
				return true
			}
		}
		return false
	}
	for i := 1; i < len(w) && w[0] == '-'; i++ {
		o, listed := t["-"+w[i:i+1]]
		switch isLetter := w[i] == '#' || w[i] >= '0' && w[i] <= '9' || w[i]|0x20 >= 'a' && w[i]|0x20 <= 'z'; {
		case listed && o.kind == kindRefused, listed && o.refusesSetting(w[i+1:]):
			return true
		case listed || !isLetter: // the rest is a value
			return false
		}
	}
	return false
}

// refusesSetting reports whether value, as NAME=VALUE or NAME VALUE, with or without quotes, sets a name that o, an
// option with a list of names, must not set.
func (o loopbackOption) refusesSetting(value string) bool {
	name := strings.TrimLeft(strings.ToLower(value), " \t\"")
	i := strings.IndexAny(name, " \t\"=")
	return i > 0 && strings.Contains(o.kind, "|") &&
		slices.ContainsFunc(strings.Split(o.kind, "|"), func(refused string) bool {
			is, _ := path.Match(refused, name[:i])
			return is
		})
}

func readLoopbackWords(all map[string]loopbackTable, t loopbackTable, words []string) []LoopbackWord {
	read := []LoopbackWord{}
	for i := 0; i < len(words); i++ {
		w := words[i]
		o, value, attached, listed := t.find(w)
		switch {
		case len(w) < 2 || w[0] != '-':
			read = append(read, LoopbackWord{Kind: kindOperand, Value: w})
			continue
		case !listed:
			read = append(read, LoopbackWord{Kind: kindUnknown, Option: w, Value: w})
			continue
		case o.kind == "":
			read = append(read, LoopbackWord{Kind: kindFlag, Option: o.name, Value: w})
			continue
		case !attached:
			if i++; i >= len(words) {
				read = append(read, LoopbackWord{Kind: kindUnknown, Option: o.name, Value: w})
				continue
			}
			value = words[i]
		}
		read = append(read, o.readValue(all, value, attached)...)
		if o.then != "" && i+1 < len(words) {
			i++
			read = append(read, LoopbackWord{Option: o.name, Kind: o.then, Value: words[i]})
		}
	}
	return read
}

// readValue reads the option with value. If its kind is the name of a table, the value has words for that
// table, which a shell splits.
func (o loopbackOption) readValue(all map[string]loopbackTable, value string, attached bool) []LoopbackWord {
	if inner := all[o.kind]; inner != nil {
		words := []string{}
		for _, w := range strings.Split(value, " ") {
			if w == "''" {
				words = append(words, "")
			} else if w != "" {
				words = append(words, w)
			}
		}
		read := readLoopbackWords(all, inner, words)
		for i := range read {
			if read[i].Kind == kindOperand { // only options are handed on
				read[i].Kind = kindUnknown
			}
		}
		return read
	}
	w := LoopbackWord{Option: o.name, Kind: o.kind, Value: value, Attached: attached}
	if strings.Contains(o.kind, "|") {
		if w.Kind = kindFlag; !slices.Contains(strings.Split(o.kind, "|"), value) {
			w.Kind = kindUnknown
		}
	}
	return []LoopbackWord{w}
}

// find finds the option that w is, or ends with: in -so, that is -o. attached says that w has the option's value.
func (t loopbackTable) find(w string) (o loopbackOption, value string, attached, listed bool) {
	if name, value, is := strings.Cut(w, "="); is && strings.HasPrefix(w, "--") {
		if o, listed = t.lookup(name); listed && (o.place == '=' || o.place == '?') {
			return o, value, true, true
		}
		return o, "", false, false
	}
	if o, listed = t.lookup(w); listed {
		return o, "", false, o.place != '='
	}
	if strings.HasPrefix(w, "--") {
		return o, "", false, false
	}
	for i := 1; i < len(w); i++ {
		o, listed = t["-"+w[i:i+1]]
		switch {
		case !listed || o.place == '=':
			return o, "", false, false
		case o.kind != "" && i+1 < len(w):
			return o, w[i+1:], true, o.place == '?'
		}
	}
	return o, "", false, true
}

// lookup finds the option name, or the one whose beginning is listed: --lc-*.
func (t loopbackTable) lookup(name string) (loopbackOption, bool) {
	if o, is := t[name]; is {
		return o, true
	}
	for listed, o := range t {
		if begin, is := strings.CutSuffix(listed, "*"); is && strings.HasPrefix(name, begin) && len(name) > len(begin) {
			o.name = name
			return o, true
		}
	}
	return loopbackOption{}, false
}
