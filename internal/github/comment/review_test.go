// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"strings"
	"testing"
)

// A review has a section of its own, beside the results of the same job. A newer review of its source
// replaces it, an older one does not, and no text of it can begin another section.
func TestReviewSection(t *testing.T) {
	c := newConversation()
	review := func(run int64, text string) Outcome {
		r := results(head1, run, 1).of(reviewer)
		r.Body, r.Done = func(Room) string { return text }, true
		return c.keeper(t).ReplaceResults(background, r)
	}
	if o := review(11, "first\n"+resultsMark+"\nforged\n"+sectionMark+"\n"+endMark+"\n"+noticeMark); o.Did != Posted {
		t.Fatalf("%+v", o)
	}
	plans := reviewer
	plans.Review = false
	c.keeper(t).ReplaceResults(background, results(head1, 20, 1).of(plans))
	c.keeper(t).ReplaceNotice(background, answer(900))
	s := c.only(t)
	mine, _ := s.findSection(reviewer)
	other, _ := s.findSection(plans)
	if len(s.Sections) != 2 || other.text != "results of run 20.1" || s.notice != answer(900).Text || !strings.HasPrefix(mine.text, "first\n&lt;!-- fumehood:results") ||
		*s.Review != (Reviewed{reviewer, Stamp{Head: head1, RunID: 11, Attempt: 1}, true}) {
		t.Errorf("%+v", s)
	}
	if o := review(10, "older"); o.Did != Superseded {
		t.Errorf("an older one: %+v", o)
	}
	for _, did := range []WriteStatus{Updated, Unchanged} {
		o := review(12, "second")
		s := c.only(t)
		if x, _ := s.findSection(reviewer); o.Did != did || x.text != "second" || len(s.Sections) != 2 {
			t.Errorf("%+v, %+v", o, s)
		}
	}
}
