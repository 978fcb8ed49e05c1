// SPDX-License-Identifier: Apache-2.0

package plan

import "fmt"

// A position is a line and a column, both from 1; columns count characters.
type position struct{ line, col int }

// A kind is a node's type, the same for both formats.
type kind int

const (
	unreadable kind = iota // already reported; nothing more is reported about it
	object
	list
	text
	number    // in JSON's grammar
	boolean   // true or false
	null      //
	ambiguous // a plain YAML word that parsers read differently
)

// A node is one value of the document.
type node struct {
	kind    kind
	at      position
	value   string // the text; for other kinds, as written
	members []member
	items   []*node
}

// A member is one field of an object, in the document's order. Names may repeat.
type member struct {
	name  string
	at    position
	value *node
}

// get returns the first member called name, or nil.
func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	for _, m := range n.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// text returns the value of the member called name, "" if it does not exist.
func (n *node) text(name string) string {
	if v := n.get(name); v != nil {
		return v.value
	}
	return ""
}

// texts returns the items of the list called name.
func (n *node) texts(name string) []string {
	v := n.get(name)
	if v == nil {
		return nil
	}
	words := make([]string, len(v.items))
	for i, item := range v.items {
		words[i] = item.value
	}
	return words
}

// describe describes n for messages.
func (n *node) describe() string {
	switch n.kind {
	case object:
		return "an object"
	case list:
		return "a list"
	case text:
		return "the text " + quote(n.value)
	case number:
		return "the number " + clip(n.value)
	case boolean:
		return "the boolean " + n.value
	case null:
		return "null"
	default:
		return quote(n.value)
	}
}

func joinName(path, name string) string {
	if !plainName.MatchString(name) {
		return path + "[" + quote(name) + "]"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

func joinIndex(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
