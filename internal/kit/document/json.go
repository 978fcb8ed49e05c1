// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/fumehood/fumehood/internal/kit/pattern"
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
	r := jsonReader{data: data, dec: json.NewDecoder(bytes.NewReader(data)), at: Position{1, 1}}
	r.dec.UseNumber()
	return r.readValue(1)
}

// reportJSON reports where and why data is not JSON, in JSON's terms.
func reportJSON(data []byte, err error, ps *Problems) {
	at, message := Position{1, 1}, err.Error()
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		end := int(syntax.Offset)
		if end < len(data) || !strings.HasPrefix(message, "unexpected end") {
			end-- // Offset includes the invalid byte
		}
		end = min(max(end, 0), len(data))
		at = advancePosition(at, data[:end])
		message = explainJSON(data[end:], message)
	}
	ps.Add(at, "", "invalid JSON: %s", message)
}

var (
	jsonWord    = pattern.New(`^[A-Za-z_]{1,24}`)
	jsonWords   = map[string]string{"True": "true", "False": "false", "None": "null", "undefined": "null"}
	jsonControl = strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`)
)

// explainJSON says what to change where encoding/json stopped with a message, at rest.
func explainJSON(rest []byte, message string) string {
	next := ""
	if len(rest) > 0 {
		next = string(rest[:1])
	}
	switch {
	case strings.HasSuffix(message, "after top-level value"):
		return "text follows the document: remove it"
	case strings.HasSuffix(message, "in string literal"):
		return fmt.Sprintf("a line break or tab in a text must be written as an escape such as %s",
			jsonControl.Replace(next))
	case strings.Contains(message, "escape"):
		return `a backslash in a text must be written as \\`
	case strings.HasPrefix(message, "unexpected end"):
		return "the document ends before its last text, list or object does"
	case strings.Contains(message, " after "):
		return `a comma or the end of a list or object is expected here; a quote in a text must be written as \"`
	case next == "}" || next == "]":
		return "a comma is before " + next + ": remove the comma"
	case next == "/" || next == "#":
		return "comments are not allowed: remove them"
	case next == "'" || next == "`":
		return "texts and names must be in double quotes, not in " + next
	case jsonWord.MatchString(string(rest)) && jsonWords[jsonWord.FindString(string(rest))] != "":
		word := jsonWord.FindString(string(rest))
		return fmt.Sprintf("%s is not a value of JSON: write %s", word, jsonWords[word])
	case jsonWord.MatchString(string(rest)):
		return fmt.Sprintf("%s is not a value of JSON: quote it if it is meant as text",
			jsonWord.FindString(string(rest)))
	}
	return message
}

func advancePosition(at Position, data []byte) Position {
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		at = at.advanceBy(r)
		data = data[size:]
	}
	return at
}

// jsonReader walks the tokens of a document whose grammar was checked.
type jsonReader struct {
	data []byte
	dec  *json.Decoder
	done int      // data[:done] is consumed,
	at   Position // and this is the Position of data[done]
}

// nextToken returns the next token, its bytes and where it begins.
func (r *jsonReader) nextToken() (json.Token, []byte, Position) {
	token, err := r.dec.Token()
	if err != nil {
		panic("document: internal error: valid JSON has no next token: " + err.Error())
	}
	end := int(r.dec.InputOffset())
	start := r.done
	for strings.IndexByte(" \t\r\n,:", r.data[start]) >= 0 {
		start++
	}
	at := advancePosition(r.at, r.data[r.done:start])
	r.at, r.done = advancePosition(at, r.data[start:end]), end
	return token, r.data[start:end], at
}

func (r *jsonReader) readValue(depth int) *Node {
	token, raw, at := r.nextToken()
	n := &Node{At: at, Value: string(raw)}
	switch token := token.(type) {
	case json.Delim:
		n.Value = ""
		r.readContainer(n, token, depth)
	case string:
		n.Kind, n.Value = Text, token
		if loneSurrogate(raw) {
			n.markUnreadable(at, "contains half of a surrogate pair, which is not a character")
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

// readContainer reads everything between open and its closing bracket.
func (r *jsonReader) readContainer(n *Node, open json.Delim, depth int) {
	if depth > MaxDepth {
		n.markUnreadable(n.At, fmt.Sprintf("is nested more than %d levels deep", MaxDepth))
		r.skipBracket()
		return
	}
	n.Kind = List
	if open == '{' {
		n.Kind = Object
	}
	for r.dec.More() {
		if n.Kind == List {
			n.Items = append(n.Items, r.readValue(depth+1))
			continue
		}
		key, raw, at := r.nextToken()
		m := Member{Name: key.(string), At: at}
		m.Value = r.readValue(depth + 1)
		if loneSurrogate(raw) {
			m.Value.markUnreadable(at, "this name contains half of a surrogate pair, which is not a character")
		}
		n.Members = append(n.Members, m)
	}
	r.nextToken() // the closing bracket
}

// skipBracket skips the rest of an open bracket.
func (r *jsonReader) skipBracket() {
	for open := 1; open > 0; {
		token, _, _ := r.nextToken()
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
		class := classifyEscape(raw, m)
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

type surrogateHalf int

const (
	noHalf surrogateHalf = iota
	highHalf
	lowHalf
)

// classifyEscape classes the escape at m, a match of jsonEscape.
func classifyEscape(raw []byte, m []int) surrogateHalf {
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
