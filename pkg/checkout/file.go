// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"context"
	"io"
)

// File returns one file of a commit, of at most max bytes. If the commit does not
// have the path, the error is a *NotFound. Symlinks are not followed.
func (s *Store) File(ctx context.Context, sha, path string, max int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.Wall)
	defer cancel()
	if err := checkPath(path); err != nil {
		return nil, err
	}
	o, err := s.objects(ctx)
	if err != nil {
		return nil, err
	}
	defer o.close()
	tree, err := o.commit(ctx, sha)
	if err != nil {
		return nil, err
	}
	at, err := o.find(ctx, sha, tree, path)
	if err != nil {
		return nil, err
	}
	if at.kind != file {
		return nil, stop(CodeTree, "", nil, "%q is not a file in commit %s", cut(path), sha)
	}
	return o.blob(ctx, at.id, path, max)
}

// blob asks for the size first, so that a large object is not read at all.
func (o *objects) blob(ctx context.Context, id, path string, max int64) (content []byte, err error) {
	err = o.sizes(ctx, []string{id}, func(_ int, kind string, size int64) error {
		if kind == "blob" && size > max {
			return stop(CodeLimit, "", nil, "%q has %d bytes, more than the %d that are read", cut(path), size, max)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = o.each(ctx, "blob", max, []string{id}, func(_ int, _ int64, r io.Reader) error {
		content, err = io.ReadAll(r)
		return err
	})
	return content, err
}
