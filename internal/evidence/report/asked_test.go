// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func askedFor(n int, change func(*proposal.Proposal)) []Part {
	var r proposal.Report
	for i := range n {
		p := proposal.Proposal{ID: fmt.Sprint("p", i), Run: "sort a\n"}
		if change != nil {
			change(&p)
		}
		r.Records = append(r.Records, proposal.Record{Proposal: p, Analysis: proposal.Analysis{Canonical: p.Run}, Decision: proposal.Decision{Effect: proposal.Ask}})
	}
	return []Part{{Report: r}}
}

// Everything that a page offers for approval is shown in full, even at the smallest
// limit.
func TestAskable(t *testing.T) {
	tests := []struct {
		name   string
		n      int
		change func(*proposal.Proposal)
		want   bool
	}{
		{"a command", 1, nil, true},
		{"as many as there is room for", 15, nil, true},
		{"too many", 17, nil, false},
		{"a line that is cut in its middle", 1, func(p *proposal.Proposal) { p.Run = "sort " + strings.Repeat("a ", 1500) }, false},
		{"long lines", 1, func(p *proposal.Proposal) { p.Run = strings.Repeat("sort a\n", 1500) }, true},
		{"too many lines", 1, func(p *proposal.Proposal) { p.Run = strings.Repeat("sort a\n", 3000) }, false},
		{"much on standard input", 1, func(p *proposal.Proposal) { p.Stdin = strings.Repeat("a\n", 20000) }, false},
		{"a long variable", 1, func(p *proposal.Proposal) { p.Env = map[string]string{"A": strings.Repeat("a", 3000)} }, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			mark := "ends here"
			parts := askedFor(test.n, func(p *proposal.Proposal) {
				if test.change != nil {
					test.change(p)
				}
				p.Stdin += mark
			})
			if got := Askable(parts); got != test.want {
				t.Fatalf("askable %t, want %t", got, test.want)
			}
			if !test.want {
				return
			}
			for _, limit := range []int{MaxComment, MaxComment / 2, 24500} {
				s := Page{Parts: parts, Pending: &Pending{Command: "/fumehood approve 3fa2b91c"}, Limit: limit}.Body()
				if n := strings.Count(s, mark); n != test.n || text.CountUnits(s) > limit {
					t.Errorf("limit %d: %d of %d are shown in %d units", limit, n, test.n, text.CountUnits(s))
				}
			}
		})
	}
}
