// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"fmt"
	"time"

	gh "github.com/google/go-github/v62/github"
)

// A Comment is a comment in a pull request's conversation. Body is untrusted text.
type Comment struct {
	ID      int64
	Author  Author // zero if the account was deleted
	Body    string
	URL     string // of the web page
	Created time.Time
	Updated time.Time
}

// Comments lists all comments of the pull request's conversation by ascending ID,
// each once.
func (c *Client) Comments(ctx context.Context, number int) ([]Comment, error) {
	// For the comments of one issue, GitHub documents neither sort nor direction
	// and ignores both: a request for the newest first would return the oldest.
	path := c.repositoryPath(fmt.Sprintf("issues/%d/comments", number))
	return listAll(ctx, c, listComments, path, commentOf, func(c Comment) int64 { return c.ID })
}

// Comment reads one comment of the repository.
func (c *Client) Comment(ctx context.Context, id int64) (Comment, error) {
	return requestWithRetry(ctx, c, readComment, func(ctx context.Context) (Comment, error) {
		comment, _, err := c.gh.Issues.GetComment(ctx, c.owner, c.name, id)
		return commentWithID(comment, id, err)
	})
}

// CreateComment adds a comment to the pull request's conversation. If the error's
// Kind is Uncertain, the comment may exist: list the comments before trying again.
func (c *Client) CreateComment(ctx context.Context, number int, body string) (Comment, error) {
	return requestWithRetry(ctx, c, createComment, func(ctx context.Context) (Comment, error) {
		comment, _, err := c.gh.Issues.CreateComment(ctx, c.owner, c.name, number, &gh.IssueComment{Body: &body})
		if err != nil {
			return Comment{}, err
		}
		return commentOf(comment)
	})
}

// UpdateComment replaces a comment's body.
func (c *Client) UpdateComment(ctx context.Context, id int64, body string) (Comment, error) {
	return requestWithRetry(ctx, c, updateComment, func(ctx context.Context) (Comment, error) {
		comment, _, err := c.gh.Issues.EditComment(ctx, c.owner, c.name, id, &gh.IssueComment{Body: &body})
		return commentWithID(comment, id, err)
	})
}

// DeleteComment removes a comment. If the comment does not exist, the error is of
// Kind NotFound, unless an earlier try of the same call may have removed it.
func (c *Client) DeleteComment(ctx context.Context, id int64) error {
	tries := 0
	_, err := requestWithRetry(ctx, c, deleteComment, func(ctx context.Context) (struct{}, error) {
		tries++
		_, err := c.gh.Issues.DeleteComment(ctx, c.owner, c.name, id)
		if tries > 1 && KindOf(err) == NotFound {
			return struct{}{}, nil
		}
		return struct{}{}, err
	})
	return err
}

// AddReaction adds one of GitHub's reactions to a comment: "+1", "-1", "laugh",
// "confused", "heart", "hooray", "rocket" or "eyes". An existing reaction is kept.
func (c *Client) AddReaction(ctx context.Context, comment int64, content string) error {
	_, err := requestWithRetry(ctx, c, react, func(ctx context.Context) (struct{}, error) {
		_, _, err := c.gh.Reactions.CreateIssueCommentReaction(ctx, c.owner, c.name, comment, content)
		return struct{}{}, err
	})
	return err
}

func commentWithID(item *gh.IssueComment, id int64, err error) (Comment, error) {
	if err != nil {
		return Comment{}, err
	}
	if item.GetID() != id {
		return Comment{}, malformedError("requested comment %d, got %d", id, item.GetID())
	}
	return commentOf(item)
}

func commentOf(item *gh.IssueComment) (Comment, error) {
	if item.GetID() <= 0 {
		return Comment{}, malformedError("a comment without an id")
	}
	return Comment{
		ID: item.GetID(), Author: authorOf(item.GetUser()), Body: item.GetBody(), URL: item.GetHTMLURL(),
		Created: item.GetCreatedAt().Time, Updated: item.GetUpdatedAt().Time,
	}, nil
}
