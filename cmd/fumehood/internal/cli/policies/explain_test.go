// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/internal/kit/golden"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/policy/explain"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// runFumehood runs fumehood, as far as it is this package, without standard input.
func runFumehood(t testing.TB, args ...string) (code int, out, diagnostics string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := &cli.Invocation{Ctx: t.Context(), Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr}
	root := &cobra.Command{Use: "fumehood"}
	root.AddGroup(&cobra.Group{ID: cli.GroupPolicy, Title: "Policy"})
	root.AddCommand(Command(c))
	code = c.Execute(root, args)
	return code, stdout.String(), stderr.String()
}

func enumOf(words ...any) *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Enum: words} }

// TestExplanationSchema compares the published schema with the Go type, and
// validates the output against the schema.
func TestExplanationSchema(t *testing.T) {
	lanetest.SkipShort(t)
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
	const published = "../../../../../testdata/schema/fumehood.explanation.v1.json"
	golden.Compare(t, published, append(want, '\n'))
	resolved := golden.ReadSchema(t, published)
	for _, text := range []string{"go test ./...", "sudo ls", "nosuch", "git fetch", "eval 'ls'", "ls\u202e"} {
		code, out, diagnostics := runFumehood(t, "policy", "explain", "--json", "--command", text)
		if code == cli.Stopped || code == cli.Usage {
			t.Fatalf("%q: %d %s", text, code, diagnostics)
		}
		var document any
		if err := json.Unmarshal([]byte(out), &document); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if err := resolved.Validate(document); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}
