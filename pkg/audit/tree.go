// SPDX-License-Identifier: Apache-2.0

package audit

import "golang.org/x/mod/sumdb/tlog"

// A tree is the right edge of a Merkle tree: the roots of its complete subtrees,
// largest first. It needs 32 bytes per level, however long the log is.
type tree struct {
	size  int64
	edges []tlog.Hash
}

// addLeaf appends one leaf.
func (t *tree) addLeaf(leaf tlog.Hash) {
	for n := t.size; n&1 == 1; n >>= 1 {
		last := len(t.edges) - 1
		leaf = tlog.NodeHash(t.edges[last], leaf)
		t.edges = t.edges[:last]
	}
	t.edges = append(t.edges, leaf)
	t.size++
}

// rootHash returns the tree's hash.
func (t *tree) rootHash() tlog.Hash {
	if t.size == 0 {
		empty, err := tlog.TreeHash(0, nil)
		if err != nil {
			panic("audit: internal error: " + err.Error())
		}
		return empty
	}
	last := len(t.edges) - 1
	root := t.edges[last]
	for i := last - 1; i >= 0; i-- {
		root = tlog.NodeHash(t.edges[i], root)
	}
	return root
}
