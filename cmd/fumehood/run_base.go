// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import "github.com/fumehood/fumehood/pkg/gate"

// findBase returns the base on which commands that fail are run, too, or nil: the one that a job
// names, or else that of --base.
func (c *invocation) findBase(s *runFlags, a gate.About) (*gate.BaseTree, error) {
	switch {
	case !s.compares || s.planned == nil:
		return nil, nil
	case s.about == "":
		return gate.FindBase(c.Ctx, s.workspace, s.base)
	}
	tree := gate.NewBaseTree(s.workspace, a.MergeBase, "")
	if tree != nil {
		tree.Left = a.TreeLeft
	}
	return tree, nil
}
