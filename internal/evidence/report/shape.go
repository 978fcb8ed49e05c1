// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/internal/kit/valid"
	"github.com/fumehood/fumehood/internal/watch/hosts"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The limits of a document. Texts and lists without an entry in textBounds or
// listBounds have the limits maxText and maxList.
const (
	maxDepth = 16
	maxText  = 64 << 10
	maxList  = 20000
)

var (
	textBounds = map[string]int{"stdin": 1 << 20, "code": 256 << 10, "canonical": 1 << 20, "value": 256 << 10,
		"head": 2 << 20, "tail": 2 << 20, "text": 1 << 20}
	listBounds = map[string]int{"records": 400, // a plan's proposals and set-up
		"commands": 256, "problems": valid.MaxInvalid, "needs": 200, "enforced": 200, "not_enforced": 200,
		"programs": 256, "execs": 200, "notable": 200, "findings": 2000, "same": 64,
		"toolchains": 64, "unmet_toolchains": 8, "go_modules": valid.MaxGoModules, "network": 200, "rows": hosts.Max, "calls": 16, "redacted": 400}
)

// A shaper walks a document along with the Go type to decode it into. encoding/json
// by itself accepts duplicate names, names in any case, and missing fields.
type shaper struct {
	data []byte
	dec  *json.Decoder
	want string // the path whose position is wanted, or ""
	at   int64  // its position
}

// checkShape checks data against the types of a Report.
func checkShape(data []byte) error {
	if !utf8.Valid(data) {
		return malformedError("", "is not UTF-8")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		at := ""
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			at = "the report, " + formatPosition(data, syntax.Offset)
		}
		return malformedError(at, "is not JSON: "+text.Inline(err.Error(), 200))
	}
	w := newShaper(data)
	return w.checkValue(reflect.TypeFor[proposal.Report](), "", 0)
}

// locatePath returns path with its position in a document that checkShape accepted.
func locatePath(data []byte, path string) string {
	w := newShaper(data)
	w.want = path
	_ = w.checkValue(reflect.TypeFor[proposal.Report](), "", 0)
	return path + ", " + formatPosition(data, w.at)
}

func newShaper(data []byte) *shaper {
	w := &shaper{data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	w.dec.UseNumber()
	return w
}

// formatPosition formats the position of an offset in data.
func formatPosition(data []byte, offset int64) string {
	before := data[:max(0, min(offset, int64(len(data))))]
	line := bytes.Count(before, []byte("\n"))
	return fmt.Sprintf("line %d, column %d:", line+1, len(before)-bytes.LastIndexByte(before, '\n'))
}

func (w *shaper) failAt(path, format string, args ...any) error {
	at := formatPosition(w.data, w.dec.InputOffset())
	if path != "" {
		at = path + ", " + at
	}
	return malformedError(at, fmt.Sprintf(format, args...))
}

// nextToken returns the next token of a document that is known to be valid JSON.
func (w *shaper) nextToken() json.Token {
	token, err := w.dec.Token()
	if err != nil {
		panic("report: internal error: valid JSON has no next token: " + err.Error())
	}
	return token
}

var (
	textType  = reflect.TypeFor[encoding.TextUnmarshaler]()
	timeType  = reflect.TypeFor[time.Time]()
	bytesType = reflect.TypeFor[[]byte]()
)

// checkValue walks one value that will be decoded into a t.
func (w *shaper) checkValue(t reflect.Type, path string, depth int) error {
	token := w.nextToken()
	if path == w.want {
		w.at = w.dec.InputOffset()
	}
	if t.Kind() == reflect.Pointer {
		if token == nil {
			return nil
		}
		t = t.Elem()
	}
	if depth > maxDepth {
		return w.failAt(path, "is nested more than %d levels deep", maxDepth)
	}
	if token == nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Map) {
		return nil
	}
	if reflect.PointerTo(t).Implements(textType) || t == timeType || t == bytesType || t.Kind() == reflect.String {
		return w.checkText(t, token, path)
	}
	switch open, _ := token.(json.Delim); {
	case t.Kind() == reflect.Struct && open == '{':
		return w.checkObject(t, path, depth)
	case t.Kind() == reflect.Map && open == '{':
		return w.checkTable(t, path, depth)
	case t.Kind() == reflect.Slice && open == '[':
		return w.checkList(t, path, depth)
	}
	return w.checkScalar(t, token, path)
}

