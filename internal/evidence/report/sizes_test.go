// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// loud has n commands, of all outcomes, with more output than any place has room for, in
// letters that are long in each count.
func loud(n int, letter string) proposal.Report {
	lines := 700
	if sample.IsWhole() {
		lines = 4000
	}
	out := strings.Repeat(strings.Repeat(letter, 50)+"\n", max(4, lines/n))
	var records []proposal.Record
	for i := range n {
		id, cmd := fmt.Sprintf("%d", i), "echo "+strings.Repeat(letter, 500)
		r := ran(id, cmd, proposal.Exited, i%3, out, out)
		r.Proposal.Why, r.Proposal.Expect = strings.Repeat(letter, 1000), "passes "+strings.Repeat(letter, 1000)
		switch i % 7 {
		case 4:
			r = refused(id, cmd, proposal.Deny, proposal.Reason{Rule: "x.y", Message: strings.Repeat(letter+" ", 500), Suggestion: strings.Repeat(letter, 500)})
		case 5:
			r = invalid(id)
			r.Proposal.Invalid.Text = out
		}
		records = append(records, r)
	}
	return finish(proposal.Report{Records: records})
}

// Whatever a run printed, each way to show it keeps GitHub's limit for that place.
func TestSizes(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	letters := []string{"👩‍👩‍👧", "&", "\u202e", "x", "`", "é", "漢", "\xff", "@a "}
	sizes := map[int][]string{1: sample.EveryNth(t, letters, 4, 9), 50: letters[:1]}
	if sample.IsWhole() {
		sizes[50], sizes[500] = letters[:2], letters[:1]
	}
	for n, letters := range sizes {
		for _, letter := range letters {
			r := loud(n, letter)
			page := Page{Parts: []Part{{Name: "a", Report: r}, {Name: "b", Report: r, Foreign: true}}}
			if n == 500 {
				page.Parts = page.Parts[:1] // twice as many take long
			}
			file := filepath.Join(t.TempDir(), "comment.md")
			if err := (Files{Markdown: file}).Write(proposal.Report{Schema: r.Schema, Run: r.Run, Records: r.Records, Totals: r.Totals}, Forms{}); err != nil {
				t.Fatal(err)
			}
			written, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				place string
				text  string
				limit int
			}{
				{"comment", Markdown(r), 65536},
				{"file", string(written), 65536},
				{"comment on two plans", page.Markdown(), 65536},
				{"body", page.Body(), 65536},
				{"check run", page.Check().Summary, 65535},
			} {
				if units := text.CountUnits(c.text); units > c.limit {
					t.Errorf("%d × %q: %s has %d units", n, letter, c.place, units)
				}
				if !strings.Contains(c.text, "fumehood: ") || n < 500 && !strings.Contains(c.text, "<details>") {
					t.Errorf("%d × %q: %s has no heading or no details", n, letter, c.place)
				}
			}
			if bytes := len(page.Summary()); bytes > 1<<20 {
				t.Errorf("%d × %q: step summary has %d bytes", n, letter, bytes)
			}
		}
	}
}
