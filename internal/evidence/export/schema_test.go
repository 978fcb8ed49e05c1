// SPDX-License-Identifier: Apache-2.0

package export

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/fumehood/fumehood/internal/evidence/export/exporttest"
	"github.com/fumehood/fumehood/internal/kit/golden"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// schema derives a line's schema from the Go types.
func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.For[Decision](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[proposal.Effect]():   {Type: "string", Enum: []any{Deny, Ask, Allow}},
		reflect.TypeFor[proposal.Duration](): {Type: "string", Description: "as Go writes it: 2m0s"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.Title = Schema
	s.Properties["custom"].Properties["schema"].Enum = []any{Schema}
	s.Properties["path"].Enum = []any{PathTrigger, PathProposal, PathCommand, PathExec, PathEgress, PathEvent, PathRun}
	s.Properties["custom"].Properties["severity"].Enum = []any{Informational, Low, Medium, High, Critical}
	s.Properties["result"].Properties["effect"].Enum = []any{Deny, Ask, Allow, Note}
	return s
}

// TestSchema compares the published schema with the Go types.
func TestSchema(t *testing.T) {
	data, err := json.MarshalIndent(schema(t), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "../../../testdata/schema/fumehood.decision.v1.json", append(data, '\n'))
}

// TestLinesFollowSchema validates every line that this package writes.
func TestLinesFollowSchema(t *testing.T) {
	resolved, err := schema(t).Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	check := func(name string, d Decision) {
		line, err := EncodeLine(d)
		if err != nil {
			t.Fatal(err)
		}
		var document any
		if err := json.Unmarshal(line, &document); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(document); err != nil {
			t.Errorf("%s: %v in %.300s", name, err, line)
		}
	}
	for _, name := range sample.EveryNthKey(t, hostile(), 1, 3) {
		s := hostile()[name]
		for _, d := range hostileDecisions(t, name) {
			check(name, d)
		}
		check(name, TriggerDecision("acme/api/comments/5"+s, points.Trigger{Command: s, Actor: points.Actor{Login: s}}, points.DenyReason(s, s, s), proposal.Run{}, Options{}, exporttest.Start))
	}
	if err := resolved.Validate(map[string]any{"path": "fumehood/other"}); err == nil {
		t.Error("the schema takes anything")
	}
}

// TestFieldsOfOPA compares the fields of a line with those of OPA's event. The
// end-to-end test of cmd/fumehood compares these with OPA's own type.
func TestFieldsOfOPA(t *testing.T) {
	known := map[string]bool{"labels": true, "decision_id": true, "batch_decision_id": true, "trace_id": true, "span_id": true, "bundles": true,
		"path": true, "input": true, "result": true, "erased": true, "masked": true, "requested_by": true, "timestamp": true, "metrics": true,
		"rule_labels": true, "custom": true}
	for name := range schema(t).Properties {
		if !known[name] {
			t.Errorf("OPA's event has no field %q", name)
		}
	}
}
