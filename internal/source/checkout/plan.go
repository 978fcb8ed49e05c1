// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"context"
	"io"
)

// A plan lists what will be written of a tree.
type plan struct {
	nodes   []node
	sizes   map[string]int64 // by blob
	targets map[string]string
}

// planTree walks the tree, checks the links and enforces the limits.
func (o *objects) planTree(ctx context.Context, tree string, limits Limits) (plan, error) {
	nodes, err := o.walkTree(ctx, tree, limits)
	if err != nil {
		return plan{}, err
	}
	p := plan{nodes: nodes, sizes: map[string]int64{}, targets: map[string]string{}}
	if err := p.measureBlobs(ctx, o, limits); err != nil {
		return plan{}, err
	}
	return p, p.readLinks(ctx, o)
}

// writableBlobs returns the ids of the nodes of the kinds that can be written, once each.
func (p plan) writableBlobs(kinds ...kind) (ids []string) {
	seen := map[string]bool{}
	for _, n := range p.nodes {
		for _, k := range kinds {
			if n.kind == k && !n.left.isAbsent() && !seen[n.id] {
				seen[n.id] = true
				ids = append(ids, n.id)
			}
		}
	}
	return ids
}

func (p plan) measureBlobs(ctx context.Context, o *objects, limits Limits) error {
	ids := p.writableBlobs(file, link)
	err := o.readSizes(ctx, ids, func(i int, kind string, size int64) error {
		if kind != "blob" {
			return wrongObject(ids[i], "blob", kind, size)
		}
		p.sizes[ids[i]] = size
		return nil
	})
	if err != nil {
		return err
	}
	sum := int64(0)
	for _, n := range p.nodes {
		size := p.sizes[n.id]
		if n.kind != file || n.left.isAbsent() {
			continue
		}
		if size > limits.File {
			return newStopError(CodeLimit, "raise the checkout's limit File, if the file should be this large", nil,
				"%q has %d bytes, more than the %d that one file may have", cutOutput(n.path), size, limits.File)
		}
		if sum += size; sum > limits.Bytes {
			return newStopError(CodeLimit, "raise the checkout's limit Bytes, if the repository should be this large",
				nil,
				"the commit's files have more than %d bytes", limits.Bytes)
		}
	}
	return nil
}

// readLinks reads the links' targets, and marks the links that are not written.
func (p plan) readLinks(ctx context.Context, o *objects) error {
	var ids []string
	for _, id := range p.writableBlobs(link) {
		if p.sizes[id] <= maxTarget {
			ids = append(ids, id)
		}
	}
	err := o.readEach(ctx, "blob", maxTarget, ids, func(i int, _ int64, r io.Reader) error {
		target, err := io.ReadAll(r)
		p.targets[ids[i]] = string(target)
		return err
	})
	for i, n := range p.nodes {
		if n.kind == link && !n.left.isAbsent() && badLink(n.path, p.targets[n.id]) {
			p.nodes[i].left = BadLink
		}
	}
	return err
}
