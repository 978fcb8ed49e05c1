// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/golden"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// mustDecode fails the test when doc is rejected.
func mustDecode(t *testing.T, doc []byte, name string) proposal.Plan {
	t.Helper()
	p, problems := Decode(doc, name)
	for _, problem := range append(problems, p.Refused()...) {
		t.Error(Describe(name, problem))
	}
	if t.Failed() {
		t.FailNow()
	}
	return p
}

func encode(t testing.TB, p proposal.Plan) []byte {
	t.Helper()
	out, err := json.MarshalIndent(writtenPlan{p.Schema, p.Proposer, writeProposals(p.Proposals)}, "", "  ")
	if err != nil {
		t.Fatalf("cannot encode: %v", err)
	}
	return append(out, '\n')
}

func goodPlans(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no plans in testdata: %v", err)
	}
	return files
}

// Each plan in testdata exists as YAML and as the JSON it is encoded to. Both
// decode to the same Plan, and the round trip loses nothing.
func TestDecodeGolden(t *testing.T) {
	for _, file := range goodPlans(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			fromYAML := mustDecode(t, golden.Read(t, file), file)
			twin := file[:len(file)-len("yaml")] + "json"
			golden.Compare(t, twin, encode(t, fromYAML))
			fromJSON := mustDecode(t, golden.Read(t, twin), twin)
			if fromYAML.Digest == fromJSON.Digest {
				t.Error("two documents have one digest")
			}
			fromYAML.Digest, fromJSON.Digest = "", ""
			if diff := cmp.Diff(fromYAML, fromJSON); diff != "" {
				t.Errorf("YAML and JSON differ (-yaml +json):\n%s", diff)
			}
		})
	}
}

// full.yaml sets every field of the Go types in the Plan: the test fails if a field
// is added to a type and forgotten here.
func TestDecodeFillsEveryField(t *testing.T) {
	p := mustDecode(t, golden.Read(t, "testdata/full.yaml"), "full.yaml")
	filled := map[string]bool{}
	mark := func(v reflect.Value) {
		for i := range v.NumField() {
			name := v.Type().Name() + "." + v.Type().Field(i).Name
			filled[name] = filled[name] || !v.Field(i).IsZero()
		}
	}
	mark(reflect.ValueOf(p))
	for _, one := range p.Proposals {
		mark(reflect.ValueOf(one))
		if one.Limits != nil {
			mark(reflect.ValueOf(*one.Limits))
		}
	}
	for name, ok := range filled {
		if !ok && !slices.Contains([]string{"Proposal.Origin", "Proposal.Context", "Proposal.Earlier", "Proposal.Sourced", "Proposal.Invalid"}, name) { // which no plan can have
			t.Errorf("%s was not decoded", name)
		}
	}
}

func TestDecodeValues(t *testing.T) {
	p := mustDecode(t, golden.Read(t, "testdata/full.yaml"), "")
	lint, repro := p.Proposals[1], p.Proposals[2]
	want := &proposal.Limits{
		Wall: proposal.Duration(90e9), CPUs: 1.5, Memory: 512 * proposal.MiB, Pids: 64,
		Disk: 2 * proposal.GiB, Files: 256, Output: 1000000,
	}
	if diff := cmp.Diff(want, lint.Limits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"golangci-lint", "run", "./...", ""}, lint.Argv); diff != "" {
		t.Errorf("argv (-want +got):\n%s", diff)
	}
	if want := "a,b\n1,2\t\n"; repro.Stdin != want {
		t.Errorf("stdin is %q, want %q", repro.Stdin, want)
	}
}

func TestDecodeDigest(t *testing.T) {
	const doc = `{"schema":"fumehood.plan/v1","proposals":[{"id":"a","run":"ls"}]}`
	const want = "sha256:d44d852c199dbca4731afc63dcb093a23c317840f823f9fea26bfec21fcbfa84" // by sha256sum
	good, _ := Decode([]byte(doc), "")
	if good.Digest != want {
		t.Errorf("digest is %s, want %s", good.Digest, want)
	}
	bad, problems := Decode([]byte(doc+"x"), "")
	if len(problems) == 0 || bad.Digest == good.Digest || bad.Digest == "" {
		t.Errorf("a rejected plan has digest %q and problems %v", bad.Digest, problems)
	}
	if bad.Proposals != nil || bad.Schema != "" {
		t.Errorf("a rejected plan holds something: %+v", bad)
	}
}

func TestDecodeFormat(t *testing.T) {
	const flow = `{schema: fumehood.plan/v1, proposals: [{id: a, run: ls}]}`
	const plain = `{"schema":"fumehood.plan/v1","proposals":[{"id":"a","run":"ls"}]}`
	cases := []struct {
		name, doc, file string
		accepted        bool
	}{
		{"JSON by content", plain, "", true},
		{"JSON by name", plain, "p.json", true},
		{"JSON is YAML too", plain, "p.yaml", true},
		{"flow YAML by name", flow, "p.yml", true},
		{"flow YAML looks like JSON", flow, "", false},
		{"YAML called JSON", "schema: fumehood.plan/v1\n", "p.json", false},
		{"leading blanks", "\r\n \t" + plain, "", true},
		{"CRLF", "schema: fumehood.plan/v1\r\nproposals:\r\n  - id: a\r\n    run: ls\r\n", "", true},
		{"marked begin and end", "---\nschema: fumehood.plan/v1\nproposals: [{id: a, run: ls}]\n...\n", "", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, problems := Decode([]byte(c.doc), c.file); (len(problems) == 0) != c.accepted {
				t.Errorf("problems %v, want accepted %v", problems, c.accepted)
			}
		})
	}
}

// A surrogate pair in JSON is one character, and a backslash may precede u.
func TestDecodeSurrogates(t *testing.T) {
	cases := []struct {
		text     string
		accepted bool
	}{
		{`\ud83d\ude00`, true}, {`\\ud83d`, true}, {`\\\\uD83D x`, true}, {`\uD83d\uDe00\ud83d\ude00`, true},
		{`\ud83d`, false}, {`\ude00`, false}, {`\ude00\ud83d`, false}, {`\ud83d \ude00`, false},
		{`\ud83d\ud83d\ude00`, false}, {`\ud83d\n\ude00`, false}, {`\\\ud83d`, false},
	}
	for _, c := range cases {
		doc := `{"schema":"fumehood.plan/v1","proposals":[{"id":"a","run":"ls","why":"` + c.text + `"}]}`
		if problems := faults([]byte(doc), ""); (len(problems) == 0) != c.accepted {
			t.Errorf("%s: problems %v, want accepted %v", c.text, problems, c.accepted)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	full, problems := Decode(golden.Read(b, "testdata/full.yaml"), "")
	if len(problems) > 0 {
		b.Fatal(problems)
	}
	for name, doc := range map[string][]byte{
		"yaml": golden.Read(b, "testdata/full.yaml"),
		"json": encode(b, full),
		"200":  largePlan(b),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				if problems := faults(doc, ""); len(problems) > 0 {
					b.Fatal(problems[0])
				}
			}
		})
	}
}

// largePlan has MaxProposals proposals and nearly MaxDocument bytes.
func largePlan(t testing.TB) []byte {
	p := proposal.Plan{Schema: proposal.PlanSchema}
	for i := range maxProposals {
		p.Proposals = append(p.Proposals, proposal.Proposal{
			ID:  "p" + string(rune('A'+i/26)) + string(rune('a'+i%26)),
			Run: string(bytes.Repeat([]byte("go test ./...\n"), 300)),
		})
	}
	return encode(t, p)
}
