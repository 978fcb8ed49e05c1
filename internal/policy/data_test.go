// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/shell/parse"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func TestData(t *testing.T) {
	layer := func(pairs ...string) Layer {
		l := Layer{Name: "l"}
		for i := 0; i < len(pairs); i += 2 {
			l.Files = append(l.Files, File{pairs[i], []byte(pairs[i+1])})
		}
		return l
	}
	tests := []struct {
		name string
		l    Layer
		want string // JSON; "" is refused
	}{
		{"none", layer("a.rego", "package x"), `{}`},
		{"at the top", layer("data.json", `{"acme":{"n":1.50}}`), `{"acme":{"n":1.50}}`},
		{"below folders", layer("acme/eu/data.yaml", "x: [a, 1, true, null]"), `{"acme":{"eu":{"x":["a",1,true,null]}}}`},
		{"a value below a folder", layer("acme/data.json", `[1]`), `{"acme":[1]}`},
		{"put together", layer("data.json", `{"acme":{"a":1}}`, "acme/data.yml", "b: 2", "other/data.json", `{}`), `{"acme":{"a":1,"b":2},"other":{}}`},
		{"other names", layer("acme/cases.yaml", "- x", "mydata.json", "[]", "data.json.bak", "x"), `{}`},
		{"no object", layer("data.json", `1`), ""},
		{"said twice", layer("data.json", `{"acme":{"a":1}}`, "acme/data.yml", "a: 1"), ""},
		{"an object and a value", layer("data.json", `{"acme":1}`, "acme/data.yml", "a: 1"), ""},
		{"packages", layer("fumehood/data.json", `{}`), ""},
		{"packages as nothing", layer("data.json", `{"fumehood":null}`), ""},
		{"cut short", layer("data.json", `{"a":`), ""},
		{"an alias", layer("data.yaml", "a: &x 1\nb: *x"), ""},
		{"a merge", layer("data.yaml", "a: &x {c: 1}\nb:\n  <<: *x"), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.l.Data()
			if (err == nil) != (tt.want != "") {
				t.Fatalf("%v, %v", got, err)
			}
			if err != nil {
				return
			}
			data, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(data)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Rules read their layer's data, and no other layer's.
func TestDataDecides(t *testing.T) {
	rules := `package fumehood.command

deny contains {"rule": "acme.listed", "message": "listed", "suggestion": "none"} if input.command.program in data.acme.denied
`
	mine := Layer{Name: "mine", Files: []File{{"a.rego", []byte(rules)}, {"acme/data.json", []byte(`{"denied":["ls"]}`)}}}
	other := Layer{Name: "other", Files: []File{{"a.rego", []byte(rules)}, {"acme/data.json", []byte(`{"denied":["cat"]}`)}}}
	for _, tt := range []struct {
		layers []Layer
		run    string
		want   proposal.Effect
	}{
		{[]Layer{mine}, "ls", proposal.Deny}, {[]Layer{mine}, "cat a", proposal.Allow}, {[]Layer{other}, "ls", proposal.Allow}, {[]Layer{mine, other}, "cat a", proposal.Deny},
	} {
		e, err := New(t.Context(), Options{Layers: tt.layers})
		if err != nil {
			t.Fatal(err)
		}
		p := proposal.Proposal{ID: "a", Run: tt.run}
		d, err := e.Decide(t.Context(), p, parse.Analyze(p))
		if err != nil || d.Effect != tt.want {
			t.Errorf("%s: %v, %v", tt.run, d, err)
		}
	}
	if a, b := mine.Digest(), other.Digest(); a == b {
		t.Error("data is not part of the digest")
	}
}
