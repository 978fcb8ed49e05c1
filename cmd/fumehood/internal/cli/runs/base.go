// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
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
	tree := gate.NewBaseTree(s.Workspace, s.MergeBase, "")
	if tree != nil {
		tree.Left = s.TreeLeft
	}
	return tree, nil
}
