// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// An entry is one line of a tree. Its name is hostile, but has no slash and is not
// empty, "." or "..".
type entry struct {
	kind kind
	exec bool
	name string
	id   string
}

type kind int

const (
	other kind = iota
	file
	link
	folder
	submodule
)

// parseTree reads "<mode> <name>\0<raw id>"…. It is strict: modes are octal, names
// are in git's order and unique.
func parseTree(data []byte, idLen int) ([]entry, error) {
	var entries []entry
	var last string
	seen := map[string]bool{}
	for len(data) > 0 {
		mode, _, ok := bytes.Cut(data[:min(len(data), 8)], []byte(" "))
		if !ok {
			return nil, errors.New("an entry has no mode")
		}
		data = data[len(mode)+1:]
		name, after, ok := bytes.Cut(data, []byte{0})
		if !ok || len(after) < idLen {
			return nil, errors.New("an entry ends early")
		}
		e := entry{name: string(name), id: hex.EncodeToString(after[:idLen])}
		data = after[idLen:]
		if err := e.setMode(string(mode)); err != nil {
			return nil, err
		}
		key := e.sortKey()
		switch {
		case e.name == "" || e.name == "." || e.name == ".." || strings.Contains(e.name, "/"):
			return nil, fmt.Errorf("invalid name %q", cutOutput(e.name))
		case seen[e.name]:
			return nil, fmt.Errorf("two entries are named %q", cutOutput(e.name))
		case key <= last:
			return nil, fmt.Errorf("entry %q is out of order", cutOutput(e.name))
		}
		seen[e.name], last = true, key
		entries = append(entries, e)
	}
	return entries, nil
}

// sortKey: git sorts a directory as if its name ended in a slash.
func (e entry) sortKey() string {
	if e.kind == folder {
		return e.name + "/"
	}
	return e.name
}

func (e *entry) setMode(mode string) error {
	if strings.Trim(mode, "01234567") != "" || mode == "" {
		return fmt.Errorf("invalid mode %q", cutOutput(mode))
	}
	switch strings.TrimLeft(mode, "0") {
	case "100644", "100664":
		e.kind = file
	case "100755":
		e.kind, e.exec = file, true
	case "120000":
		e.kind = link
	case "40000":
		e.kind = folder
	case "160000":
		e.kind = submodule
	}
	return nil
}

// A node is an entry with its whole path, relative to the directory that was walked.
type node struct {
	entry
	path  string
	left  Why    // why it is not written, or not completely; "" if it is
	other string // the name it collides with
}

// walkTree lists everything below a tree except for directories, in the order of paths.
// Hostile names and unsuitable entries are marked. It goes down level by level,
// requesting all trees of a level at once, and stops at the limit. So a few trees
// that contain each other many times cost no more than the limit.
func (o *objects) walkTree(ctx context.Context, tree string, limits Limits) ([]node, error) {
	var nodes []node
	type level struct{ paths, ids []string }
	count := 0
	for now := (level{[]string{""}, []string{tree}}); len(now.ids) > 0; {
		var next level
		err := o.readTrees(ctx, now.ids, func(i int, entries []entry) error {
			if count += len(entries); count > limits.Files {
				return newStopError(CodeLimit,
					"raise the checkout's limit Files, if the repository should have this many", nil,
					"the commit has more than %d files, directories and links", limits.Files)
			}
			for _, n := range classifyEntries(now.paths[i], entries, limits) {
				if n.kind != folder || n.left != "" {
					nodes = append(nodes, n) // a directory that is only reported
				}
				if n.kind == folder && !n.left.isAbsent() {
					next.paths, next.ids = append(next.paths, n.path+"/"), append(next.ids, n.id)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		now = next
	}
	slices.SortFunc(nodes, func(a, b node) int { return strings.Compare(a.path, b.path) })
	return nodes, nil
}

// classifyEntries marks the entries of one directory that cannot be written as they are.
func classifyEntries(prefix string, entries []entry, limits Limits) []node {
	nodes := make([]node, len(entries))
	first := map[string]int{}
	for i, e := range entries {
		n := node{entry: e, path: prefix + e.name}
		n.left = checkName(prefix, e, limits)
		if n.left == "" {
			key := foldName(e.name)
			if j, taken := first[key]; taken {
				n.left, n.other = Collision, entries[j].name
			} else {
				first[key] = i
			}
		}
		nodes[i] = n
	}
	return nodes
}

// findEntry goes down from a tree to the entry at a clean path; "" is the tree itself.
func (o *objects) findEntry(ctx context.Context, sha, tree, path string) (entry, error) {
	at := entry{kind: folder, id: tree}
	if path == "" {
		return at, nil
	}
	for name := range strings.SplitSeq(path, "/") {
		switch at.kind {
		case folder:
		case file:
			return entry{}, &NotFound{SHA: sha, Path: path}
		default: // there may be something, but not along real directories
			return entry{}, newStopError(CodeTree, "name a path without symlinks and submodules", nil,
				"the path %q goes through a symlink or submodule", cutOutput(path))
		}
		entries, err := o.readTree(ctx, at.id)
		if err != nil {
			return entry{}, err
		}
		i := slices.IndexFunc(entries, func(e entry) bool { return e.name == name })
		if i < 0 {
			return entry{}, &NotFound{SHA: sha, Path: path}
		}
		at = entries[i]
	}
	return at, nil
}
