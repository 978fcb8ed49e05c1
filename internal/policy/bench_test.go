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

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/shell/parse"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const typical = "go test -race -run TestX ./pkg/..."

// BenchmarkDecide is the budget: parse and Rego, warm, below 250 µs.
func BenchmarkDecide(b *testing.B) {
	engines := map[string]policy.Options{"default": {}, "rules=200": {Layers: layersOf(b, policy.Restricts, manyRules(b, 200))}}
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

// BenchmarkExec is the part of the exec gate's budget that policy may take: well
// below 150 µs.
func BenchmarkExec(b *testing.B) {
	engines := map[string]policy.Options{"default": {}, "rules=200": {Layers: layersOf(b, policy.Restricts, manyExecRules(b, 200))}}
	built := plainExec()
	built.Path, built.Layer, built.Grants = "/tmp/go-build1/b001/x.test", proposal.LayerWritten, []string{"built"}
	words := plainExec()
	words.Path, words.Argv = "/usr/bin/node", []string{"node", "/usr/lib/node_modules/npm/bin/npm-cli.js", "run", "test"}
	refused := plainExec()
	refused.Path = "/usr/bin/curl"
	for name, options := range engines {
		e, err := policy.New(b.Context(), options)
		if err != nil {
			b.Fatal(err)
		}
		for what, x := range map[string]proposal.Exec{"rootfs": plainExec(), "built": built, "words": words, "refused": refused} {
			b.Run(name+"/"+what, func(b *testing.B) {
				var took []time.Duration
				for b.Loop() {
					start := time.Now()
					if d, err := e.Exec(b.Context(), x); err != nil || (d.Effect == proposal.Allow) == (what == "refused") {
						b.Fatal(d, err)
					}
					took = append(took, time.Since(start))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
			})
		}
	}
}

func manyExecRules(b *testing.B, n int) string {
	b.Helper()
	var text strings.Builder
	text.WriteString("package fumehood.exec\n\n")
	for i := range n {
		fmt.Fprintf(&text, "deny contains {\"rule\": \"x.r%d\", \"message\": \"m\", \"suggestion\": \"s\"} if {\n\tinput.name == \"tool%d\"\n\tinput.words[0] == \"x\"\n}\n\n", i, i)
	}
	return folder(b, "many.rego", text.String())
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
