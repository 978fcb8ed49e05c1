// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// fetchFailure derives the cause of a failed fetch from git's output. A server can
// put any text there and so choose the code; no code makes anything run.
func (s *Store) fetchFailure(ctx, watched context.Context, err error, said string) error {
	whole := said
	switch said = cut(said); {
	case errors.Is(err, errPack) || errors.Is(context.Cause(watched), errPack):
		return stop(CodeLimit, "raise the checkout's limit Pack, if the repository is meant to be so large", nil,
			"the commit needs more than %d bytes to be fetched", s.limits.Pack)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return stop(CodeLimit, "raise the checkout's limit Wall, if the server is slow", nil, "the commit was not fetched within %s", s.limits.Wall)
	case ctx.Err() != nil:
		return stop(CodeFetch, "", ctx.Err(), "the fetch was cancelled")
	case strings.Contains(whole, "not our ref") || strings.Contains(whole, "unadvertised object") || strings.Contains(whole, "Could not find remote ref"):
		return stop(CodeCommit, "the commit may have been removed by a force-push; or the server does not give out commits by id", nil,
			"the repository has no such commit; git said: %s", said)
	case strings.Contains(whole, "fsck error"):
		return stop(CodeTree, "somebody has made it by hand: look at it with care", nil, "git's checks refuse an object of the commit; git said: %s", said)
	case transientRE.MatchString(whole):
		return stop(CodeUnavailable, "run the job again when the server can be reached", nil, "the server cannot be reached; git said: %s", said)
	case strings.Contains(whole, "could not read Username") || strings.Contains(whole, "Authentication failed") || strings.Contains(whole, "error: 403") || strings.Contains(whole, "' not found"):
		return stop(CodeFetch, "the token needs `permissions: contents: read` for this repository", nil, "the repository is not there for this token; git said: %s", said)
	}
	return stop(CodeFetch, "", nil, "git did not fetch the commit: %s", orElse(said, err.Error()))
}

// Messages of git and libcurl for failures where a retry may help.
var transientRE = regexp.MustCompile(`Could not resolve host|Couldn't resolve|Failed to connect|Connection (refused|reset|timed out)|Operation too slow|returned error: (408|429|5\d\d)|Empty reply from server|early EOF|unexpected disconnect|Recv failure|transfer closed`)

func unavailable(err error) bool {
	var stopped *proposal.StopError
	return errors.As(err, &stopped) && stopped.Code == CodeUnavailable
}
