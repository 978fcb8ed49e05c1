// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/fumehood/fumehood/internal/kit/document"
	"github.com/fumehood/fumehood/internal/kit/document/schematest"
	"github.com/fumehood/fumehood/internal/kit/golden"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	schemaID  = "https://github.com/fumehood/fumehood/raw/main/testdata/schema/fumehood.config.v1.json"
	published = "../../../testdata/schema/fumehood.config.v1.json"
)

// printed is the JSON Schema of configuration files, generated from the table that Decode uses.
func printed() []byte {
	return schematest.Print(&configShape, schemaID, Schema,
		"The file "+Path+". Decode is stricter where a schema cannot be: lengths count bytes, and the directories in tools are checked.")
}

func TestSchemaIsPublished(t *testing.T) { golden.Compare(t, published, printed()) }

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
	for _, c := range []struct {
		shape *document.Shape
		value any
	}{
		{&configShape, Config{}}, {&commandShape, Command{}}, {limitsShape(), proposal.Limits{}}, {&checkoutShape, Checkout{}}, {&commentShape, Comment{}},
	} {
		typ := reflect.TypeOf(c.value)
		var inType, inTable []string
		for f := range typ.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.IsExported() && name != "-" {
				inType = append(inType, name)
			}
		}
		for _, f := range c.shape.Fields {
			inTable = append(inTable, f.Name)
		}
		if diff := cmp.Diff(inType, inTable); diff != "" {
			t.Errorf("%s (-type +table):\n%s", typ, diff)
		}
	}
}

// What Decode accepts is valid by the schema, and is the same after a round trip.
func TestSchemaAccepts(t *testing.T) {
	for _, text := range []string{full, "schema: fumehood.config/v1\n", "schema: fumehood.config/v1\nsetup: none\nregistries: none\ncache: true\n"} {
		checkAccepted(t, golden.ReadSchema(t, published), mustDecode(t, text, Path))
	}
}

func checkAccepted(t testing.TB, schema *jsonschema.Resolved, c Config) {
	t.Helper()
	doc, err := marshalLine(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate(t, schema, doc); err != nil {
		t.Fatalf("the schema rejects an accepted file: %v\n%s", err, doc)
	}
	if len(doc) > MaxDocument {
		return // escapes made it longer than a file may be
	}
	for _, name := range []string{"x.json", "x.yml"} {
		if diff := cmp.Diff(c, mustDecode(t, string(doc), name), same); diff != "" {
			t.Fatalf("%s: differs after a round trip (-want +got):\n%s", name, diff)
		}
	}
}

// What a schema can express is rejected by the schema and by Decode.
func TestSchemaRejects(t *testing.T) {
	schema := golden.ReadSchema(t, published)
	for _, fields := range []string{
		`"setup":"npm ci"`, `"setup":[]`, `"setup":[{"cwd":"x"}]`, `"setup":[{"run":"a","argv":["a"]}]`, `"setup":[{"run":"a","x":1}]`, `"setup":null`,
		`"registries":["cargo"]`, `"registries":["npm","npm"]`, `"registries":"npm"`, `"rootfs":"dir:x"`, `"tools":["a/b"]`, `"allow-tools":["./x"]`, `"services":["oracle"]`,
		`"limits":{"x":1}`, `"limits":{"cpus":0}`, `"timeout":"soon"`, `"timeout":5000`, `"policy":"/x"`, `"policy":"../x"`, `"cache":"true"`, `"cache":{"x":1}`,
		`"network":["a.b"]`, `"x":1`,
	} {
		doc := []byte(`{"schema":"fumehood.config/v1",` + fields + `}`)
		if validate(t, schema, doc) == nil {
			t.Errorf("the schema accepts %s", fields)
		}
		if _, problems := Decode(doc, ""); len(problems) == 0 {
			t.Errorf("Decode accepts %s", fields)
		}
	}
	if validate(t, schema, []byte(`{}`)) == nil {
		t.Error("the schema accepts an empty object")
	}
}
