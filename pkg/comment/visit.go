// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"cmp"
	"context"
	"time"

	"github.com/fumehood/fumehood/pkg/github"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	maxRounds   = 12
	maxFailures = 4 // writes that nobody knows what became of
)

// A visit is one change on its way into our comment.
type visit struct {
	*Keeper
	change change
	room   int // the most that Body may return

	ours   []github.Comment // by ascending id; as last seen
	listed bool             // ours are all that there are
	others int
	head   string
	known  sheet // everything seen and said so far, joined

	written  bool // the change has been, by us
	did      Did  // what we did or may have done
	failures int
	left     int
	done     bool
}

// round looks at what stands and is done when that is what should; else it writes and
// waits.
func (v *visit) round(ctx context.Context) error {
	if !v.listed {
		if err := v.list(ctx); err != nil {
			return v.unseen(err)
		}
	}
	looked := v.Now()
	pr, err := v.Client.PullRequest(ctx, v.PR)
	if err != nil {
		return v.unseen(err)
	}
	v.head = pr.Head.SHA
	if err := v.look(ctx); err != nil || !v.listed {
		return v.unseen(err)
	}
	if v.known, err = v.next(pr); err != nil {
		return err
	}
	body, err := v.known.body()
	if err != nil {
		return err
	}
	if len(v.ours) == 1 && plain(v.ours[0].Body) == body {
		v.done = true
		return nil
	}
	return v.write(ctx, body, v.Settle-v.Now().Sub(looked))
}

// unseen ends a visit that cannot look. What it has written stands, as far as it knows.
func (v *visit) unseen(err error) error {
	if err != nil && v.written {
		v.done = true
		return nil
	}
	return err
}

// list finds all comments of ours.
func (v *visit) list(ctx context.Context) error {
	all, err := v.Client.Comments(ctx, v.PR)
	if err != nil {
		return err
	}
	v.ours, v.others, v.listed = nil, 0, true
	for _, c := range all {
		switch {
		case v.isOurs(c):
			v.ours = append(v.ours, c)
		case marked(c.Body):
			v.others++
		}
	}
	return nil
}

func (v *visit) isOurs(c github.Comment) bool {
	if !marked(c.Body) {
		return false
	}
	if v.Author.ID != 0 {
		return c.Author.ID == v.Author.ID
	}
	return c.Author.Login == v.Author.Login && c.Author.Type == v.Author.Type
}

// look reads ours again: the list may have taken long, or is from the round before.
func (v *visit) look(ctx context.Context) error {
	for i, c := range v.ours {
		now, err := v.Client.Comment(ctx, c.ID)
		if github.KindOf(err) == github.NotFound || err == nil && !v.isOurs(now) {
			v.gone()
			return nil
		}
		if err != nil {
			return err
		}
		v.ours[i] = now
	}
	return nil
}

// gone starts anew when somebody has deleted our comment, or made it theirs.
func (v *visit) gone() { v.listed, v.written = false, false }

func (v *visit) present(head string) sheet {
	var s sheet
	for _, c := range v.ours {
		s = join(s, readSheet(c.Body), head)
	}
	return s
}

func (v *visit) next(pr github.PullRequest) (sheet, error) {
	s := join(v.known, v.present(v.head), v.head)
	if v.written {
		return s, nil
	}
	return v.change.apply(s, pr, v.room)
}

// write makes body stand in the comment of ours with the lowest id, within the given
// time or not at all as far as we can see to it, and takes away the others.
func (v *visit) write(ctx context.Context, body string, within time.Duration) error {
	if within < v.Settle/2 {
		return v.slow(ctx, nil)
	}
	brief, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	did, err := v.did, error(nil)
	if len(v.ours) == 0 {
		did, err = Posted, v.create(brief, body)
	} else if did = cmp.Or(did, Updated); v.ours[0].Body != body {
		_, err = v.Client.UpdateComment(brief, v.ours[0].ID, body)
	}
	if err != nil {
		return v.failed(ctx, err, did, brief.Err() != nil)
	}
	v.written, v.did = true, did
	if err := v.clear(ctx); err != nil {
		return err
	}
	return v.settle(ctx)
}

// create posts a new comment. Who it is by may be news: GitHub tells an app's token
// nothing about itself.
func (v *visit) create(ctx context.Context, body string) error {
	c, err := v.Client.CreateComment(ctx, v.PR, body)
	v.listed = false // another job may have done so too
	if err != nil {
		return err
	}
	v.ours = []github.Comment{c}
	if !v.isOurs(c) && c.Author.ID > 0 {
		v.Author = c.Author
	}
	return nil
}

// clear deletes all comments of ours but the first, which says what they said.
func (v *visit) clear(ctx context.Context) error {
	for _, c := range v.ours[1:] {
		err := v.Client.DeleteComment(ctx, c.ID)
		if err != nil && github.KindOf(err) != github.NotFound {
			v.left = len(v.ours) - 1
			v.done = true
			return nil
		}
		v.listed = false
	}
	return nil
}

// failed decides whether a write that went wrong is worth another look: one that did
// what is said, or not.
func (v *visit) failed(ctx context.Context, err error, did Did, late bool) error {
	if ctx.Err() != nil {
		return err
	}
	switch kind := github.KindOf(err); {
	case kind == github.NotFound && len(v.ours) > 0:
		v.gone()
		return nil
	case kind == github.Invalid && v.room == ResultsRoom: // GitHub counts otherwise
		v.room /= 2
		return nil
	case late || kind == github.Uncertain:
		v.did = did
		return v.slow(ctx, err)
	case kind == github.Unavailable:
		return v.slow(ctx, err)
	}
	return err
}

// slow counts a round in which GitHub did not answer in time, and waits.
func (v *visit) slow(ctx context.Context, err error) error {
	if v.failures++; v.failures >= maxFailures {
		return v.tooSlow(err)
	}
	return v.settle(ctx)
}

func (v *visit) tooSlow(err error) error {
	return &proposal.StopError{
		Code: "github.unavailable", Message: "GitHub takes too long to write the comment",
		Hint: "run the job again; https://www.githubstatus.com says how GitHub is", Err: err,
	}
}

func (v *visit) settle(ctx context.Context) error {
	if err := v.Sleep(ctx, v.Settle); err != nil && !v.written {
		return err
	} else if err != nil {
		v.done = true // it stands, though nobody has looked
	}
	return nil
}

func (v *visit) unsettled() error {
	return &proposal.StopError{
		Code: "comment.contended", Message: "other jobs kept writing the comment at the same time",
		Hint: "give the jobs that report a `concurrency:` group per pull request",
	}
}

func (v *visit) outcome(ctx context.Context, err error) Outcome {
	o := Outcome{State: v.known.State, Head: v.head, Others: v.others, Left: v.left}
	if len(v.ours) > 0 {
		o.ID, o.URL = v.ours[0].ID, v.ours[0].URL
	}
	switch {
	case err != nil && ctx.Err() != nil:
		o.Did, o.Failure = Refused, &proposal.Failure{Code: "comment.interrupted", Message: "the job ended before the comment was written"}
	case err != nil:
		o.Did, o.Failure = Refused, proposal.FailureOf(err)
	case !v.change.stands(v.known):
		o.Did = Superseded
	default:
		o.Did = cmp.Or(v.did, Unchanged)
	}
	return o
}
