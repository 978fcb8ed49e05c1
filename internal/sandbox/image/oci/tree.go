// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
)

// A node is one file of the tree that layers are applied to.
type node struct {
	mode     fs.FileMode
	time     time.Time
	layer    int    // the last one that has an entry for it
	link     string // target of a symbolic link
	file     *content
	children map[string]*node // not nil: a directory
}

// A content is that of a regular file, in the builder's spool. Hard links share one.
type content struct {
	at, size int64
	path     string // of the first file in the image that has it
}

func (n *node) isDir() bool { return n.children != nil }

// Dropped counts what was left out of an image.
type Dropped struct {
	Devices int `json:"devices"` // devices, sockets and pipes
	Setuid  int `json:"setuid"`  // bits that would have given a program another user
	Xattrs  int `json:"xattrs"`  // files with extended attributes, such as capabilities
}

// A builder applies layers, the lowest first. It keeps the contents of files in a spool, a
// file without a name.
type builder struct {
	limits  Limits
	root    *node
	nodes   int
	seen    int   // entries
	bytes   int64 // that layers may still have
	layer   int   // the current one, from 1
	spool   *os.File
	end     int64 // of the spool
	dropped Dropped
}

func newBuilder(l Limits, spool *os.File) *builder {
	return &builder{limits: l, root: &node{mode: fs.ModeDir | 0o755, children: map[string]*node{}}, bytes: l.Bytes,
		spool: spool}
}

const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
	metadata = ".wh..wh." // of AUFS, without meaning
)

// applyEntry applies one entry; r is its content.
func (b *builder) applyEntry(h *tar.Header, r io.Reader) error {
	path, err := splitPath(h.Name)
	if err != nil {
		return err
	}
	if len(path) == 0 {
		if h.Typeflag != tar.TypeDir {
			return badLayer("its root is not a directory")
		}
		b.root.mode, b.root.time = fs.ModeDir|fs.FileMode(h.Mode&0o777), h.ModTime
		return nil
	}
	dir, name := path[:len(path)-1], path[len(path)-1]
	for _, part := range dir {
		switch {
		case strings.HasPrefix(part, metadata):
			return nil
		case strings.HasPrefix(part, whiteout):
			return badLayer("%.100q is below a whiteout", h.Name)
		}
	}
	if strings.HasPrefix(name, whiteout) {
		return b.applyWhiteout(dir, name)
	}
	return b.putFile(dir, name, h, r)
}

// splitPath returns the parts of a path relative to the root.
func splitPath(name string) (parts []string, err error) {
	if len(name) > maxPath || strings.ContainsRune(name, 0) {
		return nil, badLayer("a path has %d bytes or a NUL", len(name))
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "" || part == ".":
		case part == "..":
			return nil, badLayer("the path %.100q contains \"..\"", name)
		case len(part) > maxName:
			return nil, badLayer("a name has %d bytes", len(part))
		default:
			parts = append(parts, part)
		}
	}
	return parts, nil
}

// applyWhiteout applies a whiteout, which hides only what lower layers have.
func (b *builder) applyWhiteout(dir []string, name string) error {
	hidden := strings.TrimPrefix(name, whiteout)
	if hidden == "" || hidden == "." || hidden == ".." {
		return badLayer("a whiteout names %q", hidden)
	}
	parent, err := b.findDirectory(dir, false)
	switch {
	case err != nil || parent == nil:
		return err
	case name == opaque:
		b.pruneLower(parent)
		return nil
	case strings.HasPrefix(name, metadata):
		return nil
	}
	if n := parent.children[hidden]; n != nil && b.pruneLower(n) {
		delete(parent.children, hidden)
		b.nodes--
	}
	return nil
}

// pruneLower removes from below n what lower layers have, and reports whether n itself is theirs
// and has nothing left.
func (b *builder) pruneLower(n *node) bool {
	for name, child := range n.children {
		if b.pruneLower(child) {
			delete(n.children, name)
			b.nodes--
		}
	}
	return n.layer < b.layer && len(n.children) == 0
}

// findDirectory returns the directory at path, following symbolic links inside the tree, as
// programs in the image do. With make it is made where there is nothing; else nil is returned.
func (b *builder) findDirectory(path []string, make bool) (*node, error) {
	at := []*node{b.root}
	for links := 0; len(path) > 0; {
		name := path[0]
		path = path[1:]
		if name == ".." { // of a link's target
			at = at[:max(1, len(at)-1)]
			continue
		}
		parent := at[len(at)-1]
		next := parent.children[name]
		switch {
		case next != nil && next.mode&fs.ModeSymlink != 0:
			if links++; links > maxLinks {
				return nil, badLayer("too many symbolic links lead to %.100q", name)
			}
			path = append(targetOf(next.link), path...)
			if strings.HasPrefix(next.link, "/") {
				at = at[:1]
			}
			continue
		case next != nil && next.isDir():
		case !make:
			return nil, nil
		case next != nil && next.layer == b.layer:
			return nil, badLayer("%.100q is a file and a directory", name)
		default:
			next = &node{mode: fs.ModeDir | 0o755, layer: b.layer, children: map[string]*node{}}
			if err := b.setChild(parent, name, next); err != nil {
				return nil, err
			}
		}
		at = append(at, next)
	}
	return at[len(at)-1], nil
}

