// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"context"
	"os"
	"path"
	"strings"
)

// Write writes the whole tree of a commit to dir. dir must not exist yet, and its parent
// must. Write creates files (0644 or 0755), symlinks that stay in the tree, and an empty
// directory for each submodule. Contents are byte for byte those of the objects.
//
// Limits are checked before the first file is written. After an error, dir does not
// exist.
func (s *Store) Write(ctx context.Context, sha, dir string) (Tree, error) {
	return s.WriteUnder(ctx, sha, "", dir)
}

// WriteUnder writes one directory of a commit, its content directly in dir. If the
// commit does not have the directory, the error is a *NotFound. Symlinks that lead out
// of the directory are left out, so a caller that needs all of it must check Tree.Left.
func (s *Store) WriteUnder(ctx context.Context, sha, under, dir string) (Tree, error) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.Wall)
	defer cancel()
	if err := checkPath(under); err != nil {
		return Tree{}, err
	}
	o, id, err := s.treeOf(ctx, sha)
	if err != nil {
		return Tree{}, err
	}
	defer o.close()
	at, err := o.findEntry(ctx, sha, id, under)
	if err != nil {
		return Tree{}, err
	}
	if at.kind != folder {
		return Tree{}, newStopError(CodeTree, "", nil, "%q is not a directory in commit %s", cutOutput(under), sha)
	}
	return o.writeTree(ctx, Tree{SHA: sha, ID: at.id}, dir, s.limits)
}

// checkPath refuses everything except plain paths below the root; "" is the root.
func checkPath(p string) error {
	if p == "" {
		return nil
	}
	if path.Clean(p) != p || path.IsAbs(p) || p == "." || p == ".." || strings.HasPrefix(p, "../") || badName(p) {
		return newStopError(CodeTree, "give a path below the repository's root, without dots", nil, "invalid path %q",
			cutOutput(p))
	}
	return nil
}

func (o *objects) writeTree(ctx context.Context, tree Tree, dir string, limits Limits) (_ Tree, err error) {
	p, err := o.planTree(ctx, tree.ID, limits)
	if err != nil {
		return Tree{}, err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return Tree{}, newStopError(CodeWrite, "", err, "cannot make the directory for the commit")
	}
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
		}
	}()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Tree{}, newStopError(CodeWrite, "", err, "cannot open the directory for the commit")
	}
	defer root.Close()
	if err := root.Chmod(".", 0o755); err != nil {
		return Tree{}, newStopError(CodeWrite, "", err, "cannot make the directory readable for others")
	}
	return p.writeNodes(ctx, o, tree, root)
}

// writeNodes writes the planned nodes to root, which is empty.
func (p plan) writeNodes(ctx context.Context, o *objects, tree Tree, root *os.Root) (_ Tree, err error) {
	w := writer{root: root, made: map[string]bool{".": true}, tree: tree, exact: map[os.FileMode]bool{},
		buffer: make([]byte, 1<<16)}
	if w.in, err = root.OpenRoot("."); err != nil {
		return Tree{}, newStopError(CodeWrite, "", err, "cannot open the directory for the commit")
	}
	w.inPath = "."
	defer func() { w.in.Close() }()
	if err := w.writeAll(ctx, o, p); err != nil {
		return Tree{}, asStop(err, CodeWrite, "cannot write the commit")
	}
	return w.tree, nil
}
