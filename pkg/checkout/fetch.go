// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

var idRE = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// attempts is how often an unreachable server is asked; between them we wait.
const attempts = 3

var attemptWait = 2 * time.Second

// Fetch brings the named commits into the store, without their history, in one
// request. Ids are full, lower-case hex, and all of one kind. What is there already
// is not asked for again.
//
// When Fetch returns nil, each id is a commit whose bytes were hashed and are the
// id's. The trees below are checked as they are read.
func (s *Store) Fetch(ctx context.Context, shas ...string) error {
	ctx, cancel := context.WithTimeout(ctx, s.limits.Wall)
	defer cancel()
	s.fetching.Lock()
	defer s.fetching.Unlock()
	for _, sha := range shas {
		if !idRE.MatchString(sha) || len(sha) != len(shas[0]) {
			return stop(CodeCommit, "give all 40 (or 64) lower-case hex digits of the id", nil, "%q is not a full commit id", cut(sha))
		}
		if err := s.make(len(sha)); err != nil {
			return err
		}
	}
	missing, err := s.missing(ctx, shas)
	if err != nil || len(missing) == 0 {
		return err
	}
	if err := s.fetch(ctx, missing); err != nil {
		return err
	}
	return s.checkCommits(ctx, missing)
}

// make writes the bare repository by hand: git init would copy templates.
func (s *Store) make(digits int) error {
	s.making.Lock()
	defer s.making.Unlock()
	switch s.digits {
	case digits:
		return nil
	case 0:
		if err := writeBare(s.bare, digits); err != nil {
			return stop(CodeWrite, "", err, "cannot make the store")
		}
		s.digits = digits
		return nil
	}
	return stop(CodeCommit, "", nil, "the store holds ids of %d digits, not of %d", s.digits, digits)
}

func writeBare(bare string, digits int) error {
	for _, folder := range []string{"objects/pack", "refs"} {
		if err := os.MkdirAll(filepath.Join(bare, folder), 0o700); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(bare, "config"), []byte(formatConfig(digits, true)), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(bare, "HEAD"), []byte("ref: refs/heads/none\n"), 0o600)
}

// formatConfig is the part of a repository's config that says how it is stored.
func formatConfig(digits int, bare bool) string {
	if digits == 64 {
		return fmt.Sprintf("[core]\n\trepositoryformatversion = 1\n\tbare = %t\n[extensions]\n\tobjectFormat = sha256\n", bare)
	}
	return fmt.Sprintf("[core]\n\trepositoryformatversion = 0\n\tbare = %t\n", bare)
}

func (s *Store) missing(ctx context.Context, shas []string) ([]string, error) {
	var missing []string
	o, err := s.objects(ctx)
	if err != nil {
		return nil, err
	}
	defer o.close()
	seen := map[string]bool{}
	err = o.sizes(ctx, shas, func(i int, kind string, _ int64) error {
		if kind == "" && !seen[shas[i]] {
			missing = append(missing, shas[i])
		}
		seen[shas[i]] = true
		return nil
	})
	return missing, err
}

// fetchArgs: the scheme that the URL has is the only protocol; a redirect is an
// error, so that neither the request nor the token goes where nobody sent it.
func (s *Store) fetchArgs(shas []string) []string {
	scheme, _, _ := strings.Cut(s.remote.url, ":")
	args := []string{"--git-dir=" + s.bare,
		"-c", "protocol." + scheme + ".allow=always", "-c", "protocol.version=2",
		"-c", "http.followRedirects=false", "-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=30",
		"-c", "transfer.fsckObjects=true", "-c", "fetch.fsckObjects=true", "-c", "transfer.bundleURI=false", "-c", "fetch.uriProtocols=",
		"-c", "fetch.unpackLimit=1", "-c", "transfer.unpackLimit=1", "-c", "fetch.writeCommitGraph=false",
		"fetch", "-q", "--depth=1", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules",
		"--end-of-options", s.remote.url}
	return append(args, shas...)
}

func (s *Store) fetch(ctx context.Context, shas []string) error {
	for attempt := 1; ; attempt++ {
		err := s.fetchOnce(ctx, shas)
		if err == nil || attempt == attempts || !unavailable(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(attemptWait << (attempt - 1)):
		}
	}
}

func (s *Store) fetchOnce(ctx context.Context, shas []string) error {
	watched, over := s.watch(ctx)
	defer over()
	var extra []string
	if s.remote.header != "" {
		extra = []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http." + s.remote.url + ".extraHeader", "GIT_CONFIG_VALUE_0=" + s.remote.header}
	}
	c := s.git.limited(watched, uint64(s.limits.Pack), append(extra, s.remote.proxy...), s.fetchArgs(shas)...)
	_, err := c.output(4096)
	// A git that was stopped by its limit says nothing; the file that it could not
	// enlarge, which the shell's limit rounds down to a block, is the witness.
	if size := s.size(); size > s.limits.Pack || err != nil && size > s.limits.Pack-4096 {
		err = errPack
	}
	if err != nil {
		s.removeParts()
		return s.fetchFailure(ctx, watched, err, s.remote.redact(c.said.String()))
	}
	return nil
}

var errPack = errors.New("more was sent than is allowed")

// watch ends its context when the store grows beyond the limit.
func (s *Store) watch(ctx context.Context) (context.Context, func()) {
	watched, cancel := context.WithCancelCause(ctx)
	go func() {
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-watched.Done():
				return
			case <-ticker.C:
				if s.size() > s.limits.Pack {
					cancel(errPack)
					return
				}
			}
		}
	}()
	return watched, func() { cancel(nil) }
}

func (s *Store) size() int64 {
	var sum int64
	filepath.WalkDir(s.bare, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil { // a file may just have been renamed
				sum += info.Size()
			}
		}
		return nil
	})
	return sum
}

// removeParts removes what a fetch that was killed leaves behind.
func (s *Store) removeParts() {
	for _, pattern := range []string{"objects/pack/tmp_*", "objects/tmp_*", "objects/*/tmp_*", "shallow.lock"} {
		parts, _ := filepath.Glob(filepath.Join(s.bare, pattern))
		for _, part := range parts {
			os.Remove(part)
		}
	}
}

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

func (s *Store) checkCommits(ctx context.Context, shas []string) error {
	o, err := s.objects(ctx)
	if err != nil {
		return err
	}
	defer o.close()
	for _, sha := range shas {
		if _, err := o.commit(ctx, sha); err != nil {
			return err
		}
	}
	return nil
}
