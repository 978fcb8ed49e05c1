// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Document is one input that Decide evaluates at a decision point.
type Document struct {
	Point   string
	Command int // index into Analysis.Commands; -1 for the proposal itself
	Input   ast.Value
}

// Documents are the inputs that Decide evaluates for p, whose analysis is a: first that of
// fumehood.proposal, then one for each command.
func (e *Engine) Documents(p proposal.Proposal, a proposal.Analysis) []Document {
	shared := termOf(reflect.ValueOf(e.proposalInput(p, a)))
	all := []Document{{module.PointProposal, whole, e.commandDocument(shared, commandInput{})}}
	for _, in := range e.describeCommands(p, a) {
		all = append(all, Document{module.PointCommand, in.Index, e.commandDocument(shared, in)})
	}
	return all
}

// InputField checks a path below input at point. It returns the first part that no input
// has, and the names that would be valid there, or "" if the path is valid.
func InputField(point string, path []string) (wrong string, known []string) {
	document := documentOf(point)
	for _, part := range path {
		for document.Kind() == reflect.Slice {
			return "", nil // an index
		}
		if document.Kind() != reflect.Struct {
			return part, nil
		}
		field, ok := module.FieldOf(document, part)
		if !ok {
			return part, module.FieldNames(document)
		}
		document = field
	}
	return "", nil
}

// Inputs are the documents that Decide evaluates for p: those of fumehood.proposal and
// fumehood.command, and one for each snippet.
func (e *Engine) Inputs(p proposal.Proposal, a proposal.Analysis) []Document {
	all := e.Documents(p, a)
	shared := termOf(reflect.ValueOf(e.proposalInput(p, a)))
	for _, s := range a.Snippets {
		command := whole
		if s.Command >= 0 && s.Command < len(a.Commands) {
			command = s.Command
		}
		all = append(all, Document{module.PointSnippet, command, e.snippetDocument(shared, s)})
	}
	return all
}

// InputOf is the document for one trigger, program, step of a connection, event or output;
// ok reports whether v is one of them.
func (e *Engine) InputOf(v any) (doc Document, ok bool) {
	var in any
	switch v := v.(type) {
	case *points.Trigger:
		doc.Point, in = module.PointTrigger, *v
	case *proposal.Exec:
		doc.Point, in = module.PointExec, e.execInput(*v)
	case *proposal.Egress:
		doc.Point, in = module.PointEgress, egressInputOf(*v)
	case *proposal.Event:
		doc.Point, in = module.PointEvent, eventInputOf(*v)
	case *points.Outgoing:
		doc.Point, in = module.PointOutput, outputInputOf(*v)
	default:
		return Document{}, false
	}
	doc.Command, doc.Input = whole, e.newDocument(in)
	return doc, true
}

// JSON is the document as rules see it, its names in order.
func (d Document) JSON() ([]byte, error) {
	v, err := ast.JSON(d.Input)
	if err != nil {
		return nil, module.Stop(module.CodeEval, "cannot encode the input document", hintDefect, err)
	}
	return json.Marshal(v)
}

// NamedJSON is the document as {"POINT": DOCUMENT}, indented.
func (d Document) NamedJSON() ([]byte, error) {
	data, err := d.JSON()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = json.Indent(&b, data, "", "  ")
	return fmt.Appendf(nil, "{%q: %s}", d.Point, b.Bytes()), err
}

// InputSchema is the JSON Schema of point's input document, for editors: every field is
// always present. "fumehood." may be omitted from the point.
func InputSchema(point string) ([]byte, error) {
	point, err := pointOf(point)
	if err != nil {
		return nil, err
	}
	schema := markRequired(module.SchemaOf(documentOf(point)))
	describeFields(schema, ownDocument(point))
	about := schema["properties"].(map[string]any)[contextName]
	describeFields(about, reflect.TypeFor[proposal.Context]())
	about.(map[string]any)["description"] = contextWords
	schema["$schema"], schema["title"] = "https://json-schema.org/draft/2020-12/schema", point
	schema["description"] = "the input of rules in package " + point
	return json.MarshalIndent(schema, "", "  ")
}

// pointOf is the full name of a decision point.
func pointOf(point string) (string, error) {
	if !strings.HasPrefix(point, "fumehood.") {
		point = "fumehood." + point
	}
	if !slices.Contains(module.Points(), point) {
		return "", module.Stop(module.CodeUnknownKey, fmt.Sprintf("%q is not a decision point", point),
			module.SuggestName(point, module.Points()), nil)
	}
	return point, nil
}

// markRequired marks every field as always present. The compiler's schema does not: the
// compiler would also apply it to objects that a rule builds.
func markRequired(schema any) map[string]any {
	s, _ := schema.(map[string]any)
	if properties, ok := s["properties"].(map[string]any); ok {
		for _, p := range properties {
			markRequired(p)
		}
		s["required"] = slices.Sorted(maps.Keys(properties))
	}
	if items, ok := s["items"]; ok {
		markRequired(items)
	}
	return s
}
