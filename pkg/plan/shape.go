// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A shape defines the valid values at one place of a plan. check checks documents
// against it, and schema.go converts it to JSON Schema.
type shape struct {
	kind kind   // object, list, text, number or boolean
	doc  string // for the reader of the schema
	want string // the expected value, for messages: `a duration such as "90s"`
	max  int    // bytes of a text, items of a list, members of an object

	// For texts.
	lines   bool // newlines and tabs are allowed
	empty   bool // "" is allowed
	pattern *regexp.Regexp
	never   *regexp.Regexp // and this must not match: for what the pattern cannot express
	choice  []string

	// For numbers.
	low, high float64
	integer   bool

	// valid checks what pattern and bounds do not; "" means valid.
	valid func(n *node) string
	// orText allows a text of its own shape instead of a number.
	orText *shape

	// For lists.
	items *shape
	first *shape // of the first item, if different
	once  bool   // no item twice

	// For objects: known fields, or arbitrary names whose values all have one shape.
	fields []field
	names  *shape
	values *shape
}

// A field is one known name of an object.
type field struct {
	name     string
	required bool
	*shape
}

// replaced maps deprecated fields, which are accepted for one release, to their new names.
var replaced = map[string]string{fieldFresh: fieldSandbox}

// check reports everything in n that s does not allow.
func check(n *node, s *shape, path string, ps *problems) {
	if s.orText != nil && n.kind == text {
		s = s.orText
	}
	switch {
	case n.kind == unreadable || ps.full():
		return
	case n.kind == null:
		ps.add(n.at, path, "is null: give it a value or leave it out")
		return
	case n.kind != s.kind:
		ps.add(n.at, path, "%s", wrongKind(n, s))
		return
	}
	switch s.kind {
	case object:
		checkObject(n, s, path, ps)
	case list:
		checkList(n, s, path, ps)
	case text:
		checkText(n, s, path, ps)
	case number:
		checkNumber(n, s, path, ps)
	}
}

func wrongKind(n *node, s *shape) string {
	got := n.describe()
	switch {
	case s.kind == text && n.kind == ambiguous:
		return fmt.Sprintf("YAML readers disagree about %s: quote it if it is meant as text", got)
	case s.kind == text && (n.kind == number || n.kind == boolean) && s.complain(n) == "":
		return fmt.Sprintf("want %s, got %s: quote it if it is meant as text", s.wanted(), got)
	case n.kind == ambiguous:
		return fmt.Sprintf("want %s, but YAML readers disagree about %s", s.wanted(), got)
	}
	return fmt.Sprintf("want %s, got %s", s.wanted(), got)
}

func (s *shape) wanted() string {
	switch {
	case s.want != "":
		return s.want
	case s.kind == object:
		return "an object"
	case s.kind == list:
		return "a list"
	case s.kind == boolean:
		return "true or false"
	case s.kind == number:
		return "a number"
	}
	return "a text"
}

func checkText(n *node, s *shape, path string, ps *problems) {
	if complaint := s.complain(n); complaint != "" {
		ps.add(n.at, path, "%s", complaint)
	}
}

// complain returns the first problem with a text, or "".
func (s *shape) complain(n *node) string {
	v := n.value
	if len(v) > s.max {
		return fmt.Sprintf("is %d bytes long; at most %d are allowed", len(v), s.max)
	}
	if r, count, found := firstHidden(v); found {
		return fmt.Sprintf("contains %s as character %d, which is not allowed", nameRune(r), count)
	}
	switch {
	case strings.TrimSpace(v) == "" && !s.empty:
		return "is empty: give it a value or leave it out"
	case !s.lines && strings.ContainsAny(v, "\n\t"):
		return "contains a line break or tab; it must be one line"
	case s.choice != nil && !slices.Contains(s.choice, v),
		s.pattern != nil && !s.pattern.MatchString(v),
		s.never != nil && s.never.MatchString(v):
		return fmt.Sprintf("invalid value %s: want %s", quote(v), s.wanted())
	case s.valid != nil:
		return s.valid(n)
	}
	return ""
}

