// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Notice is the bot's answer to a user's comment.
type Notice struct {
	Comment int64 // its id
	// Text is Markdown. If it is longer than NoticeRoom units, it is cut at the end
	// of a line; an open fence is closed there.
	Text string
	// Start, if not 0, is the run that is started by this request. It is counted in
	// State.Starts even if the text is not shown.
	Start int64
	// Time is the time of the answer; only its day is kept. It must be set with Start.
	Time time.Time
}

// Results are the results of one run, or a review of findings.
type Results struct {
	Section // totals above 100,000 are stored as 100,000
	// Pending are approved together, so that all or none are kept: none if one is out of bounds, if
	// there are more than MaxPending, or if there is no room for the Asked units that show them. See
	// Room.Askable; Outcome.State has those that are kept.
	Asked int
	// Body renders what is below the section's heading. It must not contain a line of the comment's
	// own format; such a line is escaped.
	Body func(Room) string
	// Answered removes the notice if it answers the comment with this id or an
	// earlier one. 0 keeps it.
	Answered int64
	// Done says that this is a review that ended normally.
	Done bool

	unaskable bool // Pending were dropped
}

// A Room is passed to Body: the space for the results, and the state of the pull
// request just before writing.
type Room struct {
	Units int    // the maximum UTF-16 units that Body may return
	Head  string // the pull request's current head
	Moved bool   // Head is not the commit of the results
	// Askable says that Units are enough to show everything that waits for approval, and that the
	// state holds it. If it is false, nothing in the results can be approved.
	Askable bool
	Closed  bool // also true for merged ones
}

// A change is one update of the comment.
type change interface {
	check() error
	// apply returns the new sheet; s is the current one.
	apply(s sheet, pr github.PullRequest, l layout) (sheet, error)
	// applied reports whether s contains the change.
	applied(s sheet) bool
}

func (n Notice) check() error {
	switch {
	case !isValidID(n.Comment):
		return invalidError(errors.New("a notice requires the id of a comment"))
	case n.Start != 0 && (!isValidID(n.Start) || n.Time.IsZero() || DayOf(n.Time) > maxDay || DayOf(n.Time) < 0):
		return invalidError(errors.New("a start requires a run id and a time"))
	}
	return nil
}

func (n Notice) apply(s sheet, pr github.PullRequest, _ layout) (sheet, error) {
	if n.Start != 0 {
		started := sheet{State: State{Starts: []Start{{RunID: n.Start, Day: DayOf(n.Time)}}}}
		s = mergeSheets(started, s, pr.Head.SHA)
	}
	if s.Notice.Comment <= n.Comment {
		s.Notice, s.notice = AnsweredComment{Comment: n.Comment}, cutAtLine(escapeMarks(n.Text), NoticeRoom)
	}
	return s, nil
}

func (n Notice) applied(s sheet) bool { return s.Notice.Comment == n.Comment }

func (r Results) check() error {
	if r.Body == nil {
		return invalidError(errors.New("results require a body"))
	}
	if err := r.Section.check(); err != nil {
		return invalidError(err)
	}
	return nil
}

// dropInvalid drops what a State cannot hold. Names and counts may come from an
// untrusted report; a bad one must not prevent the comment.
func (r Results) dropInvalid() Results {
	t := &r.Totals
	for _, n := range []*int{&t.Proposed, &t.Allowed, &t.Denied, &t.Asked, &t.Succeeded, &t.Failed, &t.CouldNotRun,
		&t.FailedBefore, &t.NotRun} {
		*n = min(*n, maxCount)
	}
	bad := func(p Pending) bool { return p.check() != nil }
	if len(r.Pending) > MaxPending || slices.ContainsFunc(r.Pending, bad) {
		r.Pending, r.unaskable = nil, true
	}
	r.Body = cacheRendering(r.Body)
	if r.Mark == "✅" && (r.SelfReported || r.Conclusion != "success") {
		r.Mark = ""
	}
	if !titleText.MatchString(r.Title) {
		r.Title = ": " + r.Conclusion
	}
	return r
}

// cacheRendering caches the rendering of a room: slow rendering is then not repeated at
// the next try, and does not prevent the comment from being written in time.
func cacheRendering(body func(Room) string) func(Room) string {
	if body == nil {
		return nil
	}
	var last *Room
	var text string
	return func(room Room) string {
		if last == nil || !reflect.DeepEqual(*last, room) {
			last, text = &room, body(room)
		}
		return text
	}
}

func (r Results) apply(s sheet, pr github.PullRequest, l layout) (sheet, error) {
	head := pr.Head.SHA
	s = s.removeAnswered(r.Answered)
	if r.Source.Review {
		s.State.Review = newestReview(s.State, State{Review: &Reviewed{r.Source, r.Stamp, r.Done}}, head)
	}
	next := mergeSheets(s, sheet{State: State{Sections: []Section{r.Section}}}, head)
	if !r.isHeldBy(next) {
		return s, nil
	}
	room := l.roomFor(next, r, head)
	room.Head, room.Moved, room.Closed = head, head != r.Head, pr.State == "closed"
	room.Askable = room.Askable && !r.unaskable
	return r.renderSection(next, room)
}

// renderSection renders the section.
func (r Results) renderSection(s sheet, room Room) (sheet, error) {
	s.Sections = slices.Clone(s.Sections)
	for i := range s.Sections {
		x := &s.Sections[i]
		if x.Source != r.Source {
			continue
		}
		if x.text = escapeMarks(r.Body(room)); !fitsRoom(x.text, room.Units) {
			return s, tooLong(room.Units)
		}
		if !room.Askable {
			x.Pending = nil
		}
	}
	return s, nil
}

// isHeldBy reports whether the section of r in s is r's, and not a newer one or a worse one of the same
// attempt.
func (r Results) isHeldBy(s sheet) bool {
	x, there := s.findSection(r.Source)
	return there && x.Stamp == r.Stamp && x.severityRank() == r.severityRank()
}

// removeAnswered removes the notice if it answers the comment with this id or an earlier one.
func (s sheet) removeAnswered(id int64) sheet {
	if s.Notice.Comment > 0 && s.Notice.Comment <= id {
		s.Notice.Cleared, s.notice = true, ""
	}
	return s
}

func (r Results) applied(s sheet) bool { return r.isHeldBy(s) }

func invalidError(err error) error {
	return &proposal.StopError{Code: "comment.invalid", Message: "cannot write this to a comment", Err: err}
}

func tooLong(room int) error {
	return &proposal.StopError{
		Code: "comment.too-long", Message: fmt.Sprintf("the results need more than %d characters", room),
		Hint: "see the full results in the report's artifact and the step summary",
	}
}
