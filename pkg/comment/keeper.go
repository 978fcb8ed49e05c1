// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"context"
	"errors"
	"time"

	"github.com/fumehood/fumehood/pkg/github"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Client is what a Keeper needs of GitHub, as *github.Client has it.
type Client interface {
	PullRequest(ctx context.Context, number int) (github.PullRequest, error)
	Comments(ctx context.Context, number int) ([]github.Comment, error)
	Comment(ctx context.Context, id int64) (github.Comment, error)
	CreateComment(ctx context.Context, number int, body string) (github.Comment, error)
	UpdateComment(ctx context.Context, id int64, body string) (github.Comment, error)
	DeleteComment(ctx context.Context, id int64) error
}

// DefaultSettle is how long a Keeper waits before it looks at what it wrote.
const DefaultSettle = 2 * time.Second

// Options say whose comment on which pull request a Keeper keeps.
type Options struct {
	Client Client
	// Author is who Client's token writes as. Every job of a repository must write as
	// the same one, or each keeps a comment of its own.
	Author github.Author
	PR     int

	// Settle is the time within which GitHub carries out a request that was sent; all
	// jobs must have the same. Zero is DefaultSettle.
	Settle time.Duration
	// Now and Sleep are the clock's when nil. Sleep waits for d or until ctx is done,
	// then returning ctx's error.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration) error
}

// A Keeper keeps one pull request's comment. One job uses it for one thing at a time.
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
		return nil, errors.New("cannot keep a comment of an author without an id")
	}
	if o.Settle == 0 {
		o.Settle = DefaultSettle
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	return &Keeper{Options: o}, nil
}

// workflow is the one author who may be known by login: nobody can register a login
// with brackets.
var workflow = github.Author{Login: github.WorkflowLogin, Type: "Bot"}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Did says what became of a notice or of results.
type Did string

// What may become of them.
const (
	Posted     Did = "posted"     // in a new comment
	Updated    Did = "updated"    // in the comment that was there
	Unchanged  Did = "unchanged"  // it said so already; nothing was written
	Superseded Did = "superseded" // something newer stands
	Refused    Did = "refused"    // see Outcome.Failure
)

// An Outcome is what became of a notice or of results, for the log and the step
// summary.
type Outcome struct {
	Did     Did
	Failure *proposal.Failure // when Refused: a stable code, what is wrong, how to mend it

	ID    int64 // of our comment; 0 when there is none
	URL   string
	State State  // what it remembers
	Head  string // the pull request's head when it was last looked at
	// Others counts comments of other authors that carry our marker. They change
	// nothing; somebody may have meant them to.
	Others int
	// Left counts further comments of ours that could not be deleted.
	Left int
}

// Read returns what our comment remembers; nothing when there is none.
func (k *Keeper) Read(ctx context.Context) (State, error) {
	v := visit{Keeper: k}
	if err := v.list(ctx); err != nil {
		return State{}, err
	}
	return v.present("").State, nil
}

// Notice replaces what the bot last answered, unless that answers a later comment,
// and keeps the results as they stand.
func (k *Keeper) Notice(ctx context.Context, n Notice) Outcome {
	return k.keep(ctx, n)
}

// Results replaces what the newest run found, unless what stands is newer. The body
// is asked for once a try, with what is known then.
func (k *Keeper) Results(ctx context.Context, r Results) Outcome {
	return k.keep(ctx, r.bounded())
}

func (k *Keeper) keep(ctx context.Context, c change) Outcome {
	v := visit{Keeper: k, change: c, room: ResultsRoom}
	err := c.check()
	for range maxRounds {
		if err != nil || v.done {
			break
		}
		err = v.round(ctx)
	}
	if err == nil && !v.done {
		err = v.unsettled()
	}
	return v.outcome(ctx, err)
}
