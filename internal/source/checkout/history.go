// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// depths are how many commits of history are fetched, until two commits have an
// ancestor in common: each further request deepens what is there.
var depths = []int{200, 1000, 5000}

// FetchHistory deepens the history of head and base, which Fetch has brought, until they
// have a common ancestor, so that git merge-base, git diff base...head, git log
// base..head and git blame work in what Repository makes. It returns that ancestor.
//
// A history that is too long or too large, or that the server or git's checks refuse,
// is no reason to stop: FetchHistory returns "" and why, and the two commits stay usable
// without it. An error is only that of the store or of ctx.
func (s *Store) FetchHistory(ctx context.Context, head, base string) (ancestor, why string, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.Wall)
	defer cancel()
	s.fetching.Lock()
	defer s.fetching.Unlock()
	if !s.fetched[head] || !s.fetched[base] {
		return "", "", newStopError(CodeCommit, "fetch both commits first", nil,
			"cannot fetch the history of commits that were not fetched")
	}
	for _, depth := range depths {
		if err := s.fetchOnce(ctx, depth, []string{head, base}); err != nil {
			return "", "the history was not fetched: " + proposal.FailureOf(err).Message, ctx.Err()
		}
		if ancestor, err = s.git.mergeBase(ctx, s.bare, head, base); err != nil || ancestor != "" {
			return ancestor, "", err
		}
		if whole, err := s.hasWholeHistory(); err != nil || whole {
			return "", "the base branch has no commit in common", err
		}
	}
	return "", fmt.Sprintf("the base branch has no commit in common within %d", depths[len(depths)-1]), nil
}

// mergeBase returns the best common ancestor, or "" if there is none in the store.
func (g git) mergeBase(ctx context.Context, bare, head, base string) (string, error) {
	out, err := g.command(ctx, nil, "--git-dir="+bare, "merge-base", head, base).output(200)
	sha := strings.TrimSpace(string(out))
	switch {
	case ctx.Err() != nil:
		return "", stopOrContextError(ctx, err)
	case err != nil || !idRE.MatchString(sha): // git exits with 1 if there is none
		return "", nil
	}
	return sha, nil
}

// hasWholeHistory reports whether the store has all of the history.
func (s *Store) hasWholeHistory() (bool, error) {
	data, err := os.ReadFile(filepath.Join(s.bare, "shallow"))
	if os.IsNotExist(err) {
		return true, nil
	}
	return err == nil && len(data) == 0, err
}
