// SPDX-License-Identifier: Apache-2.0

package grammar

import (
	"encoding/binary"
	"iter"
)

const nodeSize = 16

// The flags of a node, as defined in source/tree.c.
const (
	flagNamed = 1 << iota
	flagError
	flagMissing
)

// A Tree is a text and its syntax.
type Tree struct {
	Text   string
	Broken bool // part of the text is not understood
	nodes  []flat
	kinds  []string
	fields []string
}

type flat struct {
	kind         uint16
	flags, field uint8
	start, end   uint32
	after        uint32 // index of the next node outside this one
}

// decodeTree checks the nodes once: each must lie within its parent and within the text,
// and use only names that the grammar knows.
func decodeTree(raw []byte, text string, kinds, fields []string, broken bool) (*Tree, error) {
	t := &Tree{Text: text, Broken: broken, kinds: kinds, fields: fields, nodes: make([]flat, len(raw)/nodeSize)}
	if len(t.nodes) == 0 {
		return nil, ErrBroken
	}
	var open []uint32
	for i := range t.nodes {
		at := uint32(i)
		n, ok := t.decodeOne(raw[i*nodeSize:], at)
		if !ok {
			return nil, ErrBroken
		}
		for len(open) > 0 && t.nodes[open[len(open)-1]].after <= at {
			open = open[:len(open)-1]
		}
		if i > 0 && (len(open) == 0 || !t.nodes[open[len(open)-1]].containsFlat(n)) {
			return nil, ErrBroken
		}
		t.nodes[i] = n
		open = append(open, at)
	}
	return t, nil
}

func (n flat) containsFlat(inner flat) bool {
	return inner.after <= n.after && inner.start >= n.start && inner.end <= n.end
}

func (t *Tree) decodeOne(raw []byte, at uint32) (flat, bool) {
	word := binary.LittleEndian.Uint32(raw)
	n := flat{kind: uint16(word), flags: uint8(word >> 16), field: uint8(word >> 24)}
	n.start, n.end = binary.LittleEndian.Uint32(raw[4:]), binary.LittleEndian.Uint32(raw[8:])
	size, limit := binary.LittleEndian.Uint32(raw[12:]), uint32(len(t.nodes))-at
	if n.flags&flagError != 0 {
		n.kind = 0 // the grammar has no name for the kind of errors
	}
	n.after = at + size
	ok := size >= 1 && size <= limit && n.start <= n.end && int(n.end) <= len(t.Text) &&
		int(n.kind) < len(t.kinds) && int(n.field) < len(t.fields)
	return n, ok
}

// A Node is one node of a Tree. The zero Node represents no node: it has no kind and
// no children.
type Node struct {
	tree *Tree
	at   uint32
}

// All yields every node, in the order of the text, parents first.
func (t *Tree) All() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		for i := range t.nodes {
			if !yield(Node{t, uint32(i)}) {
				return
			}
		}
	}
}

// IsNone reports whether n is the zero Node.
func (n Node) IsNone() bool { return n.tree == nil }

func (n Node) flatNode() flat {
	if n.IsNone() {
		return flat{}
	}
	return n.tree.nodes[n.at]
}

// Kind returns the grammar's name for n, "ERROR" for text that the grammar does not
// know, and "" for the zero Node.
func (n Node) Kind() string {
	switch {
	case n.IsNone():
		return ""
	case n.flatNode().flags&flagError != 0:
		return "ERROR"
	}
	return n.tree.kinds[n.flatNode().kind]
}

// Field returns the name of n's field in its parent, or "".
func (n Node) Field() string {
	if n.IsNone() {
		return ""
	}
	return n.tree.fields[n.flatNode().field]
}

// IsNamed reports whether n is more than a keyword or punctuation of the grammar.
func (n Node) IsNamed() bool { return n.flatNode().flags&flagNamed != 0 }

// IsWrong reports whether n is an error, or something missing from the text.
func (n Node) IsWrong() bool { return n.flatNode().flags&(flagError|flagMissing) != 0 }

// Span returns the position of n, in bytes.
func (n Node) Span() (start, end int) { return int(n.flatNode().start), int(n.flatNode().end) }

// Text returns n's text.
func (n Node) Text() string {
	if n.IsNone() {
		return ""
	}
	return n.tree.Text[n.flatNode().start:n.flatNode().end]
}

// ID identifies n among the nodes of its tree.
func (n Node) ID() int { return int(n.at) }

// Children yields n's children.
func (n Node) Children() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		for i := n.at + 1; i < n.flatNode().after; i = n.tree.nodes[i].after {
			if !yield(Node{n.tree, i}) {
				return
			}
		}
	}
}

// WithDescendants yields n and all its descendants.
func (n Node) WithDescendants() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		for i := n.at; i < n.flatNode().after; i++ {
			if !yield(Node{n.tree, i}) {
				return
			}
		}
	}
}

// ChildIn returns the first child in the field, or the zero Node.
func (n Node) ChildIn(field string) Node {
	for child := range n.Children() {
		if child.Field() == field {
			return child
		}
	}
	return Node{}
}

// FirstNamedChild returns the first named child, or the zero Node.
func (n Node) FirstNamedChild() Node {
	for child := range n.Children() {
		if child.IsNamed() {
			return child
		}
	}
	return Node{}
}
