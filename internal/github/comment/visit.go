// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"cmp"
	"context"

	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	maxRounds = 24
	// maxSlow is how many rounds may end without an answer in time. With DefaultSettle that is
	// about 45 seconds: GitHub has slow minutes, and so has a busy runner.
	maxSlow    = 12
	maxLimited = 4 // waits for a rate limit
)

// A commentUpdate applies one change to the comment.
type commentUpdate struct {
	*Keeper
	change change
	layout layout

	ours   []github.Comment // by ascending id; as last seen
	listed bool             // ours is complete
	others int
	head   string
	known  sheet // everything read and written so far, merged

	written bool        // this visit has written the change
	body    string      // that it wrote last
	did     WriteStatus // what this visit did or may have done
	slowed  int         // rounds without an answer in time
	waited  int         // waits for a rate limit
	left    int
	done    bool
}

// runRound reads the comment. If it is as it should be, the visit is done; otherwise
// round writes it and waits.
func (v *commentUpdate) runRound(ctx context.Context) error {
	looked := v.Now()
	if !v.listed {
		if err := v.listOwnComments(ctx); err != nil {
			return v.endUnread(err)
		}
	} else if err := v.rereadComments(ctx); err != nil || !v.listed {
		return v.endUnread(err)
	}
	if v.isAsWritten() {
		v.done = true
		return nil
	}
	pr, err := v.Client.PullRequest(ctx, v.PR)
	if err != nil {
		return v.endUnread(err)
	}
	v.head = pr.Head.SHA
	if v.known, err = v.nextSheet(pr); err != nil {
		return err
	}
	body, err := v.layout.formatBody(v.known, v.head)
	if err != nil {
		return err
	}
	if len(v.ours) == 1 && normalizeBody(v.ours[0].Body) == body {
		v.done = true
		return nil
	}
	return v.writeBody(ctx, body, v.Settle-v.Now().Sub(looked))
}

// isAsWritten reports whether the comment is what this visit wrote last. Then no other job has
// written since, and the pull request need not be read again: a job that has its new head reads
// and writes later.
func (v *commentUpdate) isAsWritten() bool {
	return v.written && len(v.ours) == 1 && normalizeBody(v.ours[0].Body) == v.body
}

// endUnread ends a visit that cannot read the comment. If the visit has written, it
// assumes that the write is in place.
func (v *commentUpdate) endUnread(err error) error {
	if err != nil && v.written {
		v.done = true
		return nil
	}
	return err
}

// listOwnComments finds all of the bot's comments.
func (v *commentUpdate) listOwnComments(ctx context.Context) error {
	all, err := v.Client.Comments(ctx, v.PR)
	if err != nil {
		return err
	}
	v.ours, v.others, v.listed = nil, 0, true
	for _, c := range all {
		switch {
		case v.isOurs(c):
			v.ours = append(v.ours, c)
		case hasMarker(c.Body):
			v.others++
		}
	}
	return nil
}

func (v *commentUpdate) isOurs(c github.Comment) bool {
	if !hasMarker(c.Body) {
		return false
	}
	if v.Author.ID != 0 {
		return c.Author.ID == v.Author.ID
	}
	return c.Author.Login == v.Author.Login && c.Author.Type == v.Author.Type
}

// rereadComments reads the bot's comments again, which were listed in a round before.
func (v *commentUpdate) rereadComments(ctx context.Context) error {
	for i, c := range v.ours {
		now, err := v.Client.Comment(ctx, c.ID)
		if github.KindOf(err) == github.NotFound || err == nil && !v.isOurs(now) {
			v.startOver()
			return nil
		}
		if err != nil {
			return err
		}
		v.ours[i] = now
	}
	return nil
}

// startOver starts over after the comment was deleted or taken over by another author.
func (v *commentUpdate) startOver() { v.listed, v.written = false, false }

func (v *commentUpdate) mergeComments(head string) sheet {
	var s sheet
	for _, c := range v.ours {
		s = mergeSheets(s, readSheet(c.Body), head)
	}
	return s
}

func (v *commentUpdate) nextSheet(pr github.PullRequest) (s sheet, err error) {
	s = mergeSheets(v.known, v.mergeComments(v.head), v.head)
	if !v.written {
		s, err = v.change.apply(s, pr, v.layout)
	}
	return v.layout.fitSections(s, v.head), err
}

func (v *commentUpdate) outcome(ctx context.Context, err error) Outcome {
	if err != nil && ctx.Err() != nil {
		err = &proposal.StopError{Code: "comment.interrupted", Message: "the job ended before the comment was written"}
	}
	o := Outcome{State: v.known.State, Head: v.head, Others: v.others, Left: v.left}
	if len(v.ours) > 0 {
		o.ID, o.URL = v.ours[0].ID, v.ours[0].URL
	}
	switch {
	case err != nil:
		o.Did, o.State, o.Failure = Refused, v.mergeComments(v.head).State, proposal.FailureOf(err)
	case !v.change.applied(v.known):
		o.Did = Superseded
	default:
		o.Did = cmp.Or(v.did, Unchanged)
	}
	return o
}
