// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// Each field that is sent or read has the name and the type that the provider publishes, and
// what it requires of a request is sent.
func TestWireFormats(t *testing.T) {
	for provider, bodies := range map[string][2]any{
		"anthropic": {anthropicRequest{}, anthropicResponse{}},
		"openai":    {openaiRequest{}, openaiResponse{}},
		"gemini":    {geminiRequest{}, geminiResponse{}},
	} {
		data, err := os.ReadFile("modeltest/schemas/" + provider + ".json")
		var schema jsonschema.Schema
		if err == nil {
			err = json.Unmarshal(data, &schema)
		}
		if err != nil {
			t.Fatal(err)
		}
		w := wire{t, schema.Defs}
		w.compare(provider+" request", reflect.TypeOf(bodies[0]), schema.Properties["request"], true)
		w.compare(provider+" response", reflect.TypeOf(bodies[1]), schema.Properties["response"], false)
	}
}

type wire struct {
	t    *testing.T
	defs map[string]*jsonschema.Schema
}

// compare compares a type with its schema; sent says that values of it are.
func (w wire) compare(at string, typ reflect.Type, s *jsonschema.Schema, sent bool) {
	if s != nil && s.Ref != "" {
		s = w.defs[strings.TrimPrefix(s.Ref, "#/$defs/")]
	}
	if s == nil {
		w.t.Errorf("%s is not in the schema", at)
		return
	}
	want := map[reflect.Kind]string{reflect.String: "string", reflect.Int: "integer", reflect.Int64: "integer", reflect.Bool: "boolean", reflect.Struct: "object"}[typ.Kind()]
	switch {
	case typ == reflect.TypeFor[json.RawMessage]():
		want = "object"
	case typ.Kind() == reflect.Slice:
		want = "array"
		w.compare(at+"[]", typ.Elem(), s.Items, sent)
	case typ.Kind() == reflect.Pointer:
		w.compare(at, typ.Elem(), s, sent)
		return
	case typ.Kind() == reflect.Struct:
		w.compareFields(at, typ, s, sent)
	}
	if want == "" || s.Type != want && !slices.Contains(s.Types, want) {
		w.t.Errorf("%s is %v, and of type %q %q in the schema", at, typ, s.Type, s.Types)
	}
}

func (w wire) compareFields(at string, typ reflect.Type, s *jsonschema.Schema, sent bool) {
	always := map[string]bool{}
	for _, f := range reflect.VisibleFields(typ) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		always[name] = options == ""
		w.compare(at+"."+name, f.Type, s.Properties[name], sent)
	}
	for _, name := range s.Required {
		if sent && !always[name] {
			w.t.Errorf("%s needs %s, which is not always sent", at, name)
		}
	}
}
