// SPDX-License-Identifier: Apache-2.0

package action

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	// MaxEvent is the maximum size of a payload in bytes, as on GitHub.
	MaxEvent = 25 << 20

	maxDepth = 32   // GitHub's payloads are at most 7 deep
	maxKeys  = 2000 // in one object; GitHub's have at most about 120
)

// A kind is the type of a value of the payload.
type kind int

const (
	absent kind = iota
	null
	boolean
	number
	str
	object
	list
)

type value struct {
	kind kind
	text string // of a string, or of a number or boolean as written
	at   int64  // the offset at which it begins
}

// A payload holds the values of an event that are used, by their path.
//
// It does not use json.Unmarshal into structs, because that accepts names in any case and
// the last of two equal names: another program could then read the document differently.
type payload struct {
	data   []byte
	values map[string]value
	err    error // the first error
}

// readPayload walks data once. Every object is checked, including those that are
// not used; only the values in wanted are kept.
func readPayload(data []byte, wanted map[string]bool) *payload {
	p := &payload{data: data, values: map[string]value{}}
	switch {
	case len(data) > MaxEvent:
		p.recordError(0, "has %d bytes, more than GitHub sends", len(data))
		return p
	case !utf8.Valid(data):
		p.recordError(int64(invalidUTF8(data)), "is not UTF-8")
		return p
	}
	if err := validJSON(data); err != nil {
		p.recordError(syntaxOffset(err), "is not JSON: %v", err)
		return p
	}
	w := walker{payload: p, decoder: json.NewDecoder(bytes.NewReader(data)), wanted: wanted}
	w.decoder.UseNumber()
	if v := w.readValue("", true, 1); v.kind != object && p.err == nil {
		p.recordError(0, "is not a JSON object")
	}
	return p
}

// validJSON checks the grammar of the whole document, so that the walk need not.
func validJSON(data []byte) error {
	var whole json.RawMessage
	return json.Unmarshal(data, &whole)
}

func syntaxOffset(err error) int64 {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) && syntax.Offset > 0 {
		return syntax.Offset - 1 // Offset counts the invalid byte
	}
	return 0
}

func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(data)
}

// recordError records an error at an offset, unless there was one before.
func (p *payload) recordError(at int64, format string, args ...any) {
	if p.err != nil {
		return
	}
	before := p.data[:min(max(at, 0), int64(len(p.data)))]
	line := bytes.Count(before, []byte("\n")) + 1
	col := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	p.err = &proposal.StopError{Code: "event.malformed",
		Message: fmt.Sprintf("the event's payload %s (line %d, column %d)", fmt.Sprintf(format, args...), line, col),
		Hint:    "GITHUB_EVENT_PATH must be the file that the runner wrote"}
}

// A walker reads the tokens of a document that is known to be valid JSON.
type walker struct {
	payload *payload
	decoder *json.Decoder
	wanted  map[string]bool
}

// nextToken returns the next token and its offset.
func (w *walker) nextToken() (json.Token, int64) {
	start := w.decoder.InputOffset()
	for start < int64(len(w.payload.data)) && strings.IndexByte(" \t\r\n,:", w.payload.data[start]) >= 0 {
		start++
	}
	token, err := w.decoder.Token()
	if err != nil {
		panic("action: internal error: valid JSON has no next token: " + err.Error())
	}
	return token, start
}

// readValue reads one value. used says whether path is wanted or leads to a wanted value.
func (w *walker) readValue(path string, used bool, depth int) value {
	token, at := w.nextToken()
	v := value{at: at}
	switch token := token.(type) {
	case json.Delim:
		if depth > maxDepth {
			w.payload.recordError(at, "is nested more than %d deep", maxDepth)
			return v
		}
		if v.kind = list; token == '{' {
			v.kind = object
		}
		w.readMembers(v.kind, path, used, depth)
	case string:
		v.kind, v.text = str, token
	case json.Number:
		v.kind, v.text = number, token.String()
	case bool:
		v.kind, v.text = boolean, fmt.Sprint(token)
	default:
		v.kind = null
	}
	if used && w.payload.err == nil && path != "" {
		w.payload.values[path] = v
	}
	return v
}

// readMembers reads the text between two brackets, including the closing one. It returns
// early after an error; then nothing more is read.
func (w *walker) readMembers(k kind, path string, used bool, depth int) {
	seen := map[string]bool{}
	for w.payload.err == nil && w.decoder.More() {
		if k == list {
			w.readValue("", false, depth+1)
			continue
		}
		token, at := w.nextToken()
		name := token.(string)
		if seen[name] {
			w.payload.recordError(at, "has the name %s twice in one object", quoteUntrusted(name))
			return
		}
		if seen[name] = true; len(seen) > maxKeys {
			w.payload.recordError(at, "has an object of more than %d names", maxKeys)
			return
		}
		child, ours := w.memberPath(path, name, used)
		w.readValue(child, ours, depth+1)
	}
	if w.payload.err == nil {
		w.nextToken()
	}
}

// memberPath returns the path of a member and whether it is used. A name with a dot is
// never part of a wanted path.
func (w *walker) memberPath(path, name string, used bool) (string, bool) {
	if !used {
		return "", false
	}
	if path == "inputs" {
		return "inputs." + name, true
	}
	if strings.Contains(name, ".") {
		return "", false
	}
	if path != "" {
		name = path + "." + name
	}
	return name, w.wanted[name]
}
