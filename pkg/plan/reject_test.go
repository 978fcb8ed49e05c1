// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/golden"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func badPlans(t testing.TB) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"testdata/bad/*.yaml", "testdata/bad/*.json"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no plans match %s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	return files
}

// faults returns the problems of a document, or those of the proposals that it has.
func faults(data []byte, name string) []proposal.Problem {
	p, problems := Decode(data, name)
	return append(problems, p.Refused()...)
}

// Each file in testdata/bad has its problems next to it, one per line, in a file of
// the same name plus .out.
func TestReject(t *testing.T) {
	for _, file := range badPlans(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			problems := faults(golden.Read(t, file), file)
			if len(problems) == 0 {
				t.Fatal("accepted")
			}
			var out bytes.Buffer
			for _, p := range problems {
				fmt.Fprintln(&out, Describe(filepath.Base(file), p))
			}
			golden.Compare(t, file+".out", out.Bytes())
		})
	}
}

// The problems are the same in both formats: only positions may differ, and the
// order of two problems whose places the formats order differently.
func TestRejectAlike(t *testing.T) {
	pairs := 0
	for _, file := range badPlans(t) {
		twin := strings.TrimSuffix(file, "yaml") + "json"
		if twin == file || !exists(twin) || filepath.Base(file) == "broken.yaml" {
			continue // each parser has its own syntax errors
		}
		pairs++
		yaml := faults(golden.Read(t, file), file)
		json := faults(golden.Read(t, twin), twin)
		if diff := cmp.Diff(complaints(yaml), complaints(json)); diff != "" {
			t.Errorf("%s and %s (-yaml +json):\n%s", file, twin, diff)
		}
	}
	if pairs < 10 {
		t.Errorf("compared %d pairs", pairs)
	}
}

func exists(path string) bool {
	found, err := filepath.Glob(path)
	return err == nil && len(found) == 1
}

// complaints counts problems by path and message, with line numbers removed from messages.
func complaints(problems []proposal.Problem) map[string]int {
	counts := map[string]int{}
	for _, p := range problems {
		message, _, _ := strings.Cut(p.Message, " in line ")
		message, _, _ = strings.Cut(message, "; if it is a text") // in brackets of YAML
		counts[p.Path+": "+message]++
	}
	return counts
}

// A limit allows its last value and rejects the next, in both formats.
func TestBounds(t *testing.T) {
	lanetest.SkipShort(t)
	const kib = 1 << 10
	one := func(mutate func(p *proposal.Proposal, n int)) func(n int) proposal.Plan {
		return func(n int) proposal.Plan {
			p := proposal.Proposal{ID: "a", Run: "ls"}
			mutate(&p, n)
			return proposal.Plan{Schema: proposal.PlanSchema, Proposals: []proposal.Proposal{p}}
		}
	}
	cases := []struct {
		name    string
		maximum int
		plan    func(n int) proposal.Plan
		path    string
	}{
		{"id", 64, one(func(p *proposal.Proposal, n int) { p.ID = strings.Repeat("a", n) }), "proposals[0].id"},
		{"run", 16 * kib, one(func(p *proposal.Proposal, n int) { p.Run = strings.Repeat("é", n/2) + strings.Repeat("x", n%2) }), "proposals[0].run"},
		{"code", 64 * kib, one(func(p *proposal.Proposal, n int) {
			p.Run, p.Language, p.Code = "", "sh", strings.Repeat("x", n)
		}), "proposals[0].code"},
		{"stdin", 256 * kib, one(func(p *proposal.Proposal, n int) { p.Stdin = strings.Repeat("x", n) }), "proposals[0].stdin"},
		{"why", 4 * kib, one(func(p *proposal.Proposal, n int) { p.Why = strings.Repeat("x", n) }), "proposals[0].why"},
		{"expect", 4 * kib, one(func(p *proposal.Proposal, n int) { p.Expect = strings.Repeat("x", n) }), "proposals[0].expect"},
		{"cwd", 4 * kib, one(func(p *proposal.Proposal, n int) { p.Cwd = strings.Repeat("x", n) }), "proposals[0].cwd"},
		{"words", 512, one(func(p *proposal.Proposal, n int) { p.Run, p.Argv = "", make([]string, n); p.Argv[0] = "ls" }), "proposals[0].argv"},
		{"argv", 128 * kib, one(func(p *proposal.Proposal, n int) {
			p.Run, p.Argv = "", []string{"ls", strings.Repeat("x", n-2-100), strings.Repeat("y", 100)}
		}), "proposals[0].argv"},
		{"env", 64, one(func(p *proposal.Proposal, n int) {
			p.Env = map[string]string{}
			for i := range n {
				p.Env[fmt.Sprintf("V%d", i)] = ""
			}
		}), "proposals[0].env"},
		{"outputs", 64, one(func(p *proposal.Proposal, n int) { p.Outputs = numbered(n) }), "proposals[0].outputs"},
		{"network", 64, one(func(p *proposal.Proposal, n int) { p.Network = numbered(n) }), "proposals[0].network"},
		{"proposals", 200, func(n int) proposal.Plan {
			p := proposal.Plan{Schema: proposal.PlanSchema}
			for _, id := range numbered(n) {
				p.Proposals = append(p.Proposals, proposal.Proposal{ID: id, Run: "ls"})
			}
			return p
		}, "proposals"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, format := range []string{".json", ".yaml"} {
				mustDecode(t, encode(t, c.plan(c.maximum)), format)
				problems := faults(encode(t, c.plan(c.maximum+1)), format)
				if len(problems) != 1 || problems[0].Path != c.path || !strings.Contains(problems[0].Message, "at most") &&
					!strings.Contains(problems[0].Message, "long") {
					t.Errorf("%s: %d gives problems %v", format, c.maximum+1, problems)
				}
			}
		})
	}
}

func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("n%d", i)
	}
	return names
}

func TestBoundNeeds(t *testing.T) {
	for n, accepted := range map[int]bool{64: true, 65: false} {
		p := proposal.Plan{Schema: proposal.PlanSchema}
		for _, id := range numbered(n) {
			p.Proposals = append(p.Proposals, proposal.Proposal{ID: id, Run: "ls"})
		}
		p.Proposals = append(p.Proposals, proposal.Proposal{ID: "last", Run: "ls", Needs: numbered(n)})
		if problems := faults(encode(t, p), ""); (len(problems) == 0) != accepted {
			t.Errorf("%d needs: problems %v", n, problems)
		}
	}
}

func TestBoundDocument(t *testing.T) {
	doc := []byte(`{"schema":"fumehood.plan/v1","proposals":[{"id":"a","run":"ls"}]}`)
	doc = append(doc, bytes.Repeat([]byte("\n"), MaxDocument-len(doc))...)
	mustDecode(t, doc, "")
	problems := faults(append(doc, '\n'), "")
	want := []proposal.Problem{{Line: 1, Col: 1, Message: "the plan is 1048577 bytes long; at most 1048576 are allowed"}}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
