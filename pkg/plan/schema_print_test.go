// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// SchemaID names the published schema.
const SchemaID = "https://github.com/fumehood/fumehood/raw/main/testdata/schema/fumehood.plan.v1.json"

// Schema returns the JSON Schema (2020-12) of plans, generated from the table
// that Decode uses. It is the file testdata/schema/fumehood.plan.v1.json.
//
// It accepts every plan that Decode accepts. It also accepts what a schema cannot
// express: it counts bytes as characters, and does not check for repeated names,
// repeated ids, the targets of needs, and fields that contradict each other.
func Schema() []byte {
	return printSchema(&planShape, SchemaID, proposal.PlanSchema,
		"A plan: what an AI proposes to run. Decode checks more than a schema can: lengths are in bytes, ids are unique, needs name earlier ids.")
}

// CasesSchema returns the JSON Schema (2020-12) of cases, printed from the table that
// DecodeCases uses. It is the file testdata/schema/fumehood.cases.v1.json.
func CasesSchema() []byte {
	return printSchema(&casesShape, CasesSchemaID, proposal.CasesSchema,
		"Test cases of a policy. DecodeCases checks more than a schema can: names are unique, and each case has one thing to decide.")
}

func printSchema(s *shape, id, title, doc string) []byte {
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
		panic("plan: internal error: the schema cannot be written: " + err.Error())
	}
	return ascii(b.String())
}

type schema = map[string]any

func schemaOf(s *shape) schema {
	out := schema{}
	if s.doc != "" {
		out["description"] = s.doc
	}
	switch s.kind {
	case object:
		objectSchema(out, s)
	case list:
		listSchema(out, s)
	case text:
		textSchema(out, s)
	case number:
		numberSchema(out, s)
	case boolean:
		out["type"] = "boolean"
	}
	if s.orText != nil {
		return either(out, s.orText)
	}
	return out
}

// either returns a schema that accepts one, or a text of the shape orText.
func either(one schema, orText *shape) schema {
	doc := one["description"]
	delete(one, "description")
	return schema{"description": doc, "anyOf": []schema{one, schemaOf(orText)}}
}

func objectSchema(out schema, s *shape) {
	out["type"] = "object"
	out["minProperties"] = 1
	if s.fields == nil {
		out["maxProperties"] = s.max
		out["propertyNames"] = schemaOf(s.names)
		out["additionalProperties"] = schemaOf(s.values)
		return
	}
	properties, required := schema{}, []string{}
	for _, f := range s.fields {
		property := schemaOf(f.shape)
		if replaced[f.name] != "" {
			property["deprecated"] = true
		}
		properties[f.name] = property
		if f.required {
			required = append(required, f.name)
		}
	}
	out["properties"] = properties
	out["additionalProperties"] = false
	if len(required) > 0 {
		out["required"] = required
	}
	if s == &proposalShape {
		out["oneOf"] = []schema{{"required": []string{"run"}}, {"required": []string{"argv"}}, {"required": []string{"code"}}}
		out["dependentRequired"] = map[string][]string{"code": {"language"}, "language": {"code"}}
	}
}

func listSchema(out schema, s *shape) {
	out["type"] = "array"
	out["minItems"] = 1
	out["maxItems"] = s.max
	out["items"] = schemaOf(s.items)
	if s.first != nil {
		out["prefixItems"] = []schema{schemaOf(s.first)}
	}
	if s.once {
		out["uniqueItems"] = true
	}
}

func textSchema(out schema, s *shape) {
	out["type"] = "string"
	switch {
	case len(s.choice) == 1:
		out["const"] = s.choice[0]
		return
	case s.choice != nil:
		out["enum"] = s.choice
		return
	}
	out["maxLength"] = s.max
	if !s.empty {
		out["minLength"] = 1
	}
	out["pattern"] = visible(s.lines)
	if s.pattern != nil {
		out["pattern"] = s.pattern.String()
	}
	if s.never != nil {
		out["not"] = schema{"pattern": s.never.String()}
	}
}

func numberSchema(out schema, s *shape) {
	out["type"] = "number"
	if s.integer {
		out["type"] = "integer"
	}
	out["minimum"] = s.low
	out["maximum"] = s.high
}

// visible returns the pattern of texts without hidden characters. It contains
// them literally, since \u means different things to different regexp engines.
func visible(lines bool) string {
	var b strings.Builder
	b.WriteString("^[^")
	for _, r := range hidden.R16 {
		writeRange(&b, rune(r.Lo), rune(r.Hi))
	}
	for _, r := range hidden.R32 {
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

// ascii escapes non-ASCII characters in a JSON text, so that nothing in the file
// is hidden from its reader.
func ascii(text string) []byte {
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
