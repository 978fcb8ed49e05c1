// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/fumehood/fumehood/internal/kit/golden"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// enum is the schema of a type that is encoded as one of several words.
func enum[T interface{ String() string }](values ...T) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	for _, v := range values {
		s.Enum = append(s.Enum, v.String())
	}
	return s
}

// schema derives a report's schema from the Go types.
func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.For[proposal.Report](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[proposal.Effect](): enum(proposal.Deny, proposal.Ask, proposal.Allow),
		reflect.TypeFor[proposal.Status](): enum(
			proposal.SandboxFailed, proposal.Exited, proposal.Signaled, proposal.TimedOut, proposal.OutOfMemory,
			proposal.ProcessLimit, proposal.DiskLimit, proposal.OutputLimit, proposal.NotRun),
		reflect.TypeFor[proposal.Retry]():    {Type: "string", Enum: []any{proposal.RetryVary, proposal.RetryNever, proposal.RetryApproval, proposal.RetryTransient}},
		reflect.TypeFor[proposal.Duration](): {Type: "string", Description: "as Go writes it: 2m0s"},
		reflect.TypeFor[[]byte]():            {Types: []string{"string", "null"}, ContentEncoding: "base64"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.Title = proposal.ReportSchema
	s.Properties["base"].Properties["records"].Items = &jsonschema.Schema{Ref: "#/properties/records/items"}
	s.Properties["schema"] = &jsonschema.Schema{Type: "string", Enum: []any{proposal.ReportSchema}}
	return s
}

// TestSchema compares the published schema with the Go types.
func TestSchema(t *testing.T) {
	data, err := json.MarshalIndent(schema(t), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "../../../testdata/schema/fumehood.report.v1.json", append(data, '\n'))
}

// unshown are the fields that only programs read.
var unshown = map[string]bool{"Result.DisplaysOmitted": true, "Result.Exception": true, "Record.Background": true, "Report.Transfers": true}

// Each field of a report, a record and a result is shown by this package, or known to be for programs only. Text of
// a result is among what hostile texts are tried in.
func TestFieldsAreShown(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var source []byte
	for _, name := range files {
		if !strings.HasSuffix(name, "_test.go") {
			source = append(source, golden.Read(t, name)...)
		}
	}
	for _, of := range []reflect.Type{reflect.TypeFor[proposal.Report](), reflect.TypeFor[proposal.Record](), reflect.TypeFor[proposal.Result]()} {
		for field := range of.Fields() {
			name := of.Name() + "." + field.Name
			if shown := regexp.MustCompile(`\.` + field.Name + `\b`).Match(source); shown == unshown[name] {
				t.Errorf("%s: internal/evidence/report uses it: %v; listed above as unshown: %v", name, shown, unshown[name])
			}
		}
	}
	hostile := map[string]bool{"Killed": true, "CacheKey": true} // whose values Read checks
	for _, record := range everywhere("x").Records {
		if record.Result == nil {
			continue
		}
		for field, value := range reflect.ValueOf(*record.Result).Fields() {
			hostile[field.Name] = hostile[field.Name] || value.Kind() != reflect.String || value.String() != ""
		}
	}
	for name, is := range hostile {
		if !is {
			t.Errorf("Result.%s: no text of it in everywhere of cases_test.go", name)
		}
	}
}

// TestReportsFollowSchema validates every report that this package writes.
func TestReportsFollowSchema(t *testing.T) {
	lanetest.SkipShort(t)
	resolved, err := schema(t).Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	all := cases()
	all["zero"] = proposal.Report{}
	all["everywhere"] = everywhere("x\n")
	for name, r := range all {
		data, err := JSON(r)
		if err != nil {
			t.Fatal(err)
		}
		var document any
		if err := json.Unmarshal(data, &document); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(document); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := resolved.Validate(map[string]any{"schema": "fumehood.report/v2"}); err == nil {
		t.Error("the schema takes anything")
	}
}