// lastField is the last name of a path, without an index.
func lastField(path string) string {
	name := path[strings.LastIndexByte(path, '.')+1:]
	name, _, _ = strings.Cut(name, "[")
	return name
}

func (w *shaper) checkText(t reflect.Type, token json.Token, path string) error {
	s, ok := token.(string)
	if !ok {
		return w.failAt(path, "is not a string")
	}
	max, named := textBounds[lastField(path)]
	if !named {
		max = maxText
	}
	if len(s) > max {
		return w.failAt(path, "has %s, more than %s", text.Size(int64(len(s))), text.FormatCount(int64(max)))
	}
	if t.Kind() == reflect.String {
		return nil
	}
	if t == bytesType {
		if _, err := base64.StdEncoding.Strict().DecodeString(s); err != nil {
			return w.failAt(path, "is not base64")
		}
		return nil
	}
	if err := reflect.New(t).Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s)); err != nil {
		return w.failAt(path, "is not one of the allowed values")
	}
	return nil
}

func (w *shaper) checkScalar(t reflect.Type, token json.Token, path string) error {
	ok := false
	switch t.Kind() {
	case reflect.Bool:
		_, ok = token.(bool)
	case reflect.Int, reflect.Int64:
		n, isNumber := token.(json.Number)
		_, err := n.Int64()
		ok = isNumber && err == nil
	case reflect.Float64:
		n, isNumber := token.(json.Number)
		_, err := n.Float64()
		ok = isNumber && err == nil
	}
	if !ok {
		return w.failAt(path, "has the wrong type")
	}
	return nil
}

func (w *shaper) checkList(t reflect.Type, path string, depth int) error {
	max, named := listBounds[lastField(path)]
	if !named {
		max = maxList
	}
	for i := 0; w.dec.More(); i++ {
		if i == max {
			return w.failAt(path, "has more than %s items", text.FormatCount(int64(max)))
		}
		if err := w.checkValue(t.Elem(), fmt.Sprintf("%s[%d]", path, i), depth+1); err != nil {
			return err
		}
	}
	w.nextToken()
	return nil
}

// checkTable walks an object with arbitrary names.
func (w *shaper) checkTable(t reflect.Type, path string, depth int) error {
	seen := map[string]bool{}
	for w.dec.More() {
		name := w.nextToken().(string)
		if seen[name] || len(seen) == 1000 || len(name) > 1000 {
			return w.failAt(path, "has a duplicate name, too many names or a name that is too long")
		}
		seen[name] = true
		if err := w.checkValue(t.Elem(), path+"."+plainKey(name), depth+1); err != nil {
			return err
		}
	}
	w.nextToken()
	return nil
}

// checkObject walks an object that will be decoded into the struct t.
func (w *shaper) checkObject(t reflect.Type, path string, depth int) error {
	fields := fieldsOf(t)
	seen := map[string]bool{}
	for w.dec.More() {
		name := w.nextToken().(string)
		f, known := fields[name]
		if !known {
			return w.failAt(path, "has the unknown field %s", plainKey(name))
		}
		if seen[name] {
			return w.failAt(path, "has the field %s twice", name)
		}
		seen[name] = true
		if err := w.checkValue(f.Type, strings.TrimPrefix(path+"."+name, "."), depth+1); err != nil {
			return err
		}
	}
	w.nextToken()
	for name, f := range fields {
		tag := f.Tag.Get("json")
		if !seen[name] && !strings.HasSuffix(tag, ",omitempty") && !strings.HasSuffix(tag, ",omitzero") {
			return w.failAt(path, "lacks the field %s", name)
		}
	}
	return nil
}

func fieldsOf(t reflect.Type) map[string]reflect.StructField {
	fields := map[string]reflect.StructField{}
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "-" {
			fields[name] = f
		}
	}
	return fields
}

// plainKey makes an untrusted name safe for a message.
func plainKey(name string) string { return text.Inline(fmt.Sprintf("%q", name), 60) }
