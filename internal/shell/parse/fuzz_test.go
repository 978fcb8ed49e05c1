// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// FuzzAnalyze checks the promises that Analyze makes for any input.
func FuzzAnalyze(f *testing.F) {
	lanetest.SkipShort(f)
	for _, sample := range samples(f, "plain.txt", "nested.txt", "words.txt", "refused.txt") {
		f.Add(sample.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		analysis := Analyze(proposal.Proposal{Run: text})
		if diff := cmp.Diff(analysis, Analyze(proposal.Proposal{Run: text})); diff != "" {
			t.Fatalf("two readings differ:\n%s", diff)
		}
		if len(analysis.Commands) == 0 && len(analysis.Unknowns) == 0 {
			t.Fatal("neither a command nor an Unknown")
		}
		longest := max(len(text), len(analysis.Canonical))
		for _, unknown := range analysis.Unknowns {
			checkUnknown(t, unknown, longest)
		}
		for i, command := range analysis.Commands {
			if command.Index != i || command.Span.Start < 0 || command.Span.End > len(analysis.Canonical) {
				t.Fatalf("command %d: index %d, span %v in %d bytes", i, command.Index, command.Span, len(analysis.Canonical))
			}
		}
		if len(analysis.Unknowns) == 0 {
			checkFixedPoint(t, analysis)
		}
	})
}

func checkUnknown(t *testing.T, unknown proposal.Unknown, longest int) {
	t.Helper()
	if unknown.Code == "" || unknown.Message == "" || unknown.Hint == "" {
		t.Fatalf("an Unknown says nothing: %+v", unknown)
	}
	span := unknown.Span
	if span.Start < 0 || span.End < span.Start || span.End > longest || span.Line < 1 || span.Col < 1 {
		t.Fatalf("an Unknown points nowhere: %+v", unknown)
	}
}

// checkFixedPoint analyzes the canonical text: it must have the same meaning and
// print unchanged.
func checkFixedPoint(t *testing.T, analysis proposal.Analysis) {
	t.Helper()
	again := Analyze(proposal.Proposal{Run: analysis.Canonical})
	if diff := cmp.Diff(analysis, again); diff != "" {
		t.Fatalf("the canonical text %q is read differently:\n%s", analysis.Canonical, diff)
	}
}

func BenchmarkAnalyze(b *testing.B) {
	for name, text := range map[string]string{
		"one":      "go test ./internal/shell/parse -run TestHeredoc -count=1",
		"pipeline": "cd sub && go test ./... 2>&1 | grep -E '^(ok|FAIL)' | tail -5",
		"wrapped":  "timeout 60 env GOFLAGS=-mod=mod bash -c 'go vet ./... && go test ./...'",
		"loop":     "for f in a.go b.go; do echo \"$f\"; out=$(wc -l <\"$f\"); echo $((out + 1)); done",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if a := Analyze(proposal.Proposal{Run: text}); len(a.Unknowns) > 0 {
					b.Fatal(a.Unknowns)
				}
			}
		})
	}
}
