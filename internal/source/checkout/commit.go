// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// readCommitTree returns the id of a commit's tree.
func (o *objects) readCommitTree(ctx context.Context, sha string) (tree string, err error) {
	tree, _, err = o.readTreeAndParents(ctx, sha)
	return tree, err
}

// treeOf opens the store and returns the id of a commit's tree. The caller closes o.
func (s *Store) treeOf(ctx context.Context, sha string) (o *objects, tree string, err error) {
	if o, err = s.openObjects(ctx); err != nil {
		return nil, "", err
	}
	if tree, err = o.readCommitTree(ctx, sha); err != nil {
		o.close()
		return nil, "", err
	}
	return o, tree, nil
}

// readTreeAndParents returns the ids of a commit's tree and parents.
func (o *objects) readTreeAndParents(ctx context.Context, sha string) (tree string, parents []string, err error) {
	if !idRE.MatchString(sha) {
		return "", nil, newStopError(CodeCommit, "give all 40 (or 64) lower-case hex digits of the id", nil,
			"%q is not a full commit id", cutOutput(sha))
	}
	kind := ""
	err = o.readSizes(ctx, []string{sha}, func(_ int, is string, _ int64) error { kind = is; return nil })
	if err != nil {
		return "", nil, err
	}
	switch kind {
	case "commit":
	case "":
		return "", nil, newStopError(CodeCommit, "", nil, "the store has no commit %s", sha)
	default:
		return "", nil, newStopError(CodeCommit, "give the id of a commit", nil, "%s is a %s, not a commit", sha, kind)
	}
	err = o.readEach(ctx, "commit", maxCommit, []string{sha}, func(_ int, _ int64, r io.Reader) error {
		data, err := io.ReadAll(r)
		if err == nil {
			tree, parents, err = parseCommit(string(data), len(sha))
		}
		return err
	})
	return tree, parents, err
}

// parseCommit reads the first lines of a commit: its tree, then its parents.
func parseCommit(data string, digits int) (tree string, parents []string, err error) {
	for line := range strings.Lines(data) {
		key, id, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if tree == "" && key == "tree" && len(id) == digits && idRE.MatchString(id) {
			tree = id
			continue
		}
		if tree == "" || key != "parent" {
			break
		}
		if len(id) != digits || !idRE.MatchString(id) {
			return "", nil, errors.New("a commit names no parent")
		}
		parents = append(parents, id)
	}
	if tree == "" {
		return "", nil, errors.New("a commit names no tree")
	}
	return tree, parents, nil
}

// readTree returns the entries of one tree.
func (o *objects) readTree(ctx context.Context, id string) (entries []entry, err error) {
	err = o.readTrees(ctx, []string{id}, func(_ int, found []entry) error { entries = found; return nil })
	return entries, err
}

func (o *objects) readTrees(ctx context.Context, ids []string, use func(i int, entries []entry) error) error {
	return o.readEach(ctx, "tree", maxTree, ids, func(i int, _ int64, r io.Reader) error {
		data, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		entries, err := parseTree(data, len(ids[i])/2)
		if err != nil {
			return fmt.Errorf("tree %s: %w", ids[i], err)
		}
		return use(i, entries)
	})
}
