// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fumehood/fumehood/pkg/internal/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The stable codes of this package's StopErrors.
const (
	CodeSource      = "checkout.source"         // the URL, token or folder that we were given cannot be used
	CodeGit         = "checkout.git"            // no git, or one that is too old
	CodeFetch       = "checkout.fetch"          // git or the server refused; Message holds what it said
	CodeUnavailable = "checkout.unavailable"    // the server could not be reached, several times
	CodeCommit      = "checkout.commit"         // no full id, no such commit, or not a commit
	CodeLimit       = "checkout.limit"          // a limit was reached; Hint says which and how to raise it
	CodeTree        = "checkout.tree"           // an object is malformed, missing or not what its id says
	CodeWrite       = "checkout.write"          // this machine could not write the files
	CodeCredentials = "checkout.credentials"    // an existing checkout holds a credential
	CodeHead        = "checkout.head"           // an existing checkout is at another commit
	CodeNoCheckout  = "checkout.not-a-checkout" // a folder is no checkout that we can read
)

func stop(code, hint string, err error, format string, a ...any) *proposal.StopError {
	return &proposal.StopError{Code: code, Message: fmt.Sprintf(format, a...), Hint: hint, Err: err}
}

// A NotFound says that a commit has nothing at a path. It is an answer about the
// commit, not a failure.
type NotFound struct{ SHA, Path string }

func (e *NotFound) Error() string { return fmt.Sprintf("commit %s has no %q", e.SHA, e.Path) }

// asStop keeps a StopError or a NotFound as it is and gives anything else a code.
func asStop(err error, code, format string, a ...any) error {
	var stopped *proposal.StopError
	var none *NotFound
	if err == nil || errors.As(err, &stopped) || errors.As(err, &none) {
		return err
	}
	return stop(code, "", err, format, a...)
}

// cut makes what others said fit for a message: one visible line of bounded length.
func cut(said string) string { return text.Inline(strings.TrimSpace(said), 400) }

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
