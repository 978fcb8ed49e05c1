// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"github.com/fumehood/fumehood/internal/kit/golden"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const publishedCases = "../../testdata/schema/fumehood.cases.v1.json"

func TestCasesSchemaIsPublished(t *testing.T) { golden.Compare(t, publishedCases, CasesSchema()) }

const goodCases = `schema: fumehood.cases/v1
cases:
  - name: tests run
    why: that is what reviewers do
    run: go test ./...
    phase: setup
    network: [registry:go]
    want: allow
    rule: code.run
    not_rule: [go.flag, "go."]
    granted: {wall: 2m, memory: 2GiB}
  - {name: words, argv: [go, vet], want: ask}
  - {name: snippet, code: print(1), language: python, want: deny}
  - {name: fork, run: ls, pr: fork, actor: read, trigger: {command: rerun, pr: {draft: true}}, want: deny, rule: trigger.permission}
  - {name: program, exec: {path: /usr/bin/curl, argv: [curl, x], first: true}, want: deny, rule: exec.network}
  - {name: step, egress: {kind: request, port: 8080, secrets: [{rule: r, where: url}]}, want: deny}
  - {name: seen, event: {kind: connect, address: "tcp 169.254.169.254:80", flow: {egress: {port: 80}}}, rule: event.metadata}
  - {name: leaving, output: {kind: comment, binary: true, masked: 1}, want: deny}
`

func TestDecodeCases(t *testing.T) {
	cases, problems := DecodeCases([]byte(goodCases), "cases.yaml")
	for _, p := range problems {
		t.Error(Describe("cases.yaml", p))
	}
	if len(cases) != 8 {
		t.Fatalf("%d cases, want 8", len(cases))
	}
	want := proposal.Case{
		Name: "tests run", Why: "that is what reviewers do", Want: "allow", Rules: []string{"code.run"}, NotRules: []string{"go.flag", "go."}, Line: 3,
		Proposal: &proposal.Proposal{ID: "case-1", Run: "go test ./...", Phase: "setup", Network: []string{"registry:go"}},
		Granted:  &proposal.Limits{Wall: proposal.Duration(120e9), Memory: 2 * proposal.GiB},
		Inputs:   map[string]json.RawMessage{},
	}
	if diff := cmp.Diff(want, cases[0]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for i, inputs := range map[int]string{
		3: `{"trigger":{"command":"rerun","pr":{"draft":true,"fork":true},"actor":{"permission":"read"}}}`,
		4: `{"exec":{"path":"/usr/bin/curl","argv":["curl","x"],"first":true}}`,
		5: `{"egress":{"kind":"request","port":8080,"secrets":[{"rule":"r","where":"url"}]}}`,
	} {
		got, err := json.Marshal(cases[i].Inputs)
		if err != nil || string(got) != inputs {
			t.Errorf("case %d: %s, want %s (%v)", i, got, inputs, err)
		}
	}
	var doc any
	if err := yaml.Unmarshal([]byte(goodCases), &doc); err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate(t, casesSchema(t), asJSON); err != nil {
		t.Errorf("the schema refuses what DecodeCases takes: %v", err)
	}
}

func casesSchema(t testing.TB) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(golden.Read(t, publishedCases), &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

func TestDecodeCasesRejects(t *testing.T) {
	const head = "schema: fumehood.cases/v1\ncases:\n  - "
	for name, c := range map[string]struct{ doc, says string }{
		"empty":             {"", `1:1: the file of cases is empty`},
		"no schema":         {"cases: [{name: a, run: ls, want: allow}]", `the field "schema" is missing`},
		"a plan":            {"schema: fumehood.plan/v1\nproposals: []", "fumehood.cases/v1"},
		"no case":           {"schema: fumehood.cases/v1\ncases: []", "give it at least one item"},
		"typo":              {head + "{name: a, run: ls, wants: allow}", `3:24: cases[0].wants: unknown field "wants": did you mean "want"?`},
		"command":           {head + "{name: a, command: ls, want: allow}", `did you mean "run"?`},
		"typo inside":       {head + "{name: a, exec: {paths: /x}, want: deny}", `cases[0].exec.paths: unknown field "paths": did you mean "path"?`},
		"wrong type":        {head + "{name: a, exec: {path: 3}, want: deny}", "quote it if it is meant as text"},
		"wrong want":        {head + "{name: a, run: ls, want: denied}", `want "allow", "deny" or "ask"`},
		"nothing asked":     {head + "{name: a, want: deny}", "has nothing to decide"},
		"nothing wanted":    {head + "{name: a, run: ls}", "expects nothing"},
		"two subjects":      {head + "{name: a, run: ls, exec: {path: /x}, want: deny}", "only one of them is allowed in a case"},
		"two forms":         {head + "{name: a, run: ls, argv: [ls], want: deny}", "only one of them is allowed in a case"},
		"code alone":        {head + "{name: a, code: x, want: deny}", `"language" is missing`},
		"who, of a program": {head + "{name: a, exec: {path: /x}, pr: fork, want: deny}", "does not apply to exec"},
		"network alone":     {head + "{name: a, pr: fork, network: [a.example], want: deny}", "is allowed only with run, argv or code"},
		"want of an event":  {head + "{name: a, event: {kind: connect}, want: deny}", "neither allowed nor denied"},
		"granted by a deny": {head + "{name: a, run: ls, want: deny, granted: {pids: 3}}", "is allowed only with run, argv or code, and with want: allow"},
		"same name":         {head + "{name: a, run: ls, want: deny}\n  - {name: a, run: ls, want: deny}", `the name "a" is already used by cases[0] in line 3`},
		"fields of a plan":  {head + "{name: a, id: x, run: ls, want: deny}", `unknown field "id"`},
		"pr as a word":      {head + "{name: a, pr: forks, want: deny}", `want "fork" or "same-repository"`},
		"alias":             {head + "&a {name: a, run: ls, want: deny}", "anchors are not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			cases, problems := DecodeCases([]byte(c.doc), "cases.yaml")
			var all []string
			for _, p := range problems {
				all = append(all, Describe("cases.yaml", p))
			}
			if cases != nil || !strings.Contains(strings.Join(all, "\n"), c.says) {
				t.Errorf("cases %v, problems %q, want %q", cases, all, c.says)
			}
		})
	}
}

// For any bytes, decoding ends; and every accepted case has something to decide
// and something that is wanted.
func FuzzDecodeCases(f *testing.F) {
	f.Add([]byte(goodCases))
	f.Add([]byte(`{"schema":"fumehood.cases/v1","cases":[{"name":"a","pr":"fork","trigger":{"pr":{"fork":true}},"want":"deny"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		cases, problems := DecodeCases(data, "")
		if (len(cases) == 0) != (len(problems) > 0) {
			t.Fatalf("%d cases and %v", len(cases), problems)
		}
		for _, c := range cases {
			if c.Proposal == nil && len(c.Inputs) == 0 || c.Want == "" && len(c.Rules)+len(c.NotRules) == 0 && c.Granted == nil {
				t.Errorf("a case about nothing: %+v", c)
			}
			for name, input := range c.Inputs {
				if !json.Valid(input) {
					t.Errorf("%s: %s", name, input)
				}
			}
		}
	})
}
