// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"context"
	"errors"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// fetchFailure derives the cause of a failed fetch from git's output. A server can
// put any text there and so choose the code; no code makes anything run.
func (s *Store) fetchFailure(ctx, watched context.Context, err error, said string) error {
	whole := said
	switch said = cutOutput(said); {
	case errors.Is(err, errPack) || errors.Is(context.Cause(watched), errPack):
		return newStopError(CodeLimit, "raise the checkout's limit Pack, if the repository should be this large", nil,
			"fetching the commit needs more than %d bytes", s.limits.Pack)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return newStopError(CodeLimit, "raise the checkout's limit Wall, if the server is slow", nil,
			"cannot fetch the commit within %s", s.limits.Wall)
	case ctx.Err() != nil:
		return newStopError(CodeFetch, "", ctx.Err(), "the fetch was cancelled")
	case strings.Contains(whole, "not our ref") || strings.Contains(whole, "unadvertised object") ||
		strings.Contains(whole, "Could not find remote ref"):
		return newStopError(CodeCommit,
			"check whether a force-push removed the commit, and whether the server allows fetching commits by id", nil,
			"the repository does not have the commit; git printed: %s", said)
	case strings.Contains(whole, "fsck error"):
		return newStopError(CodeTree, "inspect the commit: the object was probably made by hand", nil,
			"git's checks reject an object of the commit; git printed: %s", said)
	case transientRE.MatchString(whole):
		return newStopError(CodeUnavailable, "run the job again when the server can be reached", nil,
			"cannot reach the server; git printed: %s", said)
	case strings.Contains(whole, "could not read Username") || strings.Contains(whole, "Authentication failed") ||
		strings.Contains(whole, "error: 403") || strings.Contains(whole, "' not found"):
		return newStopError(CodeFetch, "give the token `permissions: contents: read` for this repository", nil,
			"cannot access the repository with this token; git printed: %s", said)
	}
	return newStopError(CodeFetch, "", nil, "cannot fetch the commit: %s", orElse(said, err.Error()))
}

// Messages of git and libcurl for failures where a retry may help.
var transientRE = pattern.New(`Could not resolve host|Couldn't resolve|Failed to connect|Connection (refused|reset|timed out)|Operation too slow|returned error: (408|429|5\d\d)|Empty reply from server|early EOF|unexpected disconnect|Recv failure|transfer closed`)

func isUnavailable(err error) bool {
	var stopped *proposal.StopError
	return errors.As(err, &stopped) && stopped.Code == CodeUnavailable
}
