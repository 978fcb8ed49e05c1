// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/parse"
	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const typical = "go test -race -run TestX ./pkg/..."

// BenchmarkDecide is the budget: parse and Rego, warm, below 250 µs.
func BenchmarkDecide(b *testing.B) {
	engines := map[string]policy.Options{"default": {}, "rules=200": {Dirs: []string{manyRules(b, 200)}}}
	for name, options := range engines {
		e, err := policy.New(b.Context(), options)
		if err != nil {
			b.Fatal(err)
		}
		for _, text := range []string{typical, "cat go.mod", "git diff HEAD~1 --stat", typical + " 2>&1 | tail -n 40"} {
			b.Run(name+"/"+text, func(b *testing.B) {
				p := proposal.Proposal{ID: "b", Run: text}
				var took []time.Duration
				for b.Loop() {
					start := time.Now()
					if d, err := e.Decide(b.Context(), p, parse.Analyze(p)); err != nil || d.Effect != proposal.Allow {
						b.Fatal(d, err)
					}
					took = append(took, time.Since(start))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			})
		}
	}
}

func BenchmarkTrigger(b *testing.B) {
	e := shipped(b)
	for b.Loop() {
		if d, err := e.Trigger(b.Context(), usual()); err != nil || d.Effect != proposal.Allow {
			b.Fatal(d, err)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		if _, err := policy.New(b.Context(), policy.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func manyRules(b *testing.B, n int) string {
	b.Helper()
	var text strings.Builder
	text.WriteString("package fumehood.command\n\n")
	for i := range n {
		fmt.Fprintf(&text, "deny contains {\"rule\": \"x.r%d\", \"message\": \"m\", \"suggestion\": \"s\"} if {\n\tinput.command.program == \"tool%d\"\n\tinput.command.sub == \"x\"\n}\n\n", i, i)
	}
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "many.rego"), []byte(text.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	return dir
}
