// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"cmp"
	"context"

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

func (v *visit) outcome(ctx context.Context, err error) Outcome {
	if err != nil && ctx.Err() != nil {
		err = &proposal.StopError{Code: "comment.interrupted", Message: "the job ended before the comment was written"}
	}
	o := Outcome{State: v.known.State, Head: v.head, Others: v.others, Left: v.left}
	if len(v.ours) > 0 {
		o.ID, o.URL = v.ours[0].ID, v.ours[0].URL
	}
	switch {
	case err != nil:
		o.Did, o.State, o.Failure = Refused, v.present(v.head).State, proposal.FailureOf(err)
	case !v.change.stands(v.known):
		o.Did = Superseded
	default:
		o.Did = cmp.Or(v.did, Unchanged)
	}
	return o
}
