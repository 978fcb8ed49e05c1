// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// writeBody puts body into the bot's comment with the lowest id and deletes the others. As
// far as it can ensure it, the write takes place within the given time or not at all.
func (v *commentUpdate) writeBody(ctx context.Context, body string, within time.Duration) error {
	if within < v.Settle/2 {
		return v.countTimeout(ctx, nil)
	}
	brief, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	did, err := v.did, error(nil)
	if len(v.ours) == 0 {
		did, err = Posted, v.createComment(brief, body)
	} else if did = cmp.Or(did, Updated); v.ours[0].Body != body {
		_, err = v.Client.UpdateComment(brief, v.ours[0].ID, body)
	}
	if err != nil {
		return v.handleWriteError(ctx, err, did, brief.Err() != nil)
	}
	v.written, v.did, v.body = true, did, body
	v.deleteDuplicates(ctx)
	return v.waitToSettle(ctx)
}

// createComment posts a new comment. Its author may be new information: GitHub does not
// report the account of an app's token.
func (v *commentUpdate) createComment(ctx context.Context, body string) error {
	c, err := v.Client.CreateComment(ctx, v.PR, body)
	v.listed = false // another job may have created one too
	if err != nil {
		return err
	}
	v.ours = []github.Comment{c}
	if !v.isOurs(c) && c.Author.ID > 0 {
		v.Author = c.Author
	}
	return nil
}

// deleteDuplicates deletes the bot's comments except for the first, into which they were merged.
func (v *commentUpdate) deleteDuplicates(ctx context.Context) {
	for _, c := range v.ours[1:] {
		if err := v.Client.DeleteComment(ctx, c.ID); err != nil && !v.isMissing(ctx, c.ID, err) {
			v.left, v.done = len(v.ours)-1, true
			return
		}
		v.listed = false
	}
}

// handleWriteError decides whether to read again after a failed write. The write may have taken effect.
func (v *commentUpdate) handleWriteError(ctx context.Context, err error, did WriteStatus, late bool) error {
	if ctx.Err() != nil {
		return err
	}
	switch kind := github.KindOf(err); {
	case len(v.ours) > 0 && v.isMissing(ctx, v.ours[0].ID, err):
		v.startOver()
		return nil
	case kind == github.Invalid && v.layout.limit == MaxBody: // GitHub counts units differently
		v.layout.limit /= 2
		return nil
	case late || kind == github.Uncertain:
		v.did = did
		return v.countTimeout(ctx, err)
	case kind == github.Unavailable:
		return v.countTimeout(ctx, err)
	case kind == github.RateLimited:
		return v.waitForRateLimit(ctx, err)
	}
	return err
}

// isMissing reports whether err, of a write to the comment with this id, means that
// the comment does not exist. GitHub may answer 403 to a write that it cannot
// associate with a pull request.
func (v *commentUpdate) isMissing(ctx context.Context, id int64, err error) bool {
	if github.KindOf(err) == github.Forbidden {
		_, err = v.Client.Comment(ctx, id)
	}
	return github.KindOf(err) == github.NotFound
}

// waitForRateLimit waits until GitHub accepts requests again, unless that takes too long.
// The client cannot wait itself, because of the time limit of one write.
func (v *commentUpdate) waitForRateLimit(ctx context.Context, err error) error {
	e, ok := errors.AsType[*github.Error](err)
	if !ok {
		return err
	}
	wait := e.Until.Sub(v.Now())
	if v.waited++; v.waited >= maxLimited || wait > github.DefaultMaxWait {
		return err
	}
	return v.Sleep(ctx, max(wait, v.Settle))
}

// countTimeout counts a round in which GitHub did not answer in time, and waits.
func (v *commentUpdate) countTimeout(ctx context.Context, err error) error {
	if v.slowed++; v.slowed >= maxSlow {
		return v.tooSlow(err)
	}
	return v.waitToSettle(ctx)
}

func (v *commentUpdate) tooSlow(err error) error {
	return &proposal.StopError{
		Code: "github.unavailable", Message: "GitHub takes too long to write the comment",
		Hint: "run the job again; see https://www.githubstatus.com", Err: err,
	}
}

func (v *commentUpdate) waitToSettle(ctx context.Context) error {
	if err := v.Sleep(ctx, v.Settle); err != nil && !v.written {
		return err
	} else if err != nil {
		v.done = true // written, though not checked
	}
	return nil
}

func (v *commentUpdate) contendedError() error {
	return &proposal.StopError{
		Code: "comment.contended", Message: "other jobs kept changing the comment",
		Hint: "give the jobs that report a `concurrency:` group per pull request",
	}
}
