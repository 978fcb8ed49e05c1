// SPDX-License-Identifier: Apache-2.0

package github

import (
	"errors"
	"fmt"
	"time"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Kind is the reason why a request failed.
type Kind string

// The kinds. With any Kind but Uncertain, the last try of a write had no effect.
const (
	NotFound     Kind = "not found"    // 404 or 410; may also be a missing right
	Unauthorized Kind = "unauthorized" // 401: the token is wrong or has expired
	Forbidden    Kind = "forbidden"    // 403: the token lacks a permission
	Locked       Kind = "locked"       // 403: the conversation is locked
	Invalid      Kind = "invalid"      // 422 and other refusals of what was sent
	RateLimited  Kind = "rate limited" // for longer than MaxWait; see Error.Until
	Unavailable  Kind = "unavailable"  // no response, 5xx or a timeout, after all tries
	Uncertain    Kind = "uncertain"    // a write that may or may not have taken place
	Moved        Kind = "moved"        // a redirect that is not followed
	Malformed    Kind = "malformed"    // a response that is not what GitHub documents
	TooLarge     Kind = "too large"    // an artifact above the caller's bound
	Canceled     Kind = "canceled"     // the caller's context ended; see errors.Is
)

// An Error is a request to GitHub that failed.
type Error struct {
	Op      string    // the operation: "create a comment"
	Status  int       // of the response; 0 if there was none
	Kind    Kind      //
	Message string    // GitHub's message, or what is wrong with the response; bounded, printable
	Until   time.Time // when RateLimited: when GitHub will accept requests again
	Err     error     // the cause, or nil

	wait   time.Duration // requested by the server
	unsent bool          // the request certainly had no effect
	long   bool          // the response is beyond its bound, and would be again
}

func (e *Error) Error() string {
	s := string(e.Kind)
	if e.Status != 0 {
		s = fmt.Sprintf("GitHub answered %d (%s)", e.Status, e.Kind)
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the Kind of the *Error in err, or "".
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}

// maxMessage is the maximum length of a server's text in an error.
const maxMessage = 300

func makePrintable(s string) string { return text.Inline(s, maxMessage) }

func malformedError(format string, args ...any) *Error {
	return &Error{Kind: Malformed, Message: makePrintable(fmt.Sprintf(format, args...))}
}

var codes = map[Kind]string{
	NotFound: "github.not-found", Unauthorized: "github.permission", Forbidden: "github.permission",
	Locked: "github.locked", Invalid: "github.invalid", RateLimited: "github.rate-limit",
	Unavailable: "github.unavailable", Uncertain: "github.unavailable", Moved: "github.moved",
	Malformed: "github.malformed", TooLarge: "github.too-large", Canceled: "github.canceled",
}

// toStopError returns the error for the caller.
func (e *Error) toStopError(op operation) error {
	e.Op = op.name
	return &proposal.StopError{
		Code: codes[e.Kind], Message: "cannot " + op.name + " on GitHub", Hint: e.hint(op), Err: e,
	}
}

func (e *Error) hint(op operation) string {
	switch e.Kind {
	case Unauthorized:
		return "check the token: it is wrong, revoked or expired; a workflow's own token expires when its job ends"
	case Forbidden:
		return op.grantHint()
	case NotFound:
		return "check that it exists and that the token can read it: GitHub returns 404 in both cases; " +
			op.grantHint()
	case Locked:
		return "unlock the pull request's conversation"
	case RateLimited:
		return "try again after " + e.Until.UTC().Format("2006-01-02 15:04:05 UTC") +
			"; a workflow's token has 1,000 requests per hour for the whole repository"
	case Unavailable:
		return "try again; see https://www.githubstatus.com"
	case Uncertain:
		return "check whether it was done before you try again"
	case Moved:
		return "if the repository was renamed, give its new owner/name"
	case Malformed:
		return "check the API URL (GITHUB_API_URL) and any proxy"
	}
	return ""
}
