// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds nesting, so that hostile text cannot exhaust the stack.
const maxDepth = 100

// encodeBody returns v's canonical JSON as an entry's body, which is one level deep in the entry.
func encodeBody(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	c := canonicaler{in: buf.Bytes(), depth: 1}
	return c.writeAll(make([]byte, 0, buf.Len()))
}

// A canonicaler reads one JSON text and appends its canonical form, as the package comment
// defines it. Text without one (invalid JSON or UTF-8, repeated names, integers that a double
// cannot hold, too deep) is an error with the byte offset.
type canonicaler struct {
	in    []byte
	at    int
	depth int
	spare []byte // reused to sort members
}

func (c *canonicaler) writeAll(out []byte) ([]byte, error) {
	out, err := c.writeValue(out)
	if err != nil {
		return nil, err
	}
	if c.skipSpace(); c.at != len(c.in) {
		return nil, c.syntaxError("text after the value")
	}
	return out, nil
}

func (c *canonicaler) syntaxError(what string) error {
	return fmt.Errorf("invalid JSON at byte %d: %s", c.at, what)
}

func (c *canonicaler) skipSpace() {
	for c.at < len(c.in) && strings.IndexByte(" \t\r\n", c.in[c.at]) >= 0 {
		c.at++
	}
}

// peekByte skips white space and returns the byte there, 0 at the end.
func (c *canonicaler) peekByte() byte {
	c.skipSpace()
	if c.at == len(c.in) {
		return 0
	}
	return c.in[c.at]
}

func (c *canonicaler) writeValue(out []byte) ([]byte, error) {
	switch b := c.peekByte(); {
	case b == '{':
		return c.writeNested(out, c.writeObject)
	case b == '[':
		return c.writeNested(out, c.writeArray)
	case b == '"':
		return c.writeString(out)
	case b == '-' || '0' <= b && b <= '9':
		return c.writeNumber(out)
	}
	for _, word := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(c.in[c.at:], []byte(word)) {
			c.at += len(word)
			return append(out, word...), nil
		}
	}
	return nil, c.syntaxError("no value")
}

func (c *canonicaler) writeNested(out []byte, read func([]byte) ([]byte, error)) ([]byte, error) {
	if c.depth++; c.depth > maxDepth {
		return nil, c.syntaxError("nested too deep")
	}
	c.at++
	out, err := read(out)
	c.depth--
	return out, err
}

func (c *canonicaler) writeArray(out []byte) ([]byte, error) {
	out = append(out, '[')
	if c.peekByte() == ']' {
		c.at++
		return append(out, ']'), nil
	}
	for {
		var err error
		if out, err = c.writeValue(out); err != nil {
			return nil, err
		}
		switch c.peekByte() {
		case ',':
			c.at++
			out = append(out, ',')
		case ']':
			c.at++
			return append(out, ']'), nil
		default:
			return nil, c.syntaxError("want , or ] in an array")
		}
	}
}

// A member is one member of an object in the output: [start, end) holds
// "name":value, and [start, name) the escaped name.
type member struct{ start, name, end int }

func (c *canonicaler) writeObject(out []byte) ([]byte, error) {
	out = append(out, '{')
	if c.peekByte() == '}' {
		c.at++
		return append(out, '}'), nil
	}
	begin := len(out)
	var few [16]member // most objects need no allocation
	members := few[:0]
	for {
		m := member{start: len(out)}
		if c.peekByte() != '"' {
			return nil, c.syntaxError("want a name in an object")
		}
		var err error
		if out, err = c.writeString(out); err != nil {
			return nil, err
		}
		m.name = len(out)
		if c.peekByte() != ':' {
			return nil, c.syntaxError("want : in an object")
		}
		c.at++
		if out, err = c.writeValue(append(out, ':')); err != nil {
			return nil, err
		}
		m.end = len(out)
		members = append(members, m)
		switch c.peekByte() {
		case ',':
			c.at++
			out = append(out, ',')
		case '}':
			c.at++
			return c.sortMembers(append(out, '}'), begin, members)
		default:
			return nil, c.syntaxError("want , or } in an object")
		}
	}
}

// sortMembers sorts the members of the object whose first member begins at out[begin].
func (c *canonicaler) sortMembers(out []byte, begin int, members []member) ([]byte, error) {
	compare := func(a, b member) int {
		return compareNames(out[a.start+1:a.name-1], out[b.start+1:b.name-1])
	}
	sorted := slices.IsSortedFunc(members, compare)
	if !sorted {
		slices.SortFunc(members, compare)
	}
	for i := 1; i < len(members); i++ {
		if compare(members[i-1], members[i]) == 0 {
			return nil, c.syntaxError("a name is repeated in an object")
		}
	}
	if sorted {
		return out, nil
	}
	c.spare = append(c.spare[:0], out[begin:]...)
	out = out[:begin]
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, c.spare[m.start-begin:m.end-begin]...)
	}
	return append(out, '}'), nil
}

// compareNames compares two escaped names by the UTF-16 code units of their unescaped form.
func compareNames(a, b []byte) int {
	if bytes.IndexByte(a, '\\') < 0 && bytes.IndexByte(b, '\\') < 0 && isASCII(a) && isASCII(b) {
		return bytes.Compare(a, b)
	}
	return slices.Compare(utf16Units(a), utf16Units(b))
}

func isASCII(s []byte) bool {
	return !slices.ContainsFunc(s, func(b byte) bool { return b >= utf8.RuneSelf })
}

// utf16Units returns the UTF-16 of a name escaped by str.
func utf16Units(escaped []byte) []uint16 {
	var name string
	quoted := slices.Concat([]byte{'"'}, escaped, []byte{'"'})
	if err := json.Unmarshal(quoted, &name); err != nil {
		panic("audit: internal error: name was not escaped: " + err.Error())
	}
	return utf16.Encode([]rune(name))
}
