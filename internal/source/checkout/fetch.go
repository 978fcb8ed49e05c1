// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/retry"
)

var idRE = pattern.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// attempts is how often Fetch tries to reach a server, with a wait between tries.
const attempts = 3

const attemptWait = 2 * time.Second

// Fetch brings the named commits into the store, without their history, in one
// request. Ids are full, lower-case hex, and all of one length. Commits that the store
// already has are not fetched again.
//
// When Fetch returns nil, each id is a commit whose bytes were hashed and are the
// id's. The trees in it are checked as they are read.
func (s *Store) Fetch(ctx context.Context, shas ...string) error {
	ctx, cancel := context.WithTimeout(ctx, s.limits.Wall)
	defer cancel()
	s.fetching.Lock()
	defer s.fetching.Unlock()
	for _, sha := range shas {
		if !idRE.MatchString(sha) || len(sha) != len(shas[0]) {
			return newStopError(CodeCommit, "give all 40 (or 64) lower-case hex digits of the id", nil,
				"%q is not a full commit id", cutOutput(sha))
		}
		if err := s.initBareRepository(len(sha)); err != nil {
			return err
		}
	}
	var missing []string
	for _, sha := range shas {
		if !s.fetched[sha] && !slices.Contains(missing, sha) {
			missing = append(missing, sha)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if err := s.fetchCommits(ctx, missing); err != nil {
		return err
	}
	if err := s.checkCommits(ctx, missing); err != nil {
		return err
	}
	for _, sha := range missing {
		s.fetched[sha] = true
	}
	return nil
}

// fetchArgs allows only the protocol of the URL. A redirect is an
// error, so that neither the request nor the token reaches another server.
func (s *Store) fetchArgs(depth int, shas []string) []string {
	scheme, _, _ := strings.Cut(s.remote.url, ":")
	args := []string{"--git-dir=" + s.bare,
		"-c", "protocol." + scheme + ".allow=always", "-c", "protocol.version=2",
		"-c", "http.followRedirects=false", "-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=30",
		"-c", "transfer.fsckObjects=true", "-c", "fetch.fsckObjects=true", "-c", "transfer.bundleURI=false", "-c", "fetch.uriProtocols=",
		"-c", "fetch.unpackLimit=1", "-c", "transfer.unpackLimit=1", "-c", "fetch.writeCommitGraph=false",
		"fetch", "-q", "--depth=" + strconv.Itoa(depth), "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules",
		"--end-of-options", s.remote.url}
	return append(args, shas...)
}

func (s *Store) fetchCommits(ctx context.Context, shas []string) error {
	for attempt := 1; ; attempt++ {
		err := s.fetchOnce(ctx, 1, shas)
		if err == nil || attempt == attempts || !isUnavailable(err) ||
			retry.Sleep(ctx, retry.Backoff(s.wait, attempt)) != nil {
			return err
		}
	}
}

func (s *Store) fetchOnce(ctx context.Context, depth int, shas []string) error {
	watched, over := s.limitStoreSize(ctx)
	defer over()
	var extra []string
	if s.remote.header != "" {
		extra = []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http." + s.remote.url + ".extraHeader",
			"GIT_CONFIG_VALUE_0=" + s.remote.header}
	}
	c := s.git.limitedCommand(watched, uint64(s.limits.Pack), append(extra, s.remote.env...),
		s.fetchArgs(depth, shas)...)
	_, err := c.output(4096)
	// A git that is stopped by its limit prints nothing. It leaves a file of the limit's
	// size, which the shell rounds down to a block.
	if size := s.measureSize(); size > s.limits.Pack || err != nil && size > s.limits.Pack-4096 {
		err = errPack
	}
	if err != nil {
		s.removeParts()
		return s.fetchFailure(ctx, watched, err, s.remote.redactToken(c.said.formatLines()))
	}
	return nil
}

var errPack = errors.New("the server sent more than the limit")

// limitStoreSize ends its context when the store grows beyond the limit.
func (s *Store) limitStoreSize(ctx context.Context) (context.Context, func()) {
	watched, cancel := context.WithCancelCause(ctx)
	go func() {
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-watched.Done():
				return
			case <-ticker.C:
				if s.measureSize() > s.limits.Pack {
					cancel(errPack)
					return
				}
			}
		}
	}()
	return watched, func() { cancel(nil) }
}

func (s *Store) checkCommits(ctx context.Context, shas []string) error {
	o, err := s.openObjects(ctx)
	if err != nil {
		return err
	}
	defer o.close()
	for _, sha := range shas {
		if _, err := o.readCommitTree(ctx, sha); err != nil {
			return err
		}
	}
	return nil
}
