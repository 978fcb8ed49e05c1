// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/golden"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func TestFindingsSchemaIsPublished(t *testing.T) {
	golden.Compare(t, "../../testdata/schema/fumehood.findings.v1.json", FindingsSchema())
}

func TestDecodeFindings(t *testing.T) {
	text := "\tend := start + size\n"
	got, problems := DecodeFindings([]byte(`
schema: fumehood.findings/v1
reviewer: a model
tests:
  - run: go test ./...
findings:
  - id: one
    file: page.go
    line: 12
    start_line: 11
    side: base
    severity: high
    claim: the last item is lost
    reproducer: {argv: [go, test, -run, TestLast], timeout: 2m}
    suggestion: "\tend := start + size\n"
  - {id: two, file: a.go, line: 3, claim: no command, start_line: null, side: "", severity: "", reproducer: {}}
`), "findings.yaml")
	want := proposal.ReviewFindings{Schema: proposal.FindingsSchema, Reviewer: "a model", Digest: got.Digest,
		Tests: []proposal.Proposal{{ID: "test-1", Run: "go test ./..."}},
		Findings: []proposal.ReviewFinding{
			{ID: "one", File: "page.go", Line: 12, Start: 11, Side: "base", Severity: "high", Claim: "the last item is lost", Suggestion: &text,
				Reproducer: &proposal.Proposal{ID: "one", Argv: []string{"go", "test", "-run", "TestLast"}, Timeout: proposal.Duration(120e9)}},
			{ID: "two", File: "a.go", Line: 3, Claim: "no command"},
		}}
	if diff := cmp.Diff(want, got); diff != "" || len(problems) > 0 || !strings.HasPrefix(got.Digest, "sha256:") {
		t.Errorf("%v %v", problems, diff)
	}
}

// A mistake costs one finding, one in the envelope all of them.
func TestDecodeFindingsRefuses(t *testing.T) {
	head := "schema: fumehood.findings/v1\nfindings:\n  - {id: good, file: a.go, line: 1, claim: c}\n"
	for _, c := range []struct{ text, want string }{
		{"  - {id: x, file: ../a, line: 1, claim: c}\n", "4:19: findings[1].file"},
		{"  - {id: x, file: /etc/passwd, line: 1, claim: c}\n", "4:19: findings[1].file"},
		{"  - {id: x, file: a, line: 0, claim: c}\n", "4:28: findings[1].line"},
		{"  - {id: x, file: a, line: 1, claim: c, start_line: 2}\n", "4:53: findings[1].start_line: is after line 1"},
		{"  - {id: x, file: a, line: 1, claim: c, reproducer: {run: a, argv: [b]}}\n", "findings[1].reproducer: has run and argv"},
		{"  - {id: x, file: a, line: 1, claim: c, reproducer: {run: a, phase: setup}}\n", "findings[1].reproducer"},
		{"  - {id: x, file: a, line: 1, claim: c, reproducer: {run: a, needs: [good]}}\n", "findings[1].reproducer"},
		{"  - {id: x, file: a, line: 1, claim: c, severity: awful}\n", "findings[1].severity"},
		{"  - {id: x, file: a, line: 1}\n", "findings[1]"},
		{"  - 7\n", "findings[1]"},
	} {
		got, problems := DecodeFindings([]byte(head+c.text), "f.yaml")
		if len(problems) > 0 || len(got.Findings) != 2 || got.Findings[0].Claim != "c" || got.Findings[1].Invalid == nil {
			t.Errorf("%s: %v %+v", c.text, problems, got)
			continue
		}
		if said := Describe("f.yaml", got.Findings[1].Invalid.Problems[0]); !strings.Contains(said, c.want) {
			t.Errorf("%s: %s", c.text, said)
		}
	}
	twice, _ := DecodeFindings([]byte(head+"  - {id: good, file: b, line: 1, claim: d}\n"), "f.yaml")
	if len(twice.Findings) != 2 || twice.Findings[0].Invalid == nil || twice.Findings[1].Invalid == nil || twice.Findings[0].ID == twice.Findings[1].ID {
		t.Errorf("an id twice: %+v", twice)
	}
	for _, text := range []string{"schema: fumehood.findings/v1\nfindings: []\n", `{"schema": "fumehood.findings/v1", "findings": null}`} {
		if got, problems := DecodeFindings([]byte(text), "f"); len(problems) > 0 || len(got.Findings) > 0 {
			t.Errorf("%s: %v %+v", text, problems, got)
		}
	}
	for _, text := range []string{"", "schema: fumehood.plan/v1\nfindings: []\n", head + "tests: [{}]\n", head + "more: 1\n"} {
		if got, problems := DecodeFindings([]byte(text), "f.yaml"); len(problems) == 0 || got.Findings != nil {
			t.Errorf("%q is accepted: %+v", text, got)
		}
	}
}
