// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"context"
	"errors"
	"time"

	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/kit/retry"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Client has the methods of *github.Client that a Keeper needs.
type Client interface {
	PullRequest(ctx context.Context, number int) (github.PullRequest, error)
	Comments(ctx context.Context, number int) ([]github.Comment, error)
	Comment(ctx context.Context, id int64) (github.Comment, error)
	CreateComment(ctx context.Context, number int, body string) (github.Comment, error)
	UpdateComment(ctx context.Context, id int64, body string) (github.Comment, error)
	DeleteComment(ctx context.Context, id int64) error
}

// DefaultSettle is how long a Keeper waits before it checks what it wrote.
const DefaultSettle = 2 * time.Second

// Options say which comment on which pull request a Keeper keeps.
type Options struct {
	Client Client
	// Author is the account that Client's token writes as. Every job of a repository
	// must write as the same one; otherwise each keeps a separate comment.
	Author github.Author
	PR     int

	// RunURL is the address of a workflow run's page. If it is nil, earlier results have no link.
	RunURL func(run int64) string

	// Settle is the time within which GitHub executes a request; all jobs must use
	// the same. Zero means DefaultSettle.
	Settle time.Duration
	// Now and Sleep default to the real clock. Sleep waits for d, or until ctx is
	// done and then returns ctx's error.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration) error
}

// A Keeper keeps one pull request's comment. It is not safe for concurrent use.
type Keeper struct {
	Options
}

// New returns a Keeper. It sends nothing.
func New(o Options) (*Keeper, error) {
	switch {
	case o.Client == nil:
		return nil, errors.New("cannot keep a comment without a client")
	case o.PR <= 0:
		return nil, errors.New("cannot keep a comment without a pull request")
	case o.Author.ID <= 0 && o.Author != workflow:
		// A login alone can change hands, or look like another.
		return nil, errors.New("cannot keep a comment without the id of its author")
	}
	if o.Settle == 0 {
		o.Settle = DefaultSettle
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = retry.Sleep
	}
	return &Keeper{Options: o}, nil
}

// workflow is the only author that may be identified by login: a login with
// brackets cannot be registered.
var workflow = github.Author{Login: github.WorkflowLogin, Type: "Bot"}

// WriteStatus is the result of writing a notice or results.
type WriteStatus string

// The values of Did.
const (
	Posted     WriteStatus = "posted"     // in a new comment
	Updated    WriteStatus = "updated"    // in the existing comment
	Unchanged  WriteStatus = "unchanged"  // the comment was already up to date; nothing was written
	Superseded WriteStatus = "superseded" // the comment has something newer
	Refused    WriteStatus = "refused"    // see Outcome.Failure
)

// An Outcome describes the result of writing a notice or results, for the log and
// the step summary.
type Outcome struct {
	Did     WriteStatus
	Failure *proposal.Failure // if Refused: a stable code, the problem, and how to fix it

	ID    int64 // of the comment, or 0
	URL   string
	State State  // the state that the comment holds
	Head  string // the pull request's head when it was last read
	// Others counts comments of other authors that contain the marker. They have no
	// effect, but may be attempts to impersonate the bot.
	Others int
	// Left counts duplicate comments of the bot that could not be deleted.
	Left int
}

// Read returns the comment's state, or a zero State if there is no comment.
func (k *Keeper) Read(ctx context.Context) (State, error) {
	v := commentUpdate{Keeper: k}
	if err := v.listOwnComments(ctx); err != nil {
		return State{}, err
	}
	return v.mergeComments("").State, nil
}

// ReplaceNotice replaces the bot's last answer, unless that answers a later comment. It
// keeps the results.
func (k *Keeper) ReplaceNotice(ctx context.Context, n Notice) Outcome {
	return k.keepChange(ctx, n)
}

// ReplaceResults replaces the section of a source, unless the one in the comment is newer, or is a worse one
// of the same attempt. Body is called once per try, with what is known then.
func (k *Keeper) ReplaceResults(ctx context.Context, r Results) Outcome {
	return k.keepChange(ctx, r.dropInvalid())
}

func (k *Keeper) keepChange(ctx context.Context, c change) Outcome {
	v := commentUpdate{Keeper: k, change: c, layout: layout{MaxBody, k.RunURL}}
	err := c.check()
	for range maxRounds {
		if err != nil || v.done {
			break
		}
		err = v.runRound(ctx)
	}
	if err == nil && !v.done {
		err = v.contendedError()
	}
	return v.outcome(ctx, err)
}
