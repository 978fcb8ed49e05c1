// SPDX-License-Identifier: Apache-2.0

package github

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	gh "github.com/google/go-github/v62/github"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// A ReviewComment is a comment on lines of a pull request's diff. Body and Path are untrusted.
type ReviewComment struct {
	ID     int64
	Review int64
	Author Author // zero if the account was deleted
	Body   string
	URL    string // of the web page
	Path   string
	Side   string // "LEFT" or "RIGHT"
	Line   int    // at the present head; 0 if the comment is outdated
}

// A Review is a review of a pull request. Body is untrusted.
type Review struct {
	ID     int64
	Author Author // zero if the account was deleted
	Body   string
	State  string // GitHub's: "COMMENTED", "PENDING" and others
	Commit string // "" if it is gone
}

// A NewReview is a review to create. It can only comment: there is no field for an event.
type NewReview struct {
	Commit   string // the commit that was reviewed, full
	Body     string // not blank
	Comments []NewReviewComment
}

// A NewReviewComment is a comment of a NewReview. Its lines must be in one hunk of the diff.
type NewReviewComment struct {
	Path      string `json:"path"`
	Body      string `json:"body"`
	Line      int    `json:"line"`
	Side      string `json:"side"`                 // "LEFT" or "RIGHT"
	StartLine int    `json:"start_line,omitempty"` // less than Line
	StartSide string `json:"start_side,omitempty"` // set by CreateReview
}

// reviewEvent is the only event that is ever sent. The others approve a pull request or block it.
const reviewEvent = "COMMENT"

// CreateReview creates a review with all of its comments, or nothing: GitHub refuses a review,
// with Kind Invalid, if it accepts one position less. If the error's Kind is Uncertain, the review
// may exist: list the comments before trying again.
func (c *Client) CreateReview(ctx context.Context, number int, r NewReview) (Review, error) {
	comments := slices.Clone(r.Comments)
	for i := range comments {
		if comments[i].StartLine > 0 {
			comments[i].StartSide = comments[i].Side
		}
	}
	sent := struct {
		Commit   string             `json:"commit_id"`
		Body     string             `json:"body"`
		Event    string             `json:"event"`
		Comments []NewReviewComment `json:"comments,omitempty"`
	}{r.Commit, r.Body, reviewEvent, comments}
	return requestWithRetry(ctx, c, createReview, func(ctx context.Context) (Review, error) {
		req, err := c.gh.NewRequest(http.MethodPost, c.repositoryPath(fmt.Sprintf("pulls/%d/reviews", number)), sent)
		if err != nil {
			return Review{}, err
		}
		var made gh.PullRequestReview
		if _, err := c.gh.Do(ctx, req, &made); err != nil {
			return Review{}, err
		}
		return reviewOf(&made)
	})
}

// ReviewComments lists the comments of all submitted reviews of a pull request by ascending ID,
// each once.
func (c *Client) ReviewComments(ctx context.Context, number int) ([]ReviewComment, error) {
	return listAll(ctx, c, listReviewComments, c.repositoryPath(fmt.Sprintf("pulls/%d/comments", number)),
		reviewCommentOf, func(c ReviewComment) int64 { return c.ID })
}

// UpdateReviewComment replaces the body of a comment of a review.
func (c *Client) UpdateReviewComment(ctx context.Context, id int64, body string) error {
	_, err := requestWithRetry(ctx, c, updateReviewComment, func(ctx context.Context) (struct{}, error) {
		_, _, err := c.gh.PullRequests.EditComment(ctx, c.owner, c.name, id, &gh.PullRequestComment{Body: &body})
		return struct{}{}, err
	})
	return err
}

// DeleteReviewComment removes a comment of a review. If the comment does not exist, the error is
// of Kind NotFound, unless an earlier try of the same call may have removed it.
func (c *Client) DeleteReviewComment(ctx context.Context, id int64) error {
	tries := 0
	_, err := requestWithRetry(ctx, c, deleteReviewComment, func(ctx context.Context) (struct{}, error) {
		tries++
		_, err := c.gh.PullRequests.DeleteComment(ctx, c.owner, c.name, id)
		if tries > 1 && KindOf(err) == NotFound {
			return struct{}{}, nil
		}
		return struct{}{}, err
	})
	return err
}

func reviewOf(r *gh.PullRequestReview) (Review, error) {
	if r.GetID() <= 0 {
		return Review{}, malformedError("a review without an id")
	}
	return Review{ID: r.GetID(), Author: authorOf(r.GetUser()), Body: r.GetBody(), State: r.GetState(),
		Commit: r.GetCommitID()}, nil
}

func reviewCommentOf(item *gh.PullRequestComment) (ReviewComment, error) {
	if item.GetID() <= 0 {
		return ReviewComment{}, malformedError("a comment of a review without an id")
	}
	return ReviewComment{ID: item.GetID(), Review: item.GetPullRequestReviewID(), Author: authorOf(item.GetUser()),
		Body: item.GetBody(),
		URL:  item.GetHTMLURL(), Path: item.GetPath(), Side: item.GetSide(), Line: item.GetLine()}, nil
}

// A Hunk is the lines of a file that GitHub shows together, by their first number and their count
// before (Old) and after (New).
type Hunk struct{ Old, OldLines, New, NewLines int }

// Hunks returns the hunks of the files that the pull request changes, by their path. It has no
// hunks of files whose diff GitHub does not show, and only the first 3,000 files.
func (c *Client) Hunks(ctx context.Context, number int) (map[string][]Hunk, error) {
	hunks := map[string][]Hunk{}
	err := readPages(ctx, c, listFiles, c.repositoryPath(fmt.Sprintf("pulls/%d/files", number)), nil,
		func(page []*gh.CommitFile) error {
			for _, f := range page {
				if list := hunksOf(f.GetPatch()); len(list) > 0 {
					hunks[f.GetFilename()] = list
				}
			}
			return nil
		})
	return hunks, err
}

var hunkLine = pattern.New(`^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@`)

// hunksOf reads the headers of a patch. Other lines of it begin with a blank or with +, - or \.
func hunksOf(patch string) (list []Hunk) {
	for line := range strings.SplitSeq(patch, "\n") {
		m := hunkLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		var n [4]int
		for i := range n {
			n[i], _ = strconv.Atoi(cmp.Or(m[i+1], "1"))
		}
		list = append(list, Hunk{n[0], n[1], n[2], n[3]})
	}
	return list
}