func targetOf(link string) (parts []string) {
	for part := range strings.SplitSeq(link, "/") {
		if part != "" && part != "." {
			parts = append(parts, part)
		}
	}
	return parts
}

// setChild puts n at name in parent, where it replaces everything.
func (b *builder) setChild(parent *node, name string, n *node) error {
	b.forgetTree(parent.children[name])
	if b.nodes++; b.nodes > b.limits.Files {
		return tooMuch("it has more than %d files", b.limits.Files)
	}
	parent.children[name] = n
	return nil
}

func (b *builder) forgetTree(n *node) {
	if n == nil {
		return
	}
	b.nodes--
	for _, child := range n.children {
		b.forgetTree(child)
	}
}

// putFile applies an entry that is a file.
func (b *builder) putFile(dir []string, name string, h *tar.Header, r io.Reader) error {
	parent, err := b.findDirectory(dir, true)
	if err != nil {
		return err
	}
	old := parent.children[name]
	if h.Typeflag == tar.TypeDir && old != nil && old.isDir() {
		old.mode, old.time, old.layer = fs.ModeDir|b.filterPermissions(h), h.ModTime, b.layer
		return nil
	}
	n, err := b.makeNode(h, r)
	if err != nil {
		return err
	}
	return b.setChild(parent, name, n)
}

// filterPermissions returns those of an entry, and counts what is left out.
func (b *builder) filterPermissions(h *tar.Header) fs.FileMode {
	mode := fs.FileMode(h.Mode & 0o777)
	if h.Typeflag == tar.TypeDir && h.Mode&0o1000 != 0 {
		mode |= fs.ModeSticky
	}
	if h.Typeflag == tar.TypeReg && h.Mode&0o6000 != 0 {
		b.dropped.Setuid++
	}
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "SCHILY.xattr.") {
			b.dropped.Xattrs++
			break
		}
	}
	return mode
}

// makeNode makes the file that an entry describes.
func (b *builder) makeNode(h *tar.Header, r io.Reader) (*node, error) {
	n := &node{mode: b.filterPermissions(h), time: h.ModTime, layer: b.layer}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
		var err error
		n.file, err = b.spoolContent(h.Size, r)
		return n, err
	case tar.TypeDir:
		n.mode |= fs.ModeDir
		n.children = map[string]*node{}
	case tar.TypeSymlink:
		if h.Linkname == "" || len(h.Linkname) > maxPath || strings.ContainsRune(h.Linkname, 0) {
			return nil, badLayer("the symbolic link %.100q has an invalid target", h.Name)
		}
		n.mode, n.link = fs.ModeSymlink|0o777, h.Linkname
	case tar.TypeLink:
		return b.hardLink(h)
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		b.dropped.Devices++
		n.mode |= fs.ModeDevice // hides what lower layers have here, and is left out at the end
	default:
		return nil, badLayer("%.100q has the unsupported type %q", h.Name, h.Typeflag)
	}
	return n, nil
}

// hardLink returns another node with the content of an earlier file, of this layer or a
// lower one.
func (b *builder) hardLink(h *tar.Header) (*node, error) {
	path, err := splitPath(h.Linkname)
	if err != nil {
		return nil, err
	}
	var target *node
	if len(path) > 0 {
		dir, err := b.findDirectory(path[:len(path)-1], false)
		if err != nil {
			return nil, err
		}
		if dir != nil {
			target = dir.children[path[len(path)-1]]
		}
	}
	if target == nil || target.isDir() {
		return nil, badLayer("%.100q is a hard link to %.100q, which is not a file before it", h.Name, h.Linkname)
	}
	n := *target
	n.layer = b.layer
	return &n, nil
}

// spoolContent copies the content of a file to the spool.
func (b *builder) spoolContent(size int64, r io.Reader) (*content, error) {
	if size > b.limits.File || size < 0 {
		return nil, tooMuch("a file has %d bytes", size)
	}
	if b.end += size; b.end > b.limits.Bytes { // holes are not in the layer's bytes
		return nil, tooMuch("its files have more than %d bytes", b.limits.Bytes)
	}
	c := &content{at: b.end - size, size: size}
	out := io.NewOffsetWriter(b.spool, c.at)
	n, err := io.Copy(spoolWriter{out}, r)
	if err == nil && n != size {
		err = badLayer("a file has %d bytes instead of %d", n, size)
	}
	return c, err
}

// A spoolWriter distinguishes errors of the disk from those of the layer.
type spoolWriter struct{ w io.Writer }

func (s spoolWriter) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	return n, onDisk(err)
}
