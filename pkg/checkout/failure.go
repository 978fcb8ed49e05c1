// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

func (s *Store) fetchFailure(ctx, watched context.Context, err error, said string) error {
	switch said = cut(said); {
	case errors.Is(err, errPack) || errors.Is(context.Cause(watched), errPack):
		return stop(CodeLimit, "raise the checkout's limit Pack, if the repository is meant to be so large", nil,
			"the commit needs more than %d bytes to be fetched", s.limits.Pack)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return stop(CodeLimit, "raise the checkout's limit Wall, if the server is slow", nil, "the commit was not fetched within %s", s.limits.Wall)
	case ctx.Err() != nil:
		return stop(CodeFetch, "", ctx.Err(), "the fetch was cancelled")
	case strings.Contains(said, "not our ref") || strings.Contains(said, "unadvertised object") || strings.Contains(said, "Could not find remote ref"):
		return stop(CodeCommit, "the commit may have been removed by a force-push; or the server does not give out commits by id", nil,
			"the repository has no such commit; git said: %s", said)
	case strings.Contains(said, "fsck error"):
		return stop(CodeTree, "somebody has made it by hand: look at it with care", nil, "git's checks refuse an object of the commit; git said: %s", said)
	case transientRE.MatchString(said):
		return stop(CodeUnavailable, "run the job again when the server can be reached", nil, "the server cannot be reached; git said: %s", said)
	case strings.Contains(said, "could not read Username") || strings.Contains(said, "Authentication failed") || strings.Contains(said, "error: 403"):
		return stop(CodeFetch, "the token needs `permissions: contents: read` for this repository", nil, "the server wants other credentials; git said: %s", said)
	}
	return stop(CodeFetch, "", nil, "git did not fetch the commit: %s", orElse(said, err.Error()))
}

// What git and libcurl say when asking again may help.
var transientRE = regexp.MustCompile(`Could not resolve host|Couldn't resolve|Failed to connect|Connection (refused|reset|timed out)|Operation too slow|returned error: (408|429|5\d\d)|Empty reply from server|early EOF|unexpected disconnect|Recv failure|transfer closed`)

func unavailable(err error) bool {
	var stopped *proposal.StopError
	return errors.As(err, &stopped) && stopped.Code == CodeUnavailable
}
