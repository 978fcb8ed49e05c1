// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"io"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/fumehood/fumehood/internal/sandbox/image"
)

// omitted are the places at the root that the sandbox provides itself. Their content is not
// in the image file.
var omitted = []string{".fumehood", "dev", "home", "proc", "root", "run", "sys", "tmp", "var", "workspace"}

// writeTree adds the tree to w, in the order of paths.
func (b *builder) writeTree(w *image.Writer) error {
	for _, name := range omitted {
		delete(b.root.children, name)
	}
	return b.addNode(w, ".", b.root)
}

func (b *builder) addNode(w *image.Writer, path string, n *node) error {
	e := image.Entry{Path: path, Mode: n.mode, ModTime: clampTime(n.time), Link: n.link}
	var err error
	switch {
	case n.mode&fs.ModeDevice != 0:
		return nil
	case n.file == nil:
		err = w.Add(e, nil)
	case n.file.path != "":
		e.Hard = n.file.path
		err = w.Add(e, nil)
	default:
		n.file.path, e.Size = path, n.file.size
		err = w.Add(e, io.NewSectionReader(b.spool, n.file.at, n.file.size))
	}
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(n.children)) {
		below := path + "/" + name
		if path == "." {
			below = name
		}
		if err := b.addNode(w, below, n.children[name]); err != nil {
			return err
		}
	}
	return nil
}

// clampTime returns t, or the next time that an image can have.
func clampTime(t time.Time) time.Time {
	if first := time.Unix(0, 0); t.Before(first) {
		return first
	}
	if last := time.Unix(1<<33, 0); t.After(last) {
		return last
	}
	return t
}