func checkNumber(n *node, s *shape, path string, ps *problems) {
	v, err := numberOf(n)
	whole := v == float64(int64(v)) && !strings.ContainsAny(n.value, ".eE")
	switch {
	case err != nil || v < s.low || v > s.high || s.integer && !whole:
		ps.add(n.at, path, "invalid value %s: want %s", clip(n.value), s.wanted())
	case s.valid != nil:
		if complaint := s.valid(n); complaint != "" {
			ps.add(n.at, path, "%s", complaint)
		}
	}
}

func checkList(n *node, s *shape, path string, ps *problems) {
	if len(n.items) == 0 {
		ps.add(n.at, path, "is empty: give it at least one item")
	}
	if len(n.items) > s.max {
		ps.add(n.at, path, "has %d items; at most %d are allowed", len(n.items), s.max)
		return
	}
	seen := map[string]bool{}
	for i, item := range n.items {
		if ps.full() {
			return
		}
		shape := s.items
		if i == 0 && s.first != nil {
			shape = s.first
		}
		check(item, shape, joinIndex(path, i), ps)
		if s.once && item.kind == text {
			if seen[item.value] {
				ps.add(item.at, joinIndex(path, i), "%s is listed twice", quote(item.value))
			}
			seen[item.value] = true
		}
	}
	if s.valid != nil {
		if complaint := s.valid(n); complaint != "" {
			ps.add(n.at, path, "%s", complaint)
		}
	}
}

func checkObject(n *node, s *shape, path string, ps *problems) {
	if len(n.members) == 0 && !s.demands() {
		ps.add(n.at, path, "is empty: give it a field or leave it out")
	}
	if s.fields == nil && len(n.members) > s.max {
		ps.add(n.at, path, "has %d entries; at most %d are allowed", len(n.members), s.max)
		return
	}
	first := map[string]position{}
	for _, m := range n.members {
		if ps.full() {
			return
		}
		if at, twice := first[m.name]; twice {
			ps.add(m.at, joinName(path, m.name), "is given twice, first in line %d", at.line)
		} else {
			first[m.name] = m.at
		}
		s.checkMember(m, path, ps)
	}
	for _, f := range s.fields {
		if _, given := first[f.name]; f.required && !given {
			ps.add(n.at, path, "the field %q is missing%s", f.name, f.hint())
		}
	}
}

// demands reports whether s has a required field, whose absence is reported anyway.
func (s *shape) demands() bool {
	return slices.ContainsFunc(s.fields, func(f field) bool { return f.required })
}

func (s *shape) checkMember(m member, path string, ps *problems) {
	path = joinName(path, m.name)
	if s.fields == nil {
		checkText(&node{kind: text, at: m.at, value: m.name}, s.names, path, ps)
		check(m.value, s.values, path, ps)
		return
	}
	for _, f := range s.fields {
		if f.name == m.name {
			check(m.value, f.shape, path, ps)
			return
		}
	}
	ps.add(m.at, path, "unknown field %s%s", quote(m.name), s.meant(m.name))
}

// meant suggests the field that the writer of name may have meant.
func (s *shape) meant(name string) string {
	var known []string
	for _, f := range s.fields {
		if replaced[f.name] == "" {
			known = append(known, f.name)
		}
	}
	meant := synonyms[strings.ToLower(name)]
	if !slices.Contains(known, meant) {
		meant = nearest(name, known)
	}
	if meant == "" {
		return ": known are " + strings.Join(known, ", ")
	}
	return fmt.Sprintf(": did you mean %q?", meant)
}

// hint says what to write for a missing field.
func (s *shape) hint() string {
	if len(s.choice) == 1 {
		return fmt.Sprintf(": add it with the value %q", s.choice[0])
	}
	return ""
}
