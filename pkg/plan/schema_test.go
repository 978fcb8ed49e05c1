// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/fumehood/fumehood/internal/kit/document"
	"github.com/fumehood/fumehood/internal/kit/golden"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const published = "../../testdata/schema/fumehood.plan.v1.json"

func TestSchemaIsPublished(t *testing.T) { golden.Compare(t, published, Schema()) }

func validate(t testing.TB, s *jsonschema.Resolved, doc []byte) error {
	t.Helper()
	var v any
	if err := json.Unmarshal(doc, &v); err != nil {
		t.Fatalf("invalid JSON: %v\n%s", err, doc)
	}
	return s.Validate(v)
}

// The table, and with it the schema, names exactly the fields of the Go types.
func TestFieldsAreTheTypes(t *testing.T) {
	cases := []struct {
		shape *shape
		value any
	}{
		{&planShape, proposal.Plan{}}, {&proposalShape, proposal.Proposal{}}, {document.LimitsShape(), proposal.Limits{}},
	}
	for _, c := range cases {
		typ := reflect.TypeOf(c.value)
		inType, inTable := map[string]string{}, map[string]string{}
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if name != "-" && !slices.Contains([]string{"origin", "context", "earlier", "sourced", "invalid"}, name) { // which no plan can have
				inType[name] = kindOf(typ.Field(i).Type)
			}
		}
		for _, f := range c.shape.Fields {
			name := f.Name
			if name == fieldSandbox {
				name = "fresh" // in reports, logs and policy input
			}
			inTable[name] = map[document.Kind]string{object: "object", list: "list", text: "text", number: "number", boolean: "boolean"}[f.Kind]
		}
		if diff := cmp.Diff(inType, inTable); diff != "" {
			t.Errorf("%s (-type +table):\n%s", typ, diff)
		}
	}
}

// kindOf returns the kind of JSON value that encoding/json writes for type t.
func kindOf(t reflect.Type) string {
	if t == reflect.TypeFor[proposal.Duration]() {
		return "text"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return kindOf(t.Elem())
	case reflect.Struct, reflect.Map:
		return "object"
	case reflect.Slice:
		return "list"
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "boolean"
	}
	return "number"
}

func TestSchemaAcceptsGoodPlans(t *testing.T) {
	schema := golden.ReadSchema(t, published)
	for _, file := range goodPlans(t) {
		twin := strings.TrimSuffix(file, "yaml") + "json"
		if err := validate(t, schema, golden.Read(t, twin)); err != nil {
			t.Errorf("%s: %v", twin, err)
		}
	}
	units := `{"schema":"fumehood.plan/v1","proposals":[{"id":"a","run":"ls","limits":{"memory":"512MiB","disk":"2 GiB","output":5}}]}`
	if err := validate(t, schema, []byte(units)); err != nil {
		t.Error(err)
	}
	mustDecode(t, []byte(units), "")
}

// What a schema can express is rejected by the schema and by Decode.
func TestSchemaRejects(t *testing.T) {
	schema := golden.ReadSchema(t, published)
	cases := []struct{ name, plan string }{
		{"not an object", `[]`},
		{"empty object", `{}`},
		{"no schema", `{"proposals":[{"id":"a","run":"ls"}]}`},
		{"another schema", `{"schema":"fumehood.plan/v2","proposals":[{"id":"a","run":"ls"}]}`},
		{"no proposals", `{"schema":"fumehood.plan/v1"}`},
		{"empty proposals", `{"schema":"fumehood.plan/v1","proposals":[]}`},
		{"null proposals", `{"schema":"fumehood.plan/v1","proposals":null}`},
		{"unknown field", `{"schema":"fumehood.plan/v1","proposals":[{"id":"a","run":"ls"}],"x":1}`},
		{"empty proposer", `{"schema":"fumehood.plan/v1","proposer":"","proposals":[{"id":"a","run":"ls"}]}`},
	}
	proposals := []struct{ name, fields string }{
		{"no id", `"run":"ls"`},
		{"bad id", `"id":".a","run":"ls"`},
		{"long id", `"id":"` + strings.Repeat("a", 65) + `","run":"ls"`},
		{"nothing asked", `"id":"a"`},
		{"run and argv", `"id":"a","run":"ls","argv":["ls"]`},
		{"run and code", `"id":"a","run":"ls","code":"x","language":"sh"`},
		{"code without language", `"id":"a","code":"x"`},
		{"language without code", `"id":"a","run":"x","language":"sh"`},
		{"unknown language", `"id":"a","code":"x","language":"ruby"`},
		{"misspelt field", `"id":"a","run":"ls","tiemout":"2m"`},
		{"null command", `"id":"a","run":null`},
		{"number as text", `"id":"a","run":5`},
		{"empty run", `"id":"a","run":""`},
		{"long run", `"id":"a","run":"` + strings.Repeat("x", document.MaxShellText+1) + `"`},
		{"NUL in run", `"id":"a","run":"l\u0000s"`},
		{"escape in why", `"id":"a","run":"ls","why":"\u001b[2K"`},
		{"bidi in code", `"id":"a","code":"\u202ex","language":"sh"`},
		{"tag in stdin", `"id":"a","run":"ls","stdin":"\udb40\udc41"`},
		{"empty argv", `"id":"a","argv":[]`},
		{"empty program", `"id":"a","argv":["","x"]`},
		{"argv as text", `"id":"a","argv":"ls -l"`},
		{"absolute cwd", `"id":"a","run":"ls","cwd":"/etc"`},
		{"cwd goes up", `"id":"a","run":"ls","cwd":"a/.."`},
		{"line break in cwd", `"id":"a","run":"ls","cwd":"a\nb"`},
		{"output goes up", `"id":"a","run":"ls","outputs":["a/../../b"]`},
		{"output twice", `"id":"a","run":"ls","outputs":["a","a"]`},
		{"env as list", `"id":"a","run":"ls","env":["A=b"]`},
		{"null variable", `"id":"a","run":"ls","env":{"A":null}`},
		{"bad variable", `"id":"a","run":"ls","env":{"A-B":"x"}`},
		{"list in env", `"id":"a","run":"ls","env":{"A":[1]}`},
		{"timeout in milliseconds", `"id":"a","run":"ls","timeout":90000`},
		{"bad timeout", `"id":"a","run":"ls","timeout":"soon"`},
		{"negative timeout", `"id":"a","run":"ls","timeout":"-3s"`},
		{"unknown limit", `"id":"a","run":"ls","limits":{"swap":1}`},
		{"no cpus", `"id":"a","run":"ls","limits":{"cpus":0}`},
		{"part of a process", `"id":"a","run":"ls","limits":{"pids":1.5}`},
		{"bad size", `"id":"a","run":"ls","limits":{"memory":"2 gigabytes"}`},
		{"URL as host", `"id":"a","run":"ls","network":["https://x.example/"]`},
		{"fresh", `"id":"a","run":"ls","fresh":true`},
		{"new-sandbox as text", `"id":"a","run":"ls","new-sandbox":"true"`},
	}
	for _, p := range proposals {
		cases = append(cases, struct{ name, plan string }{
			p.name, `{"schema":"fumehood.plan/v1","proposals":[{` + p.fields + `}]}`,
		})
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if err := validate(t, schema, []byte(c.plan)); err == nil {
				t.Error("the schema accepts it")
			}
			if problems := faults([]byte(c.plan), ""); len(problems) == 0 {
				t.Error("Decode accepts it")
			}
		})
	}
}
