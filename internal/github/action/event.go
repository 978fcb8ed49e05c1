// SPDX-License-Identifier: Apache-2.0

package action

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// An Event is the event that started the workflow. All text in it is untrusted;
// ids, SHAs and repository names have been checked against their grammar.
type Event struct {
	Name   string
	Action string // "" for push and workflow_dispatch
	// Number is the event's pull request, 0 for none. For workflow_dispatch it is
	// the input "pr".
	Number     int
	OnIssue    bool // an issue_comment on something that is not a pull request
	Repository Repository
	// PR is set for pull_request. For comments, reviews and workflow_dispatch the caller
	// must set it from the API before Admit.
	PR          *PullRequest
	Comment     *Comment // also a review, or a comment of a review
	Run         *WorkflowRun
	Group       *MergeGroup
	Check       *Check // with a Comment if a person requests a run
	Unsupported string // why Admit returns Nothing, for an event of which nothing was read
	SenderID    int64
	SenderLogin string
	SenderType  string            // "User", "Bot", …
	Ref         string            // of push and workflow_dispatch: "refs/heads/main"
	Inputs      map[string]string // of workflow_dispatch
}

// A Repository is a GitHub repository.
type Repository struct {
	ID            int64
	Name          string // owner/name
	DefaultBranch string
	Visibility    string // "public", "private" or "internal"; "" if the payload does not contain it
}

// A PullRequest is a pull request as the event or the API describes it.
type PullRequest struct {
	Number      int
	State       string // "open" or "closed"
	Draft       bool
	Locked      bool
	AuthorID    int64 // 0 if the account was deleted
	AuthorLogin string
	Head        Ref
	Base        Ref
	Fork        bool // the code comes from another repository, or from a deleted one
}

// A Ref is one side of a pull request.
type Ref struct {
	SHA          string // full
	Ref          string // branch name, without refs/heads/
	Repository   string // owner/name; "" if it was deleted
	RepositoryID int64  // 0 if it was deleted
}

// A Comment is a comment on an issue or pull request.
type Comment struct {
	ID          int64
	Body        string
	AuthorID    int64 // 0 if the account was deleted
	AuthorLogin string
	AuthorType  string
	URL         string // of the web page
	Created     time.Time
	Updated     time.Time
}

// A Check is the check run of an event. The API must be asked for its commit and its pull request.
type Check struct{ ID int64 }

// RerunAction is the identifier of the action of a check run that requests its plan again.
const RerunAction = "fumehood-rerun"

// A MergeGroup is a commit that a merge queue tests before it becomes the base branch's.
type MergeGroup struct {
	Head Ref // without a repository
	Base Ref
}

// A WorkflowRun is the run of a workflow_run event. Its pull request must be
// requested from the API: the payload's list is empty for forks.
type WorkflowRun struct {
	ID               int64
	Number           int
	Attempt          int
	Event            string // what started it: "pull_request"
	HeadSHA          string
	HeadBranch       string // "" if the payload does not contain it
	HeadRepository   string // "" if it was deleted
	HeadRepositoryID int64
	Conclusion       string // "success", "failure", "cancelled", "skipped", …
	Path             string // of the workflow file; untrusted
	Name             string // untrusted
	ActorID          int64
}

// The names of the supported events.
const (
	eventPullRequest      = "pull_request"
	eventTarget           = "pull_request_target"
	eventWorkflowRun      = "workflow_run"
	eventIssueComment     = "issue_comment"
	eventWorkflowDispatch = "workflow_dispatch"
	eventMergeGroup       = "merge_group"
	eventPush             = "push"
	eventReview           = "pull_request_review"
	eventReviewComment    = "pull_request_review_comment"
	eventCheckRun         = "check_run"
)

var supportedEvents = []string{eventPullRequest, eventWorkflowRun, eventIssueComment, eventReview, eventReviewComment,
	eventWorkflowDispatch, eventMergeGroup, eventPush, eventCheckRun}

// CommentEvents are the events by which a person may request a run: a text, or the action of a
// check run.
var CommentEvents = []string{eventIssueComment, eventReview, eventReviewComment, eventCheckRun}

// OfDefaultBranch reports whether the event's workflow is the default branch's, which a pull
// request cannot change, and a person's request started it.
func (e Event) OfDefaultBranch() bool { return e.Name == eventIssueComment || e.Name == eventCheckRun }

// HasReactions reports whether the event's comment can get reactions. GitHub has none for
// reviews, and others for their comments.
func (e Event) HasReactions() bool { return e.Name == eventIssueComment }

// isReview reports whether the event is about a review. GitHub starts the workflow of the pull
// request for it, and on a fork's with a read-only token.
func (e Event) isReview() bool { return e.Name == eventReview || e.Name == eventReviewComment }

// LoadEvent reads the payload file that the runner wrote.
func LoadEvent(r Runner) (Event, error) {
	f, err := os.Open(r.EventPath)
	if err != nil {
		return Event{}, unreadablePayload(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxEvent+1))
	if err != nil {
		return Event{}, unreadablePayload(err)
	}
	return ReadEvent(r.EventName, data)
}

func unreadablePayload(err error) error {
	return &proposal.StopError{Code: "event.unreadable", Message: "cannot read the event's payload",
		Hint: "GITHUB_EVENT_PATH must be the file that the runner wrote", Err: err}
}

// ReadEvent parses the used part of a payload strictly: types, full SHAs, positive
// ids, grammars of names, lengths, UTF-8, no duplicate names, bounded depth.
// Everything else in the payload is ignored.
//
// Errors are StopErrors: event.pull-request-target and event.malformed. An event that is
// not supported, and a comment on an issue, are not errors but Events for which Admit
// returns Nothing.
func ReadEvent(name string, data []byte) (Event, error) {
	switch {
	case name == eventTarget:
		return Event{}, refuseTarget()
	case !slices.Contains(supportedEvents, name):
		return Event{Name: name, Unsupported: fmt.Sprintf("unsupported event %s: supported are %s",
			quoteUntrusted(name), strings.Join(supportedEvents, ", "))}, nil
	}
	f := fields{payload: readPayload(data, wantedPaths[name])}
	e := Event{
		Name: name, Repository: f.readRepository("repository"),
		SenderID: f.readID("sender.id"), SenderLogin: f.readLogin("sender.login"),
		SenderType: f.readText("sender.type", 1, 40),
	}
	switch name {
	case eventPullRequest:
		f.pullRequest(&e)
	case eventWorkflowRun:
		f.workflowRun(&e)
	case eventIssueComment:
		f.readCommentEvent(&e)
	case eventReview:
		f.readReviewEvent(&e)
	case eventReviewComment:
		f.reviewComment(&e)
	case eventMergeGroup:
		f.mergeGroup(&e)
	case eventCheckRun:
		f.checkRun(&e)
	case eventPush:
		e.Ref = f.readText("ref", 1, maxRef)
	case eventWorkflowDispatch:
		f.readDispatchEvent(&e)
	}
	if f.err != nil {
		return Event{}, f.err
	}
	return e, nil
}
