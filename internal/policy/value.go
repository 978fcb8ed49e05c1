// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"reflect"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/policy/module"
)

// termOf converts the input document into OPA values directly: going through JSON would
// cost more than the evaluation.
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
		keys[i] = ast.StringTerm(module.FieldName(t.Field(i)))
	}
	keyCache.Store(t, keys)
	return keys
}

// ownDocument is the type of the point's own part of the input document.
func ownDocument(point string) reflect.Type {
	switch point {
	case module.PointEgress:
		return reflect.TypeFor[egressInput]()
	case module.PointEvent:
		return reflect.TypeFor[eventInput]()
	case module.PointOutput:
		return reflect.TypeFor[outputInput]()
	case module.PointExec:
		return reflect.TypeFor[execInput]()
	case module.PointSnippet:
		return reflect.TypeFor[snippetDocument]()
	case module.PointTrigger:
		return reflect.TypeFor[points.Trigger]()
	}
	return reflect.TypeFor[input]()
}
