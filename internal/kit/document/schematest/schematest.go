// SPDX-License-Identifier: Apache-2.0

// Package schematest prints the JSON Schema of a document's shape. It is for tests only, which
// compare it with the published one.
package schematest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/fumehood/fumehood/internal/kit/document"
)

// Print returns the JSON Schema (2020-12) of documents of shape s, with the address id.
// It accepts every document that document.Check accepts. It also accepts what a schema cannot
// express: it counts bytes as characters, does not check for repeated names, and runs no
// Valid.
func Print(s *document.Shape, id, title, doc string) []byte {
	root := schemaOf(s)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = id
	root["title"] = title
	root["description"] = doc
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil {
		panic("schematest: internal error: the schema cannot be written: " + err.Error())
	}
	return escapeNonASCII(b.String())
}

type schema = map[string]any

func schemaOf(s *document.Shape) schema {
	out := schema{}
	if s.Doc != "" {
		out["description"] = s.Doc
	}
	switch s.Kind {
	case document.Object:
		objectSchema(out, s)
	case document.List:
		listSchema(out, s)
	case document.Text:
		textSchema(out, s)
	case document.Number:
		numberSchema(out, s)
	case document.Boolean:
		out["type"] = "boolean"
	}
	if s.Or != nil {
		out = eitherSchema(out, s.Or)
	}
	if s.Blank {
		out = orBlank(out, s.Kind)
	}
	return out
}

// orBlank returns a schema that accepts one, null, and the empty value of a kind.
func orBlank(one schema, kind document.Kind) schema {
	doc := one["description"]
	delete(one, "description")
	blank := []any{nil}
	switch kind {
	case document.Text:
		blank = append(blank, "")
	case document.List:
		blank = append(blank, []any{})
	case document.Object:
		blank = append(blank, schema{})
	}
	anyOf, nested := one["anyOf"].([]schema)
	if !nested {
		anyOf = []schema{one}
	}
	out := schema{"anyOf": append(anyOf, schema{"enum": blank})}
	if doc != nil {
		out["description"] = doc
	}
	return out
}

// eitherSchema returns a schema that accepts one, or a value of the shape or.
func eitherSchema(one schema, or *document.Shape) schema {
	doc := one["description"]
	delete(one, "description")
	return schema{"description": doc, "anyOf": []schema{one, schemaOf(or)}}
}

func objectSchema(out schema, s *document.Shape) {
	out["type"] = "object"
	out["minProperties"] = 1
	if s.Fields == nil {
		out["maxProperties"] = s.Max
		out["propertyNames"] = schemaOf(s.Names)
		out["additionalProperties"] = schemaOf(s.Values)
		return
	}
	properties, required := schema{}, []string{}
	for _, f := range s.Fields {
		properties[f.Name] = schemaOf(f.Shape)
		if f.Required {
			required = append(required, f.Name)
		}
	}
	out["properties"] = properties
	out["additionalProperties"] = false
	if len(required) > 0 {
		out["required"] = required
	}
	if s.Extra != nil {
		s.Extra(out)
	}
}

func listSchema(out schema, s *document.Shape) {
	out["type"] = "array"
	out["minItems"] = 1
	out["maxItems"] = s.Max
	out["items"] = schemaOf(s.Items)
	if s.First != nil {
		out["prefixItems"] = []schema{schemaOf(s.First)}
	}
	if s.Once {
		out["uniqueItems"] = true
	}
}

func textSchema(out schema, s *document.Shape) {
	out["type"] = "string"
	if s.Scalar {
		out["type"] = []string{"string", "number", "boolean"}
	}
	switch {
	case len(s.Choice) == 1:
		out["const"] = s.Choice[0]
		return
	case s.Choice != nil:
		out["enum"] = s.Choice
		return
	}
	out["maxLength"] = s.Max
	if !s.Empty {
		out["minLength"] = 1
	}
	out["pattern"] = visiblePattern(s.Lines)
	if s.Pattern != nil {
		out["pattern"] = s.Pattern.String()
	}
	if s.Never != nil {
		out["not"] = schema{"pattern": s.Never.String()}
	}
}

func numberSchema(out schema, s *document.Shape) {
	out["type"] = "number"
	if s.Integer {
		out["type"] = "integer"
	}
	out["minimum"] = s.Low
	out["maximum"] = s.High
}

// visiblePattern returns the pattern of texts without hidden characters. It contains
// them literally, since \u means different things to different regexp engines.
func visiblePattern(lines bool) string {
	var b strings.Builder
	b.WriteString("^[^")
	for _, r := range document.Hidden.R16 {
		writeRange(&b, rune(r.Lo), rune(r.Hi))
	}
	for _, r := range document.Hidden.R32 {
		writeRange(&b, rune(r.Lo), rune(r.Hi))
	}
	if !lines {
		b.WriteString(`\t\n`)
	}
	b.WriteString("]*$")
	return b.String()
}

func writeRange(b *strings.Builder, low, high rune) {
	b.WriteRune(low)
	if high > low {
		b.WriteByte('-')
		b.WriteRune(high)
	}
}

// escapeNonASCII escapes non-ASCII characters in a JSON text, so that nothing in the file
// is hidden from its reader.
func escapeNonASCII(text string) []byte {
	var b bytes.Buffer
	for _, r := range text {
		switch {
		case r <= unicode.MaxASCII && r != 0x7f:
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}
