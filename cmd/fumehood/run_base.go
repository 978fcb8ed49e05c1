// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"

	"github.com/fumehood/fumehood/pkg/checkout"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// originHead is the ref of origin's default branch, as git clone writes it.
const originHead = "refs/remotes/origin/HEAD"

// findBase returns the base on which commands that fail are run, too, or nil. A job names it;
// otherwise it is the merge base of HEAD and --base. Without --base it is that of origin's default
// branch, if there is one and HEAD is not on it. Only a --base that cannot be used is an error.
func (c *invocation) findBase(s *runFlags, a gate.About) (*gate.BaseTree, error) {
	switch {
	case !s.compares || s.planned == nil:
		return nil, nil
	case s.about != "":
		tree := baseTree(s.workspace, a.MergeBase, "")
		if tree != nil {
			tree.Left = a.TreeLeft
		}
		return tree, nil
	}
	commit, below, err := c.mergeBase(s)
	if err != nil {
		if s.base != "" {
			return nil, err
		}
		return nil, nil
	}
	return baseTree(s.workspace, commit, below), nil
}

// mergeBase returns the merge base of HEAD and the base, "" if HEAD is on the base, and the
// directory of the commit that the workspace is.
func (c *invocation) mergeBase(s *runFlags) (commit, below string, err error) {
	local, err := checkout.OpenLocal(c.Ctx, s.workspace)
	if err != nil {
		return "", "", err
	}
	defer local.Close()
	if below, err = local.Below(s.workspace); err != nil {
		return "", "", err
	}
	name := s.base
	if name == "" {
		name = originHead
	}
	base, err := local.Commit(c.Ctx, name)
	if err != nil {
		return "", "", err
	}
	head, err := local.Commit(c.Ctx, "HEAD")
	if err != nil {
		return "", "", err
	}
	commit, err = local.MergeBase(c.Ctx, base, head)
	if commit == head {
		if s.base != "" {
			err = &proposal.StopError{Code: checkout.CodeLocal, Message: "HEAD is on the base: there is nothing to compare with", Hint: "leave out --base, or commit the change"}
		}
		commit = ""
	}
	return commit, below, err
}

// baseTree returns the tree of a commit in the repository of the workspace, nil for no commit.
func baseTree(workspace, commit, below string) *gate.BaseTree {
	if commit == "" {
		return nil
	}
	return &gate.BaseTree{Commit: commit, Directory: below, Write: func(ctx context.Context, dir string) ([]string, error) {
		local, err := checkout.OpenLocal(ctx, workspace)
		if err != nil {
			return nil, err
		}
		defer local.Close()
		tree, err := local.Write(ctx, commit, dir, checkout.Limits{})
		return tree.Describe(), err
	}}
}
