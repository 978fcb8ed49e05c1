// SPDX-License-Identifier: Apache-2.0

package module

import (
	"reflect"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// schemaSet is the closed JSON Schema of an input document.
func schemaSet(document reflect.Type) *ast.SchemaSet {
	set := ast.NewSchemaSet()
	set.Put(ast.SchemaRootRef, SchemaOf(document))
	return set
}

// SchemaOf is the JSON Schema of t, by the json tags of its fields.
func SchemaOf(t reflect.Type) any {
	switch t.Kind() {
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": SchemaOf(t.Elem())}
	case reflect.Struct:
		properties := map[string]any{}
		for i := range t.NumField() {
			properties[FieldName(t.Field(i))] = SchemaOf(t.Field(i).Type)
		}
		return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	}
	return map[string]any{"type": "number"}
}

// FieldName is the name of f in a document.
func FieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// FieldOf is the type of the field of t that has a name in documents.
func FieldOf(t reflect.Type, name string) (reflect.Type, bool) {
	for i := range t.NumField() {
		if FieldName(t.Field(i)) == name {
			return t.Field(i).Type, true
		}
	}
	return nil, false
}

// FieldNames are the names of t's fields in documents.
func FieldNames(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		names = append(names, FieldName(t.Field(i)))
	}
	return names
}
