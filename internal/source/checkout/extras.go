// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Extras are parts of a commit that are not in its repository's objects.
type Extras struct {
	Submodules bool // their files at the pinned commits, without their history
	LFS        bool // the files in place of Git LFS pointers
}

// The bounds of the extras of one commit. Files, bytes and time count like those of the
// commit itself, to the same limits.
const (
	maxModules = 50 // nested ones included
	maxNesting = 3
)

// AddExtras adds to what Write made of tree in dir, and returns the tree with the new counts.
//
// A submodule is fetched from where the commit's .gitmodules says, if that is on the server of
// the store's repository, over the same protocol, and without the token. Large files are
// requested from the LFS server of the repository that has the pointer; .lfsconfig is not read.
// Their size and hash must be the pointer's. No program of the commit or of git's configuration
// runs: no filter, hook or update command.
//
// What is refused, missing or beyond a bound stays as Write made it: it is in Left, with the
// reason. An error is that of ctx or of this machine.
func (s *Store) AddExtras(ctx context.Context, tree Tree, dir string, want Extras) (Tree, error) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.Wall)
	defer cancel()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return tree, newStopError(CodeWrite, "", err, "cannot open the directory of the commit")
	}
	defer root.Close()
	x := extras{want: want, room: s.limits}
	x.room.Files, x.room.Bytes = x.room.Files-tree.Files-tree.Symlinks, x.room.Bytes-tree.Bytes
	tree, err = x.addExtras(ctx, s, tree, root, 0)
	slices.SortStableFunc(tree.Left, func(a, b Left) int { return strings.Compare(a.Path, b.Path) })
	return tree, err
}

type extras struct {
	want    Extras
	room    Limits // what is left of the limits
	modules int
}

// addExtras adds the extras of one repository, whose files are in root.
func (x *extras) addExtras(ctx context.Context, s *Store, tree Tree, root *os.Root, depth int) (Tree, error) {
	if x.want.LFS {
		if err := x.fetchLargeFiles(ctx, s, &tree, root); err != nil {
			return tree, err
		}
	}
	if !x.want.Submodules || !slices.ContainsFunc(tree.Left, func(l Left) bool { return l.Why == Submodule }) {
		return tree, nil
	}
	places, err := s.modulePlaces(ctx, tree.SHA)
	if err != nil {
		return tree, err
	}
	listed := tree.Left
	tree.Left = nil
	for _, left := range listed {
		if left.Why != Submodule {
			tree.Left = append(tree.Left, left)
			continue
		}
		added, err := x.writeSubmodule(ctx, s, places.placeOf(left.Path), left, root, depth)
		if err != nil {
			return tree, err
		}
		tree.Files, tree.Symlinks, tree.Bytes = tree.Files+added.Files, tree.Symlinks+added.Symlinks,
			tree.Bytes+added.Bytes
		tree.Left = append(tree.Left, added.Left...)
	}
	return tree, nil
}

// writeSubmodule writes one submodule, and what it contains. The paths in the returned Left are those
// of the parent.
func (x *extras) writeSubmodule(
	ctx context.Context, s *Store, from submodulePlace, left Left, root *os.Root, depth int,
) (Tree, error) {
	refused := func(why string) (Tree, error) {
		return Tree{Left: []Left{{left.Path, Submodule, why}}}, nil
	}
	x.modules++
	switch {
	case from.why != "":
		return refused(from.why)
	case depth >= maxNesting:
		return refused(fmt.Sprintf("nested more than %d deep", maxNesting))
	case x.modules > maxModules:
		return refused(fmt.Sprintf("more than %d submodules", maxModules))
	case x.room.Files <= 0 || x.room.Bytes <= 0 || x.room.Pack <= 0:
		return refused("the checkout's limits are used up")
	}
	at, err := root.OpenRoot(left.Path)
	if err != nil {
		return Tree{}, cannotWrite(left.Path, err)
	}
	defer at.Close()
	tree, err := x.fetchModule(ctx, s, from.url, strings.TrimPrefix(left.Detail, "at "), at, depth)
	if err != nil && (ctx.Err() != nil || proposal.FailureOf(err).Code == CodeWrite) {
		return Tree{}, stopOrContextError(ctx, err)
	}
	if err != nil {
		return refused("not fetched: " + proposal.FailureOf(err).Message)
	}
	for i := range tree.Left {
		tree.Left[i].Path = left.Path + "/" + tree.Left[i].Path
	}
	return tree, nil
}

// fetchModule fetches a commit of another repository of the same server and writes it to at.
func (x *extras) fetchModule(ctx context.Context, s *Store, url, id string, at *os.Root, depth int) (Tree, error) {
	sub, err := s.newSiblingStore(url, x.room)
	if err != nil {
		return Tree{}, err
	}
	defer sub.Close()
	if err := sub.Fetch(ctx, id); err != nil {
		return Tree{}, err
	}
	x.room.Pack -= sub.measureSize()
	tree, err := sub.writeInto(ctx, id, at)
	if err != nil {
		return Tree{}, errors.Join(err, removeContents(at))
	}
	x.room.Files, x.room.Bytes = x.room.Files-tree.Files-tree.Symlinks, x.room.Bytes-tree.Bytes
	return x.addExtras(ctx, sub, tree, at, depth+1)
}

// newSiblingStore is a store for another repository of the same server. It has no token.
func (s *Store) newSiblingStore(url string, limits Limits) (*Store, error) {
	dir, err := os.MkdirTemp(s.dir, "module-")
	if err != nil {
		return nil, newStopError(CodeWrite, "", err, "cannot make the store")
	}
	return &Store{limits: limits, git: s.git, remote: remote{url: url, env: s.remote.env, ca: s.remote.ca}, dir: dir,
		bare:    path.Join(dir, "objects.git"),
		fetched: map[string]bool{}, wait: s.wait}, nil
}

// writeInto writes the tree of a commit to an empty directory.
func (s *Store) writeInto(ctx context.Context, sha string, root *os.Root) (Tree, error) {
	o, id, err := s.treeOf(ctx, sha)
	if err != nil {
		return Tree{}, err
	}
	defer o.close()
	p, err := o.planTree(ctx, id, s.limits)
	if err != nil {
		return Tree{}, err
	}
	return p.writeNodes(ctx, o, Tree{SHA: sha, ID: id}, root)
}

// removeContents removes what is in root.
func removeContents(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	for _, name := range names {
		err = errors.Join(err, root.RemoveAll(name))
	}
	return err
}
