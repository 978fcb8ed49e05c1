// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// A Position is a line and a column, both from 1; columns count characters.
type Position struct{ Line, Col int }

// A Kind is a node's type, the same for both formats.
type Kind int

const (
	Unreadable Kind = iota // wrong already while it was read; Check reports why, and nothing more about it
	Object
	List
	Text
	Number    // in JSON's grammar
	Boolean   // true or false
	Null      //
	Ambiguous // a plain YAML word that parsers read differently
	Any       // only of a Shape: every value is allowed
)

// A Node is one value of the document.
type Node struct {
	Kind    Kind
	At      Position
	Value   string // the text; for other kinds, as written
	Members []Member
	Items   []*Node

	// Altered says how a value in YAML differs from what its author wrote, and what to write:
	// a part is a tag or a comment, or lines are joined. It is "" if nothing differs.
	Altered string

	problems []nodeFlaw // found while reading; Check reports them
}

// A nodeFlaw is a problem of a value that was found while it was read.
type nodeFlaw struct {
	at      Position
	message string
}

// markUnreadable makes n Unreadable.
func (n *Node) markUnreadable(at Position, message string) {
	n.Kind = Unreadable
	n.problems = append(n.problems, nodeFlaw{at, message})
}

// A Member is one field of an object, in the document's order. Names may repeat.
type Member struct {
	Name  string
	At    Position
	Value *Node
}

// Get returns the first member called name, or nil.
func (n *Node) Get(name string) *Node {
	if n == nil {
		return nil
	}
	for _, m := range n.Members {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// TextOf returns the value of the member called name, "" if it does not exist.
func (n *Node) TextOf(name string) string {
	if v := n.Get(name); v != nil {
		return v.Value
	}
	return ""
}

// TextsOf returns the items of the list called name, or a text in its place.
func (n *Node) TextsOf(name string) []string {
	v := n.Get(name)
	switch {
	case v == nil:
		return nil
	case v.IsWord():
		return []string{v.Value}
	}
	words := make([]string, len(v.Items))
	for i, item := range v.Items {
		words[i] = item.Value
	}
	return words
}

// describeNode describes n for messages.
func (n *Node) describeNode() string {
	switch n.Kind {
	case Object:
		return "an object"
	case List:
		return "a list"
	case Text:
		return "the text " + Quote(n.Value)
	case Number:
		return "the number " + clipDigits(n.Value)
	case Boolean:
		return "the boolean " + n.Value
	case Null:
		return "null"
	default:
		return Quote(n.Value)
	}
}

// JoinName returns the path of the member called name of the object at path.
func JoinName(path, name string) string {
	if !plainName.MatchString(name) {
		return path + "[" + Quote(name) + "]"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// JoinIndex returns the path of item i of the list at path.
func JoinIndex(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// String returns n for people: "name: value" in a line for each field, other objects and
// lists in one line with commas, texts unquoted. It is not longer than n in the document.
func (n *Node) String() string {
	if n.Kind != Object {
		return n.inlineText()
	}
	var b strings.Builder
	for _, m := range n.Members {
		b.WriteString(m.Name + ": " + m.Value.inlineText() + "\n")
	}
	return b.String()
}

func (n *Node) inlineText() string {
	var words []string
	switch n.Kind {
	case Object:
		for _, m := range n.Members {
			words = append(words, m.Name+":"+m.Value.inlineText())
		}
		return "{" + strings.Join(words, ",") + "}"
	case List:
		for _, item := range n.Items {
			words = append(words, item.inlineText())
		}
		return "[" + strings.Join(words, ",") + "]"
	}
	return n.Value
}

// EncodeJSON encodes a checked node.
func (n *Node) EncodeJSON() json.RawMessage {
	var b bytes.Buffer
	n.writeJSON(&b)
	return b.Bytes()
}

func (n *Node) writeJSON(b *bytes.Buffer) {
	switch n.Kind {
	case Object:
		b.WriteByte('{')
		for i, m := range n.Members {
			if i > 0 {
				b.WriteByte(',')
			}
			(&Node{Kind: Text, Value: m.Name}).writeJSON(b)
			b.WriteByte(':')
			m.Value.writeJSON(b)
		}
		b.WriteByte('}')
	case List:
		b.WriteByte('[')
		for i, item := range n.Items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.writeJSON(b)
		}
		b.WriteByte(']')
	case Text:
		quoted, err := json.Marshal(n.Value)
		if err != nil {
			panic("document: internal error: a text cannot be written: " + err.Error())
		}
		b.Write(quoted)
	default:
		b.WriteString(n.Value)
	}
}
