// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/review"
)

// A review that does not mention findings which an earlier one verified says which are still open, and
// since which commit. Those whose threads are resolved are not.
func TestOpenFindings(t *testing.T) {
	lanetest.SkipShort(t)
	w := small(t)
	if o := w.post(w.document(finding(10), finding(11))); o.Created != 2 || len(o.Open) != 0 {
		t.Fatalf("%+v", o)
	}
	first := w.head
	w.push(smallFiles("ten\neleven\nand more\n"))
	o := w.post(w.document())
	if len(o.Open) != 2 || o.Open[0].Path != "f" || o.Open[0].Since != first || o.Open[0].URL == "" {
		t.Fatalf("open: %+v", o.Open)
	}
	d := w.document()
	s := d.RenderSummary(review.SummaryOptions{Units: summaryUnits, Open: o.Open})
	if !strings.Contains(s, "2 verified findings of earlier reviews still open:") || strings.Count(s, ", open since commit `"+first[:12]+"`") != 2 {
		t.Errorf("summary:\n%s", s)
	}
	gone := w.document(finding(10))
	gone.Results[0].Verdict = review.NotReproduced
	w.post(gone)
	if o := w.post(w.document()); len(o.Open) != 1 {
		t.Errorf("after one is gone: %+v", o.Open)
	}
}

// A claim is shown as plain text, and nothing in it is a mention, a link or Markdown.
func TestClaimIsPlain(t *testing.T) {
	w := small(t)
	f := finding(10)
	f.Claim = "The sum is wrong for **negative** numbers, says @octocat: see https://evil.example"
	d := w.document(f)
	s := d.RenderSummary(review.SummaryOptions{Units: summaryUnits})
	if !strings.Contains(s, "<p>The sum is wrong for <code>**negative**</code> numbers, says <code>@octocat:</code>") || strings.Contains(s, "```text") {
		t.Errorf("summary:\n%s", s)
	}
}
