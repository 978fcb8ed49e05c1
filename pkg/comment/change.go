// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/fumehood/fumehood/pkg/github"
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

// Results are the results of one run.
type Results struct {
	Result // totals above 100,000 are stored as 100,000
	// Pending are kept up to MaxPending. Entries that are out of bounds are dropped
	// and so cannot be approved; Outcome.State has those that are kept.
	Pending []Pending
	// Body renders the results. It must not contain a line of the comment's own
	// format; such a line is escaped.
	Body func(Room) string
	// Answered removes the notice if it answers the comment with this id or an
	// earlier one. 0 keeps it.
	Answered int64
}

// A Review is the summary of a review, which has a section of its own.
type Review struct {
	Reviewed
	Text string // Markdown of at most ReviewRoom units; longer text is cut at the end of a line
	// Answered removes the notice if it answers the comment with this id or an
	// earlier one. 0 keeps it.
	Answered int64
}

func (r Review) check() error {
	if err := r.Stamp.check(); err != nil {
		return invalid(err)
	}
	return nil
}

func (r Review) apply(s sheet, pr github.PullRequest, _ int) (sheet, error) {
	s = s.answered(r.Answered)
	if !s.reviewed().beats(r.Stamp, pr.Head.SHA) {
		s.Review, s.review = &r.Reviewed, cut(section(r.Text), ReviewRoom)
	}
	return s, nil
}

func (r Review) applied(s sheet) bool { return s.reviewed() == r.Stamp }

// A Room is passed to Body: the space for the results, and the state of the pull
// request just before writing.
type Room struct {
	Units   int      // the maximum UTF-16 units that Body may return
	Head    string   // the pull request's current head
	Moved   bool     // Head is not the commit of the results
	Closed  bool     // also true for merged ones
	Earlier []Result // of other commits, newest first
}

// A change is one update of the comment.
type change interface {
	check() error
	// apply returns the new sheet; s is the current one.
	apply(s sheet, pr github.PullRequest, room int) (sheet, error)
	// applied reports whether s contains the change.
	applied(s sheet) bool
}

func (n Notice) check() error {
	switch {
	case !id(n.Comment):
		return invalid(errors.New("a notice requires the id of a comment"))
	case n.Start != 0 && (!id(n.Start) || n.Time.IsZero() || DayOf(n.Time) > maxDay || DayOf(n.Time) < 0):
		return invalid(errors.New("a start requires a run id and a time"))
	}
	return nil
}

func (n Notice) apply(s sheet, pr github.PullRequest, _ int) (sheet, error) {
	if n.Start != 0 {
		started := sheet{State: State{Starts: []Start{{RunID: n.Start, Day: DayOf(n.Time)}}}}
		s = join(started, s, pr.Head.SHA)
	}
	if s.Notice.Comment <= n.Comment {
		s.Notice, s.notice = Answered{Comment: n.Comment}, cut(section(n.Text), NoticeRoom)
	}
	return s, nil
}

func (n Notice) applied(s sheet) bool { return s.Notice.Comment == n.Comment }

func (r Results) check() error {
	if r.Body == nil {
		return invalid(errors.New("results require a body"))
	}
	if err := r.Result.check(); err != nil {
		return invalid(err)
	}
	return nil
}

// bounded drops what a State cannot hold. Names and counts may come from an
// untrusted report; a bad one must not prevent the comment.
func (r Results) bounded() Results {
	t := &r.Totals
	for _, n := range []*int{&t.Proposed, &t.Allowed, &t.Denied, &t.Asked, &t.Succeeded, &t.Failed} {
		*n = min(*n, maxCount)
	}
	var kept []Pending
	for _, p := range r.Pending {
		if p.check() == nil && len(kept) < MaxPending {
			kept = append(kept, p)
		}
	}
	r.Pending, r.Body = kept, cached(r.Body)
	return r
}

// cached caches the rendering of a room: slow rendering is then not repeated at
// the next try, and does not prevent the comment from being written in time.
func cached(body func(Room) string) func(Room) string {
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

func (r Results) apply(s sheet, pr github.PullRequest, room int) (sheet, error) {
	head := pr.Head.SHA
	s = s.answered(r.Answered)
	if s.stamp().beats(r.Stamp, head) {
		return s, nil
	}
	s = join(s, sheet{State: State{Result: &r.Result, Pending: r.Pending}}, head)
	s.results = section(r.Body(Room{
		Units: room, Head: head, Moved: head != r.Head, Closed: pr.State == "closed", Earlier: s.Earlier,
	}))
	if !fits(s.results, room) {
		return s, tooLong(room)
	}
	return s, nil
}

// answered removes the notice if it answers the comment with this id or an earlier one.
func (s sheet) answered(id int64) sheet {
	if s.Notice.Comment > 0 && s.Notice.Comment <= id {
		s.Notice.Cleared, s.notice = true, ""
	}
	return s
}

func (r Results) applied(s sheet) bool { return s.stamp() == r.Stamp }

func invalid(err error) error {
	return &proposal.StopError{Code: "comment.invalid", Message: "cannot write this to a comment", Err: err}
}

func tooLong(room int) error {
	return &proposal.StopError{
		Code: "comment.too-long", Message: fmt.Sprintf("the results need more than %d characters", room),
		Hint: "see the full results in the report's artifact and the step summary",
	}
}
