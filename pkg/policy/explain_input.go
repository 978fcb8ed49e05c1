// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Inputs are the documents that Decide puts about p: those of fumehood.proposal and
// fumehood.command, and one a snippet.
func (e *Engine) Inputs(p proposal.Proposal, a proposal.Analysis) []Document {
	all := e.Documents(p, a)
	shared := termOf(reflect.ValueOf(e.proposalInput(p, a)))
	for _, s := range a.Snippets {
		command := whole
		if s.Command >= 0 && s.Command < len(a.Commands) {
			command = s.Command
		}
		all = append(all, Document{pointSnippet, command, e.snippetDocument(shared, s)})
	}
	return all
}

// InputOf is the document that is put about one trigger, program, step of a connection,
// event or thing that leaves; ok says that v is one.
func (e *Engine) InputOf(v any) (doc Document, ok bool) {
	var in any
	switch v := v.(type) {
	case *proposal.Trigger:
		doc.Point, in = pointTrigger, *v
	case *proposal.Exec:
		doc.Point, in = pointExec, e.execInput(*v)
	case *proposal.Egress:
		doc.Point, in = pointEgress, egressInputOf(*v)
	case *proposal.Event:
		doc.Point, in = pointEvent, eventInputOf(*v)
	case *proposal.Outgoing:
		doc.Point, in = pointOutput, outputInputOf(*v)
	default:
		return Document{}, false
	}
	doc.Command, doc.Input = whole, termOf(reflect.ValueOf(in)).Value
	return doc, true
}

// JSON is the document as rules see it, its names in order.
func (d Document) JSON() ([]byte, error) {
	v, err := ast.JSON(d.Input)
	if err != nil {
		return nil, stop(codeEval, "the input document cannot be written", hintDefect, err)
	}
	return json.Marshal(v)
}

// InputSchema is the JSON Schema of point's input document, for editors: every field is
// always there. The point may be given without "fumehood.".
func InputSchema(point string) ([]byte, error) {
	if !strings.HasPrefix(point, "fumehood.") {
		point = "fumehood." + point
	}
	if !slices.Contains(points, point) {
		return nil, stop(codeUnknownKey, fmt.Sprintf("%q is no decision point", point), Meant(point, points), nil)
	}
	schema := required(schemaOf(documentOf(point)))
	schema["$schema"], schema["title"] = "https://json-schema.org/draft/2020-12/schema", point
	schema["description"] = "the input of rules in package " + point
	return json.MarshalIndent(schema, "", "  ")
}

// required says of every field that it is always there. The compiler's schema does not:
// it would take a rule's own objects to task.
func required(schema any) map[string]any {
	s, _ := schema.(map[string]any)
	if properties, ok := s["properties"].(map[string]any); ok {
		for _, p := range properties {
			required(p)
		}
		s["required"] = slices.Sorted(maps.Keys(properties))
	}
	if items, ok := s["items"]; ok {
		required(items)
	}
	return s
}
