// SPDX-License-Identifier: Apache-2.0

//go:build linux

package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/fumehood/fumehood/pkg/bot"
	"github.com/fumehood/fumehood/pkg/comment"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// react adds a reaction to the comment. That it cannot is a warning, and stops nothing.
func (j *Job) react(ctx context.Context, content string) {
	if j.in.Staged {
		return
	}
	if err := j.gh.React(ctx, j.event.Comment.ID, content); err != nil {
		j.console.Warning("cannot react to the comment: " + err.Error())
	}
}

// answer writes to the notice of the one comment on a pull request.
func (j *Job) answer(ctx context.Context, pr int, text, reaction string) error {
	if reaction != "" {
		j.react(ctx, reaction)
	}
	return j.notify(ctx, pr, comment.Notice{Comment: j.event.Comment.ID, Text: text})
}

func (j *Job) notify(ctx context.Context, pr int, n comment.Notice) error {
	if j.in.Staged || !j.in.Comment {
		return j.summary.Write(n.Text + "\n")
	}
	k, err := j.keeper(ctx, pr)
	if err != nil {
		return err
	}
	_, err = j.applyOutcome(k.Notice(ctx, n))
	return err
}

// keeper keeps the one comment of a pull request.
func (j *Job) keeper(ctx context.Context, pr int) (*comment.Keeper, error) {
	author, err := j.gh.Author(ctx)
	if err != nil {
		return nil, err
	}
	return comment.New(comment.Options{Client: j.gh, Author: author, PR: pr, Settle: j.options.Settle})
}

// applyOutcome reports what became of a comment. A locked conversation is not an error:
// the person who locked it wants no comment, and the results are in the summary.
func (j *Job) applyOutcome(o comment.Outcome) (locked bool, err error) {
	if o.Others > 0 {
		j.console.Notice(fmt.Sprintf("%d comments of others carry fumehood's marker; they were passed over", o.Others))
	}
	if o.Did == comment.Refused && o.Failure.Code == "github.locked" {
		j.console.Warning("the pull request's conversation is locked: nothing was posted")
		return true, nil
	}
	if o.Did == comment.Refused {
		return false, &proposal.StopError{Code: o.Failure.Code, Message: o.Failure.Message, Hint: o.Failure.Hint}
	}
	j.console.Progress("comment %s: %s", o.Did, o.URL)
	if o.URL == "" {
		return false, nil
	}
	return false, j.outputs.Set("comment-url", o.URL)
}

// answerFailure answers a person whose comment was read but could not be judged, for a
// reason that is not the person's. It returns err.
func (j *Job) answerFailure(ctx context.Context, pr int, err error) error {
	if err == nil || j.event.Comment == nil || j.event.Comment.AuthorType != "User" || pr == 0 || ctx.Err() != nil {
		return err
	}
	return errors.Join(err, j.answer(ctx, pr, bot.Stopped(j.failure(err)), "confused"))
}
