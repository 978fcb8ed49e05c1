// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/kit/retry"
	"github.com/fumehood/fumehood/internal/review"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Client has the methods of *github.Client that are needed.
type Client interface {
	PullRequest(ctx context.Context, number int) (github.PullRequest, error)
	ReviewComments(ctx context.Context, number int) ([]github.ReviewComment, error)
	Hunks(ctx context.Context, number int) (map[string][]github.Hunk, error)
	CreateReview(ctx context.Context, number int, r github.NewReview) (github.Review, error)
	UpdateReviewComment(ctx context.Context, id int64, body string) error
	DeleteReviewComment(ctx context.Context, id int64) error
	ReviewThreads(ctx context.Context, number int) ([]github.ReviewThread, error)
	ResolveThread(ctx context.Context, id string, resolved bool) error
}

// Options say on which pull request comments are kept.
type Options struct {
	Client Client
	// Author is the account that Client's token writes as. Without an ID it must be the one of a
	// workflow's own token.
	Author github.Author
	PR     int
	// Settle is the time within which GitHub executes a request. Zero means comment.DefaultSettle.
	Settle time.Duration
	// Sleep waits for d, or until ctx is done and then returns ctx's error; by the clock.
	Sleep func(ctx context.Context, d time.Duration) error
}

// MaxComments is how many comments one review creates. Findings above it are in the summary only.
const MaxComments = 50

// The bounds of comments on what linters report: of one review, and of all in one pull request.
const (
	MaxLints    = 20
	MaxAllLints = 100
)

// An Outcome is what was done.
type Outcome struct {
	Created int // comments, all in one review
	Updated int
	Threads int // resolved or unresolved
	// Comments are the addresses of the findings' comments, by review.Result.Key.
	Comments map[string]string
	// Open are findings that an earlier review verified, that this one does not mention, and whose
	// threads are not resolved.
	Open    []review.OpenFinding
	Notes   []string          // for people: what was not posted, and why
	Failure *proposal.Failure // what GitHub refused; nil if there is nothing left to do
}

const defaultSettle = 2 * time.Second

// Post posts what is new in d and updates what was posted before. Texts of d are untrusted; d
// itself must be what review.Verify or review.Read returned. The caller checks that it is about
// this pull request.
func Post(ctx context.Context, o Options, d review.Document) Outcome {
	if o.Settle == 0 {
		o.Settle = defaultSettle
	}
	if o.Sleep == nil {
		o.Sleep = retry.Sleep
	}
	v := &reviewUpdate{Options: o, doc: d}
	err := v.checkOptions()
	if err == nil {
		err = v.postAll(ctx)
	}
	v.out.Comments = v.commentURLs()
	v.out.Open = v.listOpen(ctx)
	v.out.Failure = proposal.FailureOf(err)
	return v.out
}

func (o Options) checkOptions() error {
	switch {
	case o.Client == nil || o.PR <= 0:
		return errors.New("cannot post a review without a client and a pull request")
	case o.Author.ID <= 0 && o.Author != github.Author{Login: github.WorkflowLogin, Type: "Bot"}:
		return errors.New("cannot post a review without the id of its author")
	}
	return nil
}

// A reviewUpdate posts one document.
type reviewUpdate struct {
	Options
	doc  review.Document
	ours map[string][]postedComment // by key, by ascending id
	// others are the keys of comments of other kinds or sources: what one of them shows is not
	// posted a second time.
	others map[string]bool
	out    Outcome

	threads threadList
}

func (v *reviewUpdate) postAll(ctx context.Context) error {
	pr, err := v.Client.PullRequest(ctx, v.PR)
	if err != nil {
		return err
	}
	if err := v.listOwnComments(ctx); err != nil {
		return err
	}
	if v.isStale(pr) {
		return nil
	}
	if err := v.createReview(ctx); err != nil {
		return err
	}
	return errors.Join(v.deleteDuplicates(ctx), v.updateComments(ctx))
}

// isStale reports whether the review is not about the pull request as it is now.
func (v *reviewUpdate) isStale(pr github.PullRequest) bool {
	switch {
	case pr.Head.SHA != v.doc.Head:
		v.addNote("The pull request has a newer commit, %.12s: no comments on the lines of %.12s were posted.",
			pr.Head.SHA, v.doc.Head)
	case pr.State != "open":
		v.addNote("The pull request is closed: no comments on its lines were posted.")
	default:
		return false
	}
	return true
}

func (v *reviewUpdate) addNote(format string, args ...any) {
	v.out.Notes = append(v.out.Notes, fmt.Sprintf(format, args...))
}

func (v *reviewUpdate) commentURLs() map[string]string {
	list := map[string]string{}
	for key, all := range v.ours {
		list[key] = all[0].URL
	}
	return list
}
