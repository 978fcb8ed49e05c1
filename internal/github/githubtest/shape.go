// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"slices"
	"strconv"

	"github.com/getkin/kin-openapi/openapi3"
)

// obj is a JSON object.
type obj = map[string]any

// fillResponse completes a sparse response as the description requires: handlers set the
// fields that matter, and all other fields that a client might read are present and
// of the right type.
func (d *description) fillResponse(op *openapi3.Operation, status int, sparse any, link string) any {
	response := op.Responses.Value(strconv.Itoa(status))
	if response == nil || response.Value.Content.Get("application/json") == nil {
		return sparse
	}
	return fillSchema(response.Value.Content.Get("application/json").Schema.Value, sparse, link)
}

func fillSchema(s *openapi3.Schema, sparse any, link string) any {
	switch v := sparse.(type) {
	case obj:
		s = pickAlternative(s, v)
		for name, field := range v {
			if p := findProperty(s, name); p != nil && field != nil {
				v[name] = fillSchema(p, field, link)
			}
		}
		fillRequired(s, v, link)
		return v
	case []any:
		s = arraySchema(s)
		for i := range v {
			if s != nil && s.Items != nil {
				v[i] = fillSchema(s.Items.Value, v[i], link)
			}
		}
		return v
	}
	return sparse
}

func fillRequired(s *openapi3.Schema, v obj, link string) {
	for _, name := range s.Required {
		if _, there := v[name]; !there {
			v[name] = emptyValue(findProperty(s, name), link+"#"+name)
		}
	}
	for _, part := range s.AllOf {
		fillRequired(part.Value, v, link)
	}
}

// emptyValue is the simplest value that s accepts.
func emptyValue(s *openapi3.Schema, link string) any {
	switch {
	case s == nil || s.Nullable:
		return nil
	case len(s.Enum) > 0:
		return s.Enum[0]
	case len(s.OneOf) > 0:
		return emptyValue(s.OneOf[0].Value, link)
	case len(s.AnyOf) > 0:
		return emptyValue(s.AnyOf[0].Value, link)
	case s.Type.Is("integer"), s.Type.Is("number"):
		return 0
	case s.Type.Is("boolean"):
		return false
	case s.Type.Is("array"):
		return []any{}
	case s.Type.Is("string"):
		return emptyString(s.Format, link)
	}
	v := obj{}
	fillRequired(s, v, link)
	return v
}

func emptyString(format, link string) string {
	switch format {
	case "uri":
		return link
	case "date-time":
		return "2019-05-15T15:20:18Z"
	}
	return ""
}

// pickAlternative picks the schema among s's that matches v's kind and fields; of two
// that know the same fields, the one that requires fewer.
func pickAlternative(s *openapi3.Schema, v obj) *openapi3.Schema {
	best, most := s, 0
	for _, a := range slices.Concat(s.OneOf, s.AnyOf) {
		score := -len(a.Value.Required)
		for name, value := range v {
			if p := a.Value.Properties[name]; p != nil &&
				(len(p.Value.Enum) == 0 || slices.Contains(p.Value.Enum, value)) {
				score += 1000
			}
		}
		if !a.Value.Type.Is("array") && (best == s || score > most) {
			best, most = a.Value, score
		}
	}
	return best
}

func arraySchema(s *openapi3.Schema) *openapi3.Schema {
	for _, a := range slices.Concat(s.OneOf, s.AnyOf) {
		if a.Value.Type.Is("array") {
			return a.Value
		}
	}
	return s
}

func findProperty(s *openapi3.Schema, name string) *openapi3.Schema {
	if p := s.Properties[name]; p != nil {
		return p.Value
	}
	for _, part := range s.AllOf {
		if p := findProperty(part.Value, name); p != nil {
			return p
		}
	}
	return nil
}
