// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const maxRead = 32 << 20

// written are the cases that follow every rule. The attack texts do not.
var written = []string{"all_ok", "mixed", "stopped", "limits", "empty", "huge", "many", "approved", "observed", "cancelled", "fork", "watched", "retried",
	"missing_dependencies", "missing_tool", "missing_toolchain", "missing_network", "missing_service", "missing_mixed", "missing_withheld", "missing_setup"}

func document(t testing.TB, r proposal.Report) []byte {
	t.Helper()
	data, err := JSON(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestReadWhatWeWrite(t *testing.T) {
	lanetest.SkipShort(t)
	all := cases()
	for _, name := range written {
		r := all[name]
		got, err := Read(document(t, r), maxRead)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(r, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestReadRefuses changes one thing in a valid document.
func TestReadRefuses(t *testing.T) {
	whole := string(document(t, mixed()))
	for _, tt := range []struct{ name, old, new, want string }{
		{"schema", `"fumehood.report/v1"`, `"fumehood.report/v2"`, "schema, line 2, column"},
		{"not JSON", `"records": [`, `"records": [,`, "is not JSON"},
		{"two documents", "}\n", "}\n", ""},
		{"unknown field", `"schema"`, `"x": 1, "schema"`, `has the unknown field "x"`},
		{"unknown field deep", `"run": "npm publish --dry-run"`, `"run": "npm publish --dry-run", "allowed": true`, `records[5].proposal, line`},
		{"twice", `"pr": 12`, `"pr": 12, "pr": 13`, "run, line 10, column 19: has the field pr twice"},
		{"twice in another case", `"pr": 12`, `"pr": 12, "PR": 13`, `has the unknown field "PR"`},
		{"one field for another", `"totals"`, `"audit"`, "audit, line"},
		{"a field of another name", "\"leftover\": 0\n", "\"new_leftover\": 0\n", `has the unknown field "new_leftover"`},
		{"missing field", "\"new_sandbox\": true,\n", "", "lacks the field new_sandbox"},
		{"effect", `"effect": "ask"`, `"effect": "maybe"`, "records[5].decision.effect, line"},
		{"status", `"status": "timed out"`, `"status": "passed"`, "records[6].result.status"},
		{"number for a text", `"id": "soak"`, `"id": 4`, "is not a string"},
		{"fraction", `"pr": 12`, `"pr": 1.5`, "run.pr, line"},
		{"huge number", `"pr": 12`, `"pr": 99999999999999999999`, "run.pr, line"},
		{"negative", `"wall_ms": 2345`, `"wall_ms": -1`, "is not a valid count"},
		{"null for a record", `"result": {`, `"result": null, "x": {`, `has the unknown field "x"`},
		{"head", sha, "3f1c9a0", "run.head_sha"},
		{"head in capitals", sha, strings.ToUpper(sha), "run.head_sha"},
		{"digest", `"policy_digest": "sha256:`, `"policy_digest": "sha512:`, "run.policy_digest"},
		{"id", `"id": "soak"`, `"id": "so ak"`, "records[6].proposal.id"},
		{"id twice", `"id": "soak"`, `"id": "unit"`, "is not unique"},
		{"totals", `"succeeded": 2`, `"succeeded": 8`, "totals, line"},
		{"denied and run", `"effect": "allow"`, `"effect": "deny"`, "exists although the decision does not allow a run"},
		{"allowed against its reasons", `"effect": "ask",`, `"effect": "allow",`, "is weaker than its reasons"},
		{"mode", `"plan_digest"`, `"mode": "audit", "plan_digest"`, "run.mode"},
		{"output of another digest", digest(failingTest), digest("x"), "is not the digest of the kept output"},
		{"output that is not counted", `"bytes": 213`, `"bytes": 21`, "does not match the kept output"},
		{"base64", `"head": "PT`, `"head": "*T`, "is not base64"},
		{"two forms", `"run": "npm publish --dry-run"`, `"run": "x", "code": "y"`, "does not have exactly one of"},
		{"not UTF-8", "unit", "un\xffit", "is not UTF-8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "two documents" {
				checkRefused(t, whole+"{}", "is not JSON")
				return
			}
			if !strings.Contains(whole, tt.old) {
				t.Fatalf("the document has no %s", tt.old)
			}
			checkRefused(t, strings.Replace(whole, tt.old, tt.new, 1), tt.want)
		})
	}
}

func checkRefused(t *testing.T, document, want string) {
	t.Helper()
	r, err := Read([]byte(document), maxRead)
	var stop *proposal.StopError
	if !errors.As(err, &stop) || stop.Code != "report.malformed" || stop.Hint == "" {
		t.Fatalf("got %v, want a StopError with code report.malformed", err)
	}
	if !strings.Contains(stop.Message, want) {
		t.Errorf("message %q does not say %q", stop.Message, want)
	}
	if r.Schema != "" || r.Records != nil {
		t.Error("a refused report was returned all the same")
	}
}

// TestReadRefusesLies builds reports that are JSON of the right shape but cannot be true.
func TestReadRefusesLies(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(*proposal.Report)
		want string
	}{
		{"approved for another commit", func(r *proposal.Report) { r.Records[0].Approval.HeadSHA = strings.Repeat("1", 40) }, "records[0].approval"},
		{"approved for another plan", func(r *proposal.Report) { r.Records[0].Approval.PlanDigest = "sha256:" + digest("x") }, "records[0].approval"},
		{"approved though denied", func(r *proposal.Report) { r.Records[0].Decision.Effect = proposal.Deny }, "has an approval but needs none"},
		{"approved by nobody", func(r *proposal.Report) { r.Records[0].Approval.By = "" }, "approval.by"},
		{"no result", func(r *proposal.Report) { r.Records[0].Result = nil }, "is missing"},
		{"unanalyzable but run", func(r *proposal.Report) { r.Records[1].Analysis.Unknowns = []proposal.Unknown{{Code: "x"}} }, "could not be analyzed"},
		{"invalid but run", func(r *proposal.Report) { r.Records[1].Proposal.Invalid = invalid("x").Proposal.Invalid }, "is invalid and has a command"},
		{"invalid but allowed", func(r *proposal.Report) {
			r.Records[1].Proposal, r.Records[1].Decision = invalid("x").Proposal, proposal.Decision{Effect: proposal.Allow}
		}, "allows an invalid proposal"},
		{"invalid without a problem", func(r *proposal.Report) {
			r.Records[1] = invalid("x")
			r.Records[1].Proposal.Invalid.Problems = []proposal.Problem{}
		}, "is not the problems of a proposal"},
		{"too many records", func(r *proposal.Report) { r.Records = many(401).Records }, "more than 400 items"},
		{"long text", func(r *proposal.Report) { r.Run.Version = strings.Repeat("x", maxText+1) }, "run.fumehood_version"},
		{"exit code", func(r *proposal.Report) { r.Records[1].Result.ExitCode = 256 }, "exit_code"},
		{"test results of another digest", func(r *proposal.Report) {
			r.Records[1].Result.ExitCode = 1
			r.Records[1].Result.TestResults = proposal.Stream{Bytes: 1, SHA256: strings.Repeat("0", 64), Head: []byte("x")}
		}, "test_results.sha256, line"},
		{"test results that are not counted", func(r *proposal.Report) {
			r.Records[1].Result.ExitCode = 1
			r.Records[1].Result.TestResults = proposal.Stream{Head: []byte("x")}
		}, "test_results"},
		{"test results of a success", func(r *proposal.Report) {
			r.Records[1].Result.TestResults = proposal.Stream{Bytes: 1, SHA256: "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881", Head: []byte("x")}
		}, "are of a command that did not fail"},
		{"kind of change", func(r *proposal.Report) {
			r.Records[1].Result.Changes.Files = []proposal.Change{{Path: "a", Kind: "stolen", Type: "file"}}
		}, "changes.files[0].kind"},
		{"reason of no command", func(r *proposal.Report) {
			r.Records[0].Decision.Reasons[0].Command = 7
		}, "decision.reasons[0].command"},
		{"repository", func(r *proposal.Report) { r.Run.Repository = "a/b/../c" }, "run.repository"},
		{"error code", func(r *proposal.Report) { r.Error = &proposal.Failure{Code: "A b"} }, "error.code"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := approvedRun()
			tt.edit(&r)
			r.Totals = proposal.Total(r.Records)
			checkRefused(t, string(document(t, r)), tt.want)
		})
	}
}

func TestReadBounds(t *testing.T) {
	data := document(t, mixed())
	if _, err := Read(data, len(data)); err != nil {
		t.Error(err)
	}
	checkRefused(t, strings.Repeat("[", 1<<20), "is not JSON")
	checkRefused(t, "null", "has the wrong type")
	checkRefused(t, "", "is not JSON")
	if _, err := Read(data, len(data)-1); err == nil {
		t.Error("a report of one byte too many was read")
	}
}

func FuzzRead(f *testing.F) {
	lanetest.SkipShort(f)
	all := cases()
	for _, name := range written {
		if data := document(f, all[name]); len(data) < 64<<10 {
			f.Add(data)
		}
	}
	f.Add([]byte(`{"schema":"fumehood.report/v1","run":{},"records":[],"totals":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Read(data, 1<<20)
		if err != nil {
			return
		}
		again := document(t, r)
		second, err := Read(again, maxRead)
		if err != nil {
			t.Fatalf("what was read is refused when written again: %v", err)
		}
		if !bytes.Equal(again, document(t, second)) {
			t.Error("a second reading differs")
		}
		checkComment(t, r, Markdown(r))
	})
}

func BenchmarkRead(b *testing.B) {
	data := document(b, huge(50, 64<<10))
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := Read(data, maxRead); err != nil {
			b.Fatal(err)
		}
	}
}
