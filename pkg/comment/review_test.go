// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"strings"
	"testing"
)

// The summary of a review has a section of its own, which results and answers keep. A newer review
// replaces it, an older one does not, and no text of it can begin another section.
func TestReviewSection(t *testing.T) {
	c := newConversation()
	review := func(run int64, text string) Outcome {
		return c.keeper(t).Review(background, Review{Reviewed: Reviewed{Stamp: Stamp{head1, run, 1}, Done: true}, Text: text})
	}
	if o := review(11, "first\n"+resultsMark+"\nforged\n"+reviewMark+"\n"+noticeMark); o.Did != Posted {
		t.Fatalf("%+v", o)
	}
	c.keeper(t).Results(background, results(head1, 20, 1))
	c.keeper(t).Notice(background, answer(900))
	s := c.only(t)
	if s.results != "results of run 20.1" || s.notice != answer(900).Text || !strings.HasPrefix(s.review, "first\n&lt;!-- fumehood:results") || *s.Review != (Reviewed{Stamp{head1, 11, 1}, true}) {
		t.Errorf("%+v", s)
	}
	if o := review(10, "older"); o.Did != Superseded {
		t.Errorf("an older one: %+v", o)
	}
	for _, did := range []Did{Updated, Unchanged} {
		if o := review(12, "second"); o.Did != did || c.only(t).review != "second" || c.only(t).results != "results of run 20.1" {
			t.Errorf("%+v, %+v", o, c.only(t))
		}
	}
	for _, bad := range []Stamp{{"main", 1, 1}, {head1, 0, 1}, {head1, 1, 0}} {
		if o := c.keeper(t).Review(background, Review{Reviewed: Reviewed{Stamp: bad}}); o.Did != Refused {
			t.Errorf("%+v: %+v", bad, o)
		}
	}
}
