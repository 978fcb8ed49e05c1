// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The stable codes of this package's StopErrors.
const (
	CodeSource      = "checkout.source"         // the given URL, token or directory cannot be used
	CodeGit         = "checkout.git"            // no git, or one that is too old
	CodeFetch       = "checkout.fetch"          // git or the server refused; Message holds its output
	CodeUnavailable = "checkout.unavailable"    // the server could not be reached, after several tries
	CodeCommit      = "checkout.commit"         // not a full id, no such commit, or not a commit
	CodeLimit       = "checkout.limit"          // a limit was reached; Hint says which and how to raise it
	CodeTree        = "checkout.tree"           // an object is malformed, missing or does not match its id
	CodeWrite       = "checkout.write"          // this machine could not write the files
	CodeCredentials = "checkout.credentials"    // an existing checkout holds a credential
	CodeHead        = "checkout.head"           // an existing checkout is at another commit
	CodeNoCheckout  = "checkout.not-a-checkout" // the directory is not a checkout that Inspect can read
)

func newStopError(code, hint string, err error, format string, a ...any) *proposal.StopError {
	return &proposal.StopError{Code: code, Message: fmt.Sprintf(format, a...), Hint: hint, Err: err}
}

// A NotFound reports that a commit has nothing at a path. It is a fact about the
// commit, not a failure.
type NotFound struct{ SHA, Path string }

func (e *NotFound) Error() string { return fmt.Sprintf("commit %s has no %q", e.SHA, e.Path) }

// asStop returns a StopError or a NotFound unchanged and gives any other error a code.
func asStop(err error, code, format string, a ...any) error {
	var stopped *proposal.StopError
	var none *NotFound
	if err == nil || errors.As(err, &stopped) || errors.As(err, &none) {
		return err
	}
	return newStopError(code, "", err, format, a...)
}

// cutOutput makes foreign output safe for a message: one visible line of bounded length.
func cutOutput(said string) string { return text.Inline(strings.TrimSpace(said), 400) }

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
