// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/strictjson"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// readGitHub reads a bundle of a repository on GitHub. What the ref names may change at any time, so a key
// and a minimum revision are required.
func readGitHub(ctx context.Context, p parsed, o Options, origin Origin) (policy.Layer, Origin, error) {
	if err := refuseUnsigned(p, o); err != nil {
		return policy.Layer{}, Origin{}, err
	}
	now := time.Now
	if o.Now != nil {
		now = o.Now
	}
	c := bundleCopy{Spec: p.shown}
	var err error
	if c.Bundle, c.Commit, err = o.GitHub(ctx, p.place, p.rev, p.file); err != nil {
		return readCopy(p, o, now(), notRead(p, err))
	}
	l, origin, _, err := c.open(p, o, origin)
	if err == nil && o.CopyDir != "" {
		c.Read = now().UTC().Truncate(time.Second)
		err = c.write(o.CopyDir)
	}
	if err != nil {
		return policy.Layer{}, Origin{}, err
	}
	return l, origin, nil
}

func refuseUnsigned(p parsed, o Options) error {
	switch {
	case o.GitHub == nil:
		return stopError(CodeSource, "clone the repository and name the bundle's file in the clone", nil,
			"%s can only be read by the action", p.shown)
	case len(o.Keys) == 0:
		return stopError(CodeSignature, "give the public key: policy-key", nil,
			"%s is not pinned by a digest, and no key is given that must have signed it", p.shown)
	case o.MinimumRevision == "":
		return stopError(CodeRevision, "give the revision that is in use now: minimum-revision", nil,
			"%s is not pinned by a digest, and no minimum revision is given: an old bundle may be signed, too", p.shown)
	}
	return nil
}

const hintGitHub = "check the repository, the ref and the file. If it is a private repository, give the input organization-token " +
	"a token with contents: read there, such as an app's: a workflow's own token reads no private repository but its own"

// unanswered are the codes of package github for requests that GitHub did not answer.
var unanswered = []string{"github.rate-limit", "github.unavailable"}

// notRead says why GitHub did not return the bundle. An answer is not a reason to use a copy: the
// repository may have been closed to this one.
func notRead(p parsed, err error) *proposal.StopError {
	hint := hintGitHub
	if f := proposal.FailureOf(err); f != nil && f.Code == "github.canceled" {
		hint = f.Hint
	} else if f != nil && slices.Contains(unanswered, f.Code) {
		hint = f.Hint + "; a bundle that is built with --max-copy-age may be replaced by its copy of the input organization-cache"
	}
	return stopError(CodeFetch, hint, err, "cannot read %s", p.shown)
}

// A bundleCopy is a bundle as GitHub returned it.
type bundleCopy struct {
	Spec   string    `json:"spec"`
	Commit string    `json:"commit"`
	Read   time.Time `json:"read"`
	Bundle []byte    `json:"bundle"`
}

const (
	copyName = "organization-policy.json"
	maxCopy  = 2 * maxArchive // base64 is a third longer
)

var commitRE = pattern.New(`^[0-9a-f]{40}$`)

// open opens the bundle and describes it.
func (c bundleCopy) open(p parsed, o Options, origin Origin) (policy.Layer, Origin, Bundle, error) {
	b, err := Open(p.shown, c.Bundle, o)
	if err != nil {
		return policy.Layer{}, Origin{}, Bundle{}, err
	}
	origin.Commit, origin.Digest = c.Commit, Digest(c.Bundle)
	origin.Revision, origin.SignedBy = b.Revision, b.SignedBy
	return b.Layer, origin, b, nil
}

// write replaces the copy in dir.
func (c bundleCopy) write(dir string) error {
	data, err := json.Marshal(c)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	file := filepath.Join(dir, copyName)
	if err == nil {
		err = errors.Join(os.WriteFile(file+".new", data, 0o600), os.Rename(file+".new", file))
	}
	if err != nil {
		return stopError(codeCopy, "free space there, or remove the input organization-cache", err, "cannot keep a copy of %s", c.Spec)
	}
	return nil
}

// readCopy returns the copy of a bundle that GitHub did not return because of failed, which is the error
// if there is none that may be used.
func readCopy(p parsed, o Options, now time.Time, failed *proposal.StopError) (policy.Layer, Origin, error) {
	f := proposal.FailureOf(failed.Err)
	if o.CopyDir == "" || f == nil || !slices.Contains(unanswered, f.Code) {
		return policy.Layer{}, Origin{}, failed
	}
	l, origin, err := useCopy(p, o, now)
	if err != nil {
		failed.Message += fmt.Sprintf(", and its copy cannot replace it: %v", err)
		return policy.Layer{}, Origin{}, failed
	}
	return l, origin, nil
}

func useCopy(p parsed, o Options, now time.Time) (policy.Layer, Origin, error) {
	none := func(err error) (policy.Layer, Origin, error) { return policy.Layer{}, Origin{}, err }
	file, err := os.OpenFile(filepath.Join(o.CopyDir, copyName), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return none(errors.New("there is none"))
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxCopy)) // more is not JSON
	var c bundleCopy
	if err == nil {
		err = strictjson.Decode(data, &c)
	}
	if err != nil {
		return none(fmt.Errorf("it cannot be read: %w", err))
	}
	if c.Spec != p.shown || !commitRE.MatchString(c.Commit) {
		return none(errors.New("it is another policy's"))
	}
	l, origin, b, err := c.open(p, o, Origin{Kind: p.kind, Spec: p.shown, Copied: c.Read})
	switch age := now.Sub(c.Read); {
	case err != nil:
		return none(err)
	case b.MaxCopyAge == 0:
		return none(errors.New("it was built without --max-copy-age"))
	case age < -time.Minute || age > b.MaxCopyAge:
		return none(fmt.Errorf("it was read at %s, and is valid for %v", c.Read.Format(time.RFC3339), b.MaxCopyAge))
	}
	return l, origin, nil
}
