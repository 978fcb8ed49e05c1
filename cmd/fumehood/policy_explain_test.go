// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/fumehood/fumehood/pkg/policy/explain"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func enumOf(words ...any) *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Enum: words} }

// TestExplanationSchema compares the published schema with the Go type, and
// validates the output against the schema.
func TestExplanationSchema(t *testing.T) {
	long(t)
	s, err := jsonschema.For[explain.Explanation](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[proposal.Effect]():   enumOf("deny", "ask", "allow"),
		reflect.TypeFor[proposal.Retry]():    enumOf("vary", "never", "approval", "transient"),
		reflect.TypeFor[proposal.Duration](): {Type: "string", Description: "as Go writes it: 2m0s"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.Schema, s.Title = "https://json-schema.org/draft/2020-12/schema", explain.ExplanationSchema
	want, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const published = "../../testdata/schema/fumehood.explanation.v1.json"
	if *update {
		if err := os.WriteFile(published, append(want, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(published); err != nil || !bytes.Equal(bytes.TrimSpace(got), want) {
		t.Fatalf("%s differs from the Go types (%v): -update rewrites it", published, err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"go test ./...", "sudo ls", "nosuch", "git fetch", "eval 'ls'", "ls\u202e"} {
		var out, diagnostics bytes.Buffer
		code := run(t.Context(), []string{"policy", "explain", "--json", "--command", text}, strings.NewReader(""), &out, &diagnostics)
		if code == exitStopped || code == exitUsage {
			t.Fatalf("%q: %d %s", text, code, diagnostics.String())
		}
		var document any
		if err := json.Unmarshal(out.Bytes(), &document); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if err := resolved.Validate(document); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}
