// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"syscall"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/internal/shell/parse"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// BenchmarkOPA is a whole decision beside the two queries that it takes, put to the same
// modules by OPA alone with the input as JSON values, as a server has it.
func BenchmarkOPA(b *testing.B) {
	e, err := New(b.Context(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	queries := []rego.PreparedEvalQuery{plainPoint(b, module.PointProposal), plainPoint(b, module.PointCommand)}
	for _, text := range []string{"go test -race -run TestX ./pkg/...", "cat go.mod", "git diff HEAD~1 --stat", "npm test"} {
		p := proposal.Proposal{ID: "b", Run: text}
		a := parse.Analyze(p)
		b.Run("fumehood/"+text, func(b *testing.B) {
			b.ReportAllocs()
			defer perDecision(b, processor())
			for b.Loop() {
				if d, err := e.Decide(b.Context(), p, a); err != nil || d.Effect != proposal.Allow {
					b.Fatal(d, err)
				}
			}
		})
		var inputs []any
		for _, d := range e.Documents(p, a) {
			v, err := ast.JSON(d.Input)
			if err != nil {
				b.Fatal(err)
			}
			inputs = append(inputs, v)
		}
		b.Run("opa/"+text, func(b *testing.B) {
			b.ReportAllocs()
			defer perDecision(b, processor())
			for b.Loop() {
				for i, q := range queries {
					if rs, err := q.Eval(b.Context(), rego.EvalInput(inputs[i])); err != nil || len(rs) != 1 {
						b.Fatal(rs, err)
					}
				}
			}
		})
	}
}

// processor is what the process has used, its collector included: unlike the clock it
// says the same on a busy machine.
func processor() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func perDecision(b *testing.B, before time.Duration) {
	b.ReportMetric(float64((processor()-before).Nanoseconds())/1000/float64(b.N), "cpu-µs/op")
}

// BenchmarkDecideParallel is what one Engine decides for all processors at once.
func BenchmarkDecideParallel(b *testing.B) {
	e, err := New(b.Context(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	p := proposal.Proposal{ID: "b", Run: "go test -race -run TestX ./pkg/..."}
	a := parse.Analyze(p)
	defer perDecision(b, processor())
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if d, err := e.Decide(b.Context(), p, a); err != nil || d.Effect != proposal.Allow {
				b.Error(d, err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
}
