// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/internal/source/checkout"
	"github.com/fumehood/fumehood/pkg/gate"
)

// findBase returns the base on which commands that fail are run, too, or nil: the one that a job
// names, or else that of --base.
func (s *Flags) findBase(c *cli.Invocation) (*gate.BaseTree, error) {
	switch {
	case !s.compares || s.planned == nil:
		return nil, nil
	case !s.fromJob:
		return gate.FindBase(c.Ctx, s.Workspace, s.base)
	}
	if s.MergeBase == "" {
		return nil, nil
	}
	return &gate.BaseTree{Commit: s.MergeBase, Left: s.TreeLeft,
		Write: func(ctx context.Context, dir string) ([]string, error) {
			return checkout.WriteCommit(ctx, s.Workspace, s.MergeBase, dir)
		}}, nil
}
