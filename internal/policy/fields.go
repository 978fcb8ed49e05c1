// SPDX-License-Identifier: Apache-2.0

package policy

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"reflect"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// fieldsFile has the comments of the inputs' fields; a test writes it from the source.
//
//go:embed fields.json
var fieldsFile []byte

var fieldComments = sync.OnceValue(func() map[string]string {
	comments := map[string]string{}
	if err := json.Unmarshal(fieldsFile, &comments); err != nil {
		panic("policy: internal error: fields.json: " + err.Error())
	}
	return comments
})

func fieldKey(t reflect.Type, name string) string {
	return path.Base(t.PkgPath()) + "." + t.Name() + "." + name
}

// A Field is one field of the input at a decision point.
type Field struct {
	Path        string `json:"path"` // such as input.command.options[].name
	Type        string `json:"type"` // string, boolean, number, object, or array of one of these
	Description string `json:"description"`
}

// ContextFields are the fields that the input of every decision point has besides InputFields.
func ContextFields() []Field {
	at := "input." + contextName
	return append([]Field{{at, "object", contextWords}}, fieldsBelow(at, reflect.TypeFor[proposal.Context]())...)
}

// InputFields are the fields of point's input document besides ContextFields, in its order, each
// object before its fields. "fumehood." may be omitted from the point. An error is a *proposal.StopError.
func InputFields(point string) ([]Field, error) {
	name, err := pointOf(point)
	if err != nil {
		return nil, err
	}
	return fieldsBelow("input", ownDocument(name)), nil
}

// WriteFields writes fields to w as a table: path, type, description.
func WriteFields(w io.Writer, fields []Field) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range fields {
		fmt.Fprintf(table, "%s\t%s\t%s\n", f.Path, f.Type, f.Description)
	}
	return table.Flush()
}

func fieldsBelow(prefix string, t reflect.Type) []Field {
	var all []Field
	for f := range t.Fields() {
		name := module.FieldName(f)
		at, below, kind := prefix+"."+name, f.Type, ""
		if below.Kind() == reflect.Slice {
			at, below, kind = at+"[]", below.Elem(), "array of "
		}
		schema, _ := module.SchemaOf(below).(map[string]any)
		all = append(all, Field{strings.TrimSuffix(at, "[]"), kind + fmt.Sprint(schema["type"]),
			describeField(t, f)})
		if below.Kind() == reflect.Struct {
			all = append(all, fieldsBelow(at, below)...)
		}
	}
	return all
}

// describeFields adds the descriptions of t's fields to its schema.
func describeFields(schema any, t reflect.Type) {
	for t.Kind() == reflect.Slice {
		schema, t = schema.(map[string]any)["items"], t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	properties := schema.(map[string]any)["properties"].(map[string]any)
	for f := range t.Fields() {
		name := module.FieldName(f)
		describeFields(properties[name], f.Type)
		property := properties[name].(map[string]any)
		property["description"] = describeField(t, f)
		if values := module.Vocabulary(f); values != nil {
			if items, isList := property["items"].(map[string]any); isList {
				property = items
			}
			property["enum"] = append([]string{""}, values...)
		}
	}
}

// describeField is f's comment, and the values that it may have.
func describeField(t reflect.Type, f reflect.StructField) string {
	comment, values := fieldComments()[fieldKey(t, module.FieldName(f))], module.Vocabulary(f)
	if values == nil {
		return comment
	}
	return comment + " (" + strings.Join(values[:len(values)-1], ", ") + " or " + values[len(values)-1] + ")"
}
