// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"cmp"
	"context"
	"slices"
)

// A Change is a path at which two commits differ.
type Change struct {
	Path string // untrusted
	Kind ChangeKind
}

// ChangeKind is the kind of a Change.
type ChangeKind string

// A renamed file is Removed at one path and Added at another.
const (
	Added   ChangeKind = "added"
	Edited  ChangeKind = "changed"
	Removed ChangeKind = "removed"
)

// Changed compares the trees of two commits by id and mode. It returns the paths of
// all files, symlinks and submodules that differ, in order, including paths that
// Write refuses.
func (s *Store) Changed(ctx context.Context, base, head string) ([]Change, error) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.Wall)
	defer cancel()
	o, err := s.objects(ctx)
	if err != nil {
		return nil, err
	}
	defer o.close()
	old, err := o.commit(ctx, base)
	if err != nil {
		return nil, err
	}
	new, err := o.commit(ctx, head)
	if err != nil {
		return nil, err
	}
	d := differ{objects: o, limits: s.limits}
	if err := d.trees(ctx, "", old, new); err != nil {
		return nil, err
	}
	slices.SortFunc(d.changes, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	return d.changes, nil
}

type differ struct {
	*objects
	limits  Limits
	count   int
	changes []Change
}

// trees compares two trees. One of them may be "", which means no tree.
func (d *differ) trees(ctx context.Context, prefix, old, new string) error {
	if old == new {
		return nil
	}
	if len(prefix) > d.limits.Path {
		return stop(CodeLimit, "raise the checkout's limit Path", nil, "the commit has paths of more than %d bytes", d.limits.Path)
	}
	before, err := d.entries(ctx, old)
	if err != nil {
		return err
	}
	after, err := d.entries(ctx, new)
	if err != nil {
		return err
	}
	for name, e := range before {
		if err := d.entry(ctx, prefix+name, e, after[name]); err != nil {
			return err
		}
	}
	for name, e := range after {
		if _, both := before[name]; !both {
			if err := d.entry(ctx, prefix+name, entry{}, e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *differ) entries(ctx context.Context, tree string) (map[string]entry, error) {
	if tree == "" {
		return nil, nil
	}
	list, err := d.tree(ctx, tree)
	if err != nil {
		return nil, err
	}
	if d.count += len(list); d.count > 2*d.limits.Files {
		return nil, stop(CodeLimit, "raise the checkout's limit Files", nil, "the commits have more than %d files, directories and links", d.limits.Files)
	}
	named := make(map[string]entry, len(list))
	for _, e := range list {
		named[e.name] = e
	}
	return named, nil
}

// entry compares the entries of two trees at a path. The zero entry means no entry.
func (d *differ) entry(ctx context.Context, path string, old, new entry) error {
	if old == new {
		return nil
	}
	oldTree, newTree := "", ""
	if old.kind == folder {
		oldTree, old = old.id, entry{}
	}
	if new.kind == folder {
		newTree, new = new.id, entry{}
	}
	switch {
	case old.id != "" && new.id != "":
		d.changes = append(d.changes, Change{path, Edited})
	case old.id != "":
		d.changes = append(d.changes, Change{path, Removed})
	case new.id != "":
		d.changes = append(d.changes, Change{path, Added})
	}
	return d.trees(ctx, path+"/", oldTree, newTree)
}
