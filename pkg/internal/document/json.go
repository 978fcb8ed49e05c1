// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/fumehood/fumehood/pkg/internal/pattern"
)

// readJSON parses one JSON document into a tree. encoding/json checks the grammar
// first. The tokens are then walked a second time with their positions, because
// encoding/json neither reports a value's position nor detects a repeated name.
func readJSON(data []byte, ps *Problems) *Node {
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		reportJSON(data, err, ps)
		return nil
	}
	r := jsonReader{data: data, dec: json.NewDecoder(bytes.NewReader(data)), at: Position{1, 1}, problems: ps}
	r.dec.UseNumber()
	return r.value("", 1)
}

func reportJSON(data []byte, err error, ps *Problems) {
	at, message := Position{1, 1}, err.Error()
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		end := int(syntax.Offset)
		if end < len(data) || !strings.HasPrefix(message, "unexpected end") {
			end-- // Offset includes the invalid byte
		}
		at = advance(at, data[:min(max(end, 0), len(data))])
	}
	ps.Add(at, "", "invalid JSON: %s", message)
}

func advance(at Position, data []byte) Position {
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		at = at.after(r)
		data = data[size:]
	}
	return at
}

// jsonReader walks the tokens of a document whose grammar was checked.
type jsonReader struct {
	data     []byte
	dec      *json.Decoder
	done     int      // data[:done] is consumed,
	at       Position // and this is the Position of data[done]
	problems *Problems
}

// next returns the next token, its bytes and where it begins.
func (r *jsonReader) next() (json.Token, []byte, Position) {
	token, err := r.dec.Token()
	if err != nil {
		panic("document: internal error: valid JSON has no next token: " + err.Error())
	}
	end := int(r.dec.InputOffset())
	start := r.done
	for strings.IndexByte(" \t\r\n,:", r.data[start]) >= 0 {
		start++
	}
	at := advance(r.at, r.data[r.done:start])
	r.at, r.done = advance(at, r.data[start:end]), end
	return token, r.data[start:end], at
}

func (r *jsonReader) value(path string, depth int) *Node {
	token, raw, at := r.next()
	n := &Node{At: at, Value: string(raw)}
	switch token := token.(type) {
	case json.Delim:
		n.Value = ""
		r.collect(n, token, path, depth)
	case string:
		n.Kind, n.Value = Text, token
		if loneSurrogate(raw) {
			n.Kind = Unreadable
			r.problems.Add(at, path, "contains half of a surrogate pair, which is not a character")
		}
	case json.Number:
		n.Kind = Number
	case bool:
		n.Kind = Boolean
	default:
		n.Kind = Null
	}
	return n
}

// collect reads everything between open and its closing bracket.
func (r *jsonReader) collect(n *Node, open json.Delim, path string, depth int) {
	if depth > MaxDepth {
		r.problems.Add(n.At, path, "is nested more than %d levels deep", MaxDepth)
		r.skip()
		return
	}
	n.Kind = List
	if open == '{' {
		n.Kind = Object
	}
	for r.dec.More() {
		if n.Kind == List {
			n.Items = append(n.Items, r.value(JoinIndex(path, len(n.Items)), depth+1))
			continue
		}
		key, raw, at := r.next()
		m := Member{Name: key.(string), At: at}
		path := JoinName(path, m.Name)
		if loneSurrogate(raw) {
			r.problems.Add(at, path, "this name contains half of a surrogate pair, which is not a character")
		}
		m.Value = r.value(path, depth+1)
		n.Members = append(n.Members, m)
	}
	r.next() // the closing bracket
}

// skip skips the rest of an open bracket.
func (r *jsonReader) skip() {
	for open := 1; open > 0; {
		token, _, _ := r.next()
		switch token {
		case json.Delim('{'), json.Delim('['):
			open++
		case json.Delim('}'), json.Delim(']'):
			open--
		}
	}
}

var jsonEscape = pattern.New(`\\(?:u([0-9a-fA-F]{4})|.)`)

// loneSurrogate reports whether a JSON string escapes a surrogate without its other
// half, which encoding/json silently replaces with U+FFFD.
func loneSurrogate(raw []byte) bool {
	if !bytes.Contains(raw, []byte(`\u`)) {
		return false
	}
	high := -1 // where the other half must begin
	for _, m := range jsonEscape.FindAllSubmatchIndex(raw, -1) {
		class := surrogate(raw, m)
		if (class == lowHalf) != (high == m[0]) {
			return true
		}
		if high >= 0 && high != m[0] {
			return true
		}
		high = -1
		if class == highHalf {
			high = m[1]
		}
	}
	return high >= 0
}

type half int

const (
	noHalf half = iota
	highHalf
	lowHalf
)

// surrogate classes the escape at m, a match of jsonEscape.
func surrogate(raw []byte, m []int) half {
	if m[2] < 0 {
		return noHalf
	}
	switch digits := strings.ToLower(string(raw[m[2]:m[3]])); {
	case digits >= "d800" && digits <= "dbff":
		return highHalf
	case digits >= "dc00" && digits <= "dfff":
		return lowHalf
	}
	return noHalf
}
