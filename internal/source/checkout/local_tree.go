// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"context"
	"fmt"
)

// MergeBase returns the full id of the best common ancestor of two commits, which are full
// ids.
func (l *Local) MergeBase(ctx context.Context, a, b string) (string, error) {
	for _, sha := range []string{a, b} {
		if !idRE.MatchString(sha) {
			return "", newStopError(CodeCommit, "", nil, "%q is not a full commit id", cutOutput(sha))
		}
	}
	sha, err := l.git.mergeBase(ctx, l.bare, a, b)
	if err == nil && sha == "" {
		err = newStopError(CodeLocal, "name a base of the same history; a shallow clone lacks most (in CI: fetch-depth: 0)", nil,
			"the repository has no commit that %s and %s have in common", a[:12], b[:12])
	}
	return sha, err
}

// Write writes a commit's tree to dir as Store.Write does.
func (l *Local) Write(ctx context.Context, sha, dir string, limits Limits) (Tree, error) {
	limits = limits.withDefaults()
	ctx, cancel := context.WithTimeout(ctx, limits.Wall)
	defer cancel()
	o := openObjects(ctx, l.git, l.bare)
	defer o.close()
	tree, err := o.readCommitTree(ctx, sha)
	if err != nil {
		return Tree{}, err
	}
	return o.writeTree(ctx, Tree{SHA: sha, ID: tree}, dir, limits)
}

// MaxDiff is the maximum size in bytes of a Diff.
const MaxDiff = 64 << 20

// Diff returns how commit to differs from commit from, both full ids, in git's own format
// with three lines of context, with renames found and without the contents of binary files.
// No attribute, filter or external program of the repository has an effect.
func (l *Local) Diff(ctx context.Context, from, to string) ([]byte, error) {
	for _, sha := range []string{from, to} {
		if !idRE.MatchString(sha) {
			return nil, newStopError(CodeCommit, "", nil, "%q is not a full commit id", cutOutput(sha))
		}
	}
	out, err := l.git.command(ctx, nil, "--git-dir="+l.bare, "diff-tree", "-r", "-p", "-M", "-U3", "--no-ext-diff",
		"--no-textconv",
		"--no-color", "--src-prefix=a/", "--dst-prefix=b/", "--end-of-options", from, to).output(MaxDiff)
	if err != nil {
		return nil, newStopError(CodeTree, fmt.Sprintf("a diff has at most %d bytes", MaxDiff), err,
			"cannot compare the commits %s and %s", from[:12], to[:12])
	}
	return out, nil
}
