// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"testing"
)

// The field new-sandbox has the deprecated name fresh, in plans and in cases.
func TestNewSandbox(t *testing.T) {
	const warning = `%s:%d:%d: proposals[0].fresh: field "fresh" is deprecated: use "new-sandbox"`
	cases := []struct {
		name, yaml, json string // fields of the proposal
		fresh            bool
		warned           bool
	}{
		{"neither", "", "", false, false},
		{"true", "new-sandbox: true", `,"new-sandbox":true`, true, false},
		{"false", "new-sandbox: false", `,"new-sandbox":false`, false, false},
		{"old name", "fresh: true", `,"fresh":true`, true, true},
		{"old name, false", "fresh: false", `,"fresh":false`, false, true},
		{"both", "fresh: true\n    new-sandbox: true", `,"fresh":true,"new-sandbox":true`, true, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for name, doc := range map[string]string{
				"p.yaml": "schema: fumehood.plan/v1\nproposals:\n  - id: a\n    run: ls\n    " + c.yaml + "\n  - {id: b, run: ls, fresh: " + fmt.Sprint(c.warned) + "}\n",
				"p.json": `{"schema":"fumehood.plan/v1","proposals":[{"id":"a","run":"ls"` + c.json + `}]}`,
			} {
				if name == "p.yaml" && !c.warned {
					doc = doc[:len(doc)-len("  - {id: b, run: ls, fresh: false}\n")]
				}
				p := mustDecode(t, []byte(doc), name)
				if p.Proposals[0].Fresh != c.fresh {
					t.Errorf("%s: fresh is %v, want %v", name, p.Proposals[0].Fresh, c.fresh)
				}
				var got, want []string
				for _, w := range Warnings([]byte(doc), name) {
					got = append(got, Describe(name, w))
				}
				if at := map[string][2]int{"p.yaml": {5, 5}, "p.json": {1, 64}}[name]; c.warned { // once for a document
					want = []string{fmt.Sprintf(warning, name, at[0], at[1])}
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s: warnings %q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestNewSandboxContradiction(t *testing.T) {
	for doc, want := range map[string]string{
		"schema: fumehood.plan/v1\nproposals:\n  - id: a\n    run: ls\n    new-sandbox: true\n    fresh: false\n":       `x:6:12: proposals[0].fresh: contradicts "new-sandbox" in line 5: leave it out`,
		`{"schema":"fumehood.plan/v1","proposals":[{"id":"a","run":"ls","fresh":true,"new-sandbox":false}]}`:            `x:1:72: proposals[0].fresh: contradicts "new-sandbox" in line 1: leave it out`,
		"schema: fumehood.plan/v1\nproposals:\n  - id: a\n    run: ls\n    new-sandbox: true\n    new-sandbox: false\n": `x:6:5: proposals[0].new-sandbox: is given twice, first in line 5`,
	} {
		problems := faults([]byte(doc), "")
		if len(problems) != 1 || Describe("x", problems[0]) != want {
			t.Errorf("problems %v, want %s", problems, want)
		}
	}
	cases, problems := DecodeCases([]byte("schema: fumehood.cases/v1\ncases:\n  - {name: a, run: ls, new-sandbox: true, want: allow}\n"), "")
	if len(problems) > 0 || !cases[0].Proposal.Fresh {
		t.Errorf("cases %+v, problems %v", cases, problems)
	}
	_, problems = DecodeCases([]byte("schema: fumehood.cases/v1\ncases:\n  - {name: a, run: ls, new-sandbox: true, fresh: false, want: allow}\n"), "")
	if len(problems) != 1 {
		t.Errorf("problems %v, want a contradiction", problems)
	}
}

// A rejected document has no warnings: its problems say enough.
func TestWarningsOfRejected(t *testing.T) {
	for _, doc := range []string{"", "x", "[]", "{", `{"proposals":5}`, "proposals: [5, {fresh: true}]", "proposals: [null]"} {
		if w := Warnings([]byte(doc), ""); w != nil {
			t.Errorf("%s: warnings %v", doc, w)
		}
	}
}
