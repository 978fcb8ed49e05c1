// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"io"

	"github.com/fumehood/fumehood/internal/policy"
)

// readCommit reads a directory at a commit.
func readCommit(ctx context.Context, p parsed, o Options) (policy.Layer, string, error) {
	none := policy.Layer{}
	if o.Repository == nil {
		return none, "", stopError(CodeSource, "name a directory", nil, "cannot read %s: there is no repository here",
			p.shown)
	}
	rev := p.rev
	if p.kind == KindBase {
		if o.Base == nil {
			return none, "", stopError(CodeSource, "outside of CI, name a branch: git:main:"+p.place, nil,
				"cannot read %s: there is no pull request here", p.shown)
		}
		var err error
		if rev, err = o.Base(); err != nil {
			return none, "", err
		}
	}
	r, err := o.Repository(ctx)
	if err != nil {
		return none, "", err
	}
	if c, ok := r.(io.Closer); ok {
		defer c.Close()
	}
	commit, err := r.Commit(ctx, rev)
	if err != nil {
		return none, "", err
	}
	files, unfit, err := r.ReadDir(ctx, commit, p.place, policy.IsLayerFile)
	if err != nil {
		return none, "", err
	}
	if len(unfit) > 0 {
		return none, "", stopError(codeSymlink, "keep only plain files and directories in it", nil,
			"cannot use part of %s: %s", p.shown, unfit[0])
	}
	l, err := policy.FromFiles(p.shown, files)
	return l, commit, err
}
