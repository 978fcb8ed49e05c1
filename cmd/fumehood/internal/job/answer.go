// SPDX-License-Identifier: Apache-2.0

package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/github/action"
	"github.com/fumehood/fumehood/internal/github/bot"
	"github.com/fumehood/fumehood/internal/github/comment"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A conversation is a pull request's conversation: it has the one comment and, in a step
// that a comment started, the comment to answer.
type conversation struct {
	*Job
	pr int
}

// react adds a reaction to the comment. Failure is only a warning.
func (c conversation) react(ctx context.Context, content string) {
	if c.in.DryRun || !c.event.HasReactions() {
		return
	}
	if err := c.gh.AddReaction(ctx, c.event.Comment.ID, content); err != nil {
		c.console.PrintWarning("cannot react to the comment: " + err.Error())
	}
}

// endings are the reactions to a comment when the run that it requested has ended. Any other
// conclusion is "confused": something needs a person.
var endings = map[string]string{action.Success: "+1", action.Failure: "-1", action.Denied: "-1"}

// announceEnd reacts to the comment that requested the run, and mentions its author in a new
// comment if the configuration requests that. The results are posted already, so that failure
// is only a warning.
func (c conversation) announceEnd(ctx context.Context, run bot.Run, mention string) {
	c.react(ctx, cmp.Or(endings[run.Conclusion], "confused"))
	if mention != config.MentionRequester || run.Results == "" || c.in.DryRun || !c.event.HasReactions() {
		return
	}
	if err := c.mention(ctx, run); err != nil {
		c.console.PrintWarning("cannot mention the person who requested the run: " + err.Error())
	}
}

// mention mentions the comment's author as the API names them now: a login can change hands.
// Bots, which could answer, and authors of deleted comments are not mentioned.
func (c conversation) mention(ctx context.Context, run bot.Run) error {
	asked, err := c.gh.Comment(ctx, c.event.Comment.ID)
	if github.KindOf(err) == github.NotFound {
		return nil
	}
	text := bot.EndedReply(asked.Author.Login, run)
	if err != nil || text == "" || asked.Author.Type != "User" || asked.Author.ID != c.event.Comment.AuthorID {
		return err
	}
	_, err = c.gh.CreateComment(ctx, c.pr, text)
	return err
}

// noticeID orders the notices about comments, reviews and comments of reviews, whose ids are
// counted separately: by the time of writing, and within a second by id.
func (j *Job) noticeID() int64 { return j.event.Comment.Created.Unix()*1000 + j.event.Comment.ID%1000 }

// answer writes to the notice of the one comment.
func (c conversation) answer(ctx context.Context, text, reaction string) error {
	if reaction != "" {
		c.react(ctx, reaction)
	}
	return c.notify(ctx, comment.Notice{Comment: c.noticeID(), Text: text})
}

func (c conversation) notify(ctx context.Context, n comment.Notice) error {
	if c.in.DryRun || !c.in.Comment {
		return c.summary.Write(n.Text + "\n")
	}
	k, err := c.keeper(ctx)
	if err != nil {
		return err
	}
	_, err = c.applyOutcome(k.ReplaceNotice(ctx, n))
	return err
}

// keeper keeps the one comment.
func (c conversation) keeper(ctx context.Context) (*comment.Keeper, error) {
	author, err := c.account(ctx)
	if err != nil {
		return nil, err
	}
	return comment.New(comment.Options{Client: c.gh, Author: author, PR: c.pr, Settle: c.options.Settle,
		RunURL: c.runURL})
}

// applyOutcome reports the outcome of writing a comment. A locked conversation is not an error:
// the person who locked it wants no comment, and the results are in the summary.
func (c conversation) applyOutcome(o comment.Outcome) (locked bool, err error) {
	if o.Others > 0 {
		c.console.PrintNotice(fmt.Sprintf("%d comments by other authors have fumehood's marker; they were ignored",
			o.Others))
	}
	if o.Did == comment.Refused && o.Failure.Code == "github.locked" {
		c.console.PrintWarning("the pull request's conversation is locked: nothing was posted")
		return true, nil
	}
	if o.Did == comment.Refused {
		return false, &proposal.StopError{Code: o.Failure.Code, Message: o.Failure.Message, Hint: o.Failure.Hint}
	}
	c.console.PrintProgress("comment %s: %s", o.Did, o.URL)
	if o.URL == "" {
		return false, nil
	}
	return false, c.outputs.Set("comment-url", o.URL)
}

// answerFailure answers a person whose comment could not be checked, because fumehood
// failed. It returns err.
func (c conversation) answerFailure(ctx context.Context, err error) error {
	if err == nil || c.event.Comment == nil || c.event.Comment.AuthorType != "User" || c.pr == 0 || ctx.Err() != nil {
		return err
	}
	return errors.Join(err, c.answer(ctx, bot.StoppedReply(c.failure(err)), "confused"))
}
