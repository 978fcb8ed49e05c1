// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"reflect"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// termOf turns the input document into OPA's values without the detour over JSON,
// which would cost more than the evaluation.
func termOf(v reflect.Value) *ast.Term {
	switch v.Kind() {
	case reflect.String:
		return ast.InternedTerm(v.String())
	case reflect.Bool:
		return ast.InternedTerm(v.Bool())
	case reflect.Int, reflect.Int64:
		return ast.InternedTerm(int(v.Int()))
	case reflect.Float64:
		return ast.FloatNumberTerm(v.Float())
	case reflect.Slice:
		if v.Len() == 0 {
			return ast.InternedEmptyArray
		}
		items := make([]*ast.Term, v.Len())
		for i := range items {
			items[i] = termOf(v.Index(i))
		}
		return ast.ArrayTerm(items...)
	case reflect.Struct:
		keys := fieldKeys(v.Type())
		items := make([][2]*ast.Term, len(keys))
		for i, key := range keys {
			items[i] = [2]*ast.Term{key, termOf(v.Field(i))}
		}
		return ast.ObjectTerm(items...)
	}
	panic("policy: internal error: no term for " + v.Type().String())
}

var keyCache sync.Map // reflect.Type to []*ast.Term

func fieldKeys(t reflect.Type) []*ast.Term {
	if keys, ok := keyCache.Load(t); ok {
		return keys.([]*ast.Term)
	}
	keys := make([]*ast.Term, t.NumField())
	for i := range keys {
		keys[i] = ast.StringTerm(fieldName(t.Field(i)))
	}
	keyCache.Store(t, keys)
	return keys
}

func fieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// documentOf is the type of the point's input document.
func documentOf(point string) reflect.Type {
	switch point {
	case pointEgress:
		return reflect.TypeFor[egressInput]()
	case pointEvent:
		return reflect.TypeFor[eventInput]()
	case pointOutput:
		return reflect.TypeFor[outputInput]()
	case pointExec:
		return reflect.TypeFor[execInput]()
	case pointSnippet:
		return reflect.TypeFor[snippetDocument]()
	case pointTrigger:
		return reflect.TypeFor[proposal.Trigger]()
	}
	return reflect.TypeFor[input]()
}

// inputSchema is the closed JSON Schema of the point's input document.
func inputSchema(point string) *ast.SchemaSet {
	set := ast.NewSchemaSet()
	set.Put(ast.SchemaRootRef, schemaOf(documentOf(point)))
	return set
}

func schemaOf(t reflect.Type) any {
	switch t.Kind() {
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Struct:
		properties := map[string]any{}
		for i := range t.NumField() {
			properties[fieldName(t.Field(i))] = schemaOf(t.Field(i).Type)
		}
		return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	}
	return map[string]any{"type": "number"}
}
