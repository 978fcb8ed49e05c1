// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"

	"github.com/fumehood/fumehood/internal/kit/listing"
)

// An upperTree reports what changed in an overlay from one look to the next. It reads only
// the upper layer, so the cost depends on what was written and not on the size of the
// tree.
type upperTree struct {
	list  lister
	lower string
	seen  map[string]*node // the content of the upper layer at the last look
	looks int
	found []change   // by the last look
	total *upperTree // that has its last look where a mark was set
	deep  bool       // list what is below a directory that was removed, too
}

// A lister calls each with every entry of the upper layer, a directory before what is in it. Each place that it
// cannot read is one of the kind listing.Unread: a command can make a path longer than the kernel accepts, and
// this must not stop the run.
type lister func(each func(listing.Entry)) error

// listWritten is the lister of Written.
func listWritten(each func(listing.Entry)) error {
	f, err := os.Open(Written)
	if err != nil {
		return err
	}
	defer f.Close()
	for r := listing.NewReader(f); ; {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		each(e)
	}
}

type node struct {
	kind      byte // as in package listing
	size      int64
	mtime     int64
	ctime     int64
	ino       uint64
	mapped    uint64
	lowerKind byte // what the lower layer has there; 0 for nothing
	look      int  // the last one that has found it
}

type change struct {
	kind, typ, path string
	size            int64
}

func newTree(list lister, lower string) *upperTree {
	return &upperTree{list: list, lower: lower, seen: map[string]*node{},
		total: &upperTree{list: list, lower: lower, seen: map[string]*node{}, deep: true}}
}

func (t *upperTree) writeChanges(limit int, w *bufio.Writer) error {
	if t == nil {
		return errors.New("no workspace")
	}
	found, omitted, err := t.scanChanges()
	if err != nil {
		return err
	}
	writeFound(found, omitted, limit, w)
	return nil
}

func writeFound(found []change, omitted, limit int, w *bufio.Writer) {
	for i, c := range found {
		if i >= limit {
			omitted += len(found) - limit
			break
		}
		fmt.Fprintf(w, "change %s %s %d %q\n", c.kind, c.typ, c.size, c.path)
	}
	fmt.Fprintf(w, "ok %d\n", omitted)
}

// markSetup makes total leave out what the last look has found, as it is now.
func (t *upperTree) markSetup() error {
	if t == nil {
		return errors.New("no workspace")
	}
	for _, c := range t.found {
		if n := t.seen[c.path]; n != nil {
			marked := *n
			marked.look = 0
			t.total.seen[c.path] = &marked
		} else {
			delete(t.total.seen, c.path)
		}
	}
	return nil
}

// writeTotalChanges is changes since the mark. It does not count as a look.
func (t *upperTree) writeTotalChanges(limit int, w *bufio.Writer) error {
	if t == nil {
		return errors.New("no workspace")
	}
	l, err := t.total.takeLook()
	if err != nil {
		return err
	}
	writeFound(l.listChanges(), l.unread, limit, w)
	return nil
}

// scanChanges lists the upper layer and compares it with the last look. It returns the
// differences sorted by path, and the number of places that it could not read.
func (t *upperTree) scanChanges() ([]change, int, error) {
	l, err := t.takeLook()
	if err != nil {
		return nil, 0, err
	}
	t.found = l.listChanges()
	l.keepNodes()
	return t.found, l.unread, nil
}

// A look is a comparison of the upper layer with the last look. Of the files that are as they were it
// keeps only that they are there.
type look struct {
	t       *upperTree
	changed map[string]*node // those that differ
	met     int              // how many of t.seen are there
	unread  int
}

func (t *upperTree) takeLook() (*look, error) {
	t.looks++
	l := &look{t: t, changed: map[string]*node{}}
	return l, t.list(l.addEntry)
}

func (l *look) addEntry(e listing.Entry) {
	if e.Kind == listing.Unread {
		l.unread++
		return
	}
	n := node{kind: e.Kind, size: e.Size, mtime: e.Mtime, ctime: e.Ctime, ino: e.Inode, mapped: e.Mapped,
		look: l.t.looks}
	if isDirectory(n.kind) {
		n.size = 0
	}
	old := l.t.seen[string(e.Path)]
	if old == nil {
		path := string(e.Path)
		n.lowerKind = l.lowerKindOf(path)
		l.changed[path] = &n
		return
	}
	if old.look != n.look {
		old.look = n.look
		l.met++
	}
	n.lowerKind = old.lowerKind // the lower layer does not change
	if *old != n {
		l.changed[string(e.Path)] = &n
	}
}

// lowerKindOf returns what the lower layer has at path, or 0. It asks only if the lower layer has the
// directory: what set-up installs is mostly not there, and a question may go to the host.
func (l *look) lowerKindOf(path string) byte {
	if slash := strings.LastIndexByte(path, '/'); slash >= 0 {
		dir := l.changed[path[:slash]]
		if dir == nil {
			dir = l.t.seen[path[:slash]]
		}
		if dir != nil && dir.lowerKind != listing.Directory {
			return 0
		}
	}
	var low syscall.Stat_t
	if syscall.Lstat(filepath.Join(l.t.lower, path), &low) != nil {
		return 0
	}
	return listing.KindOf(low.Mode, low.Rdev)
}

// keepNodes makes l the last look.
func (l *look) keepNodes() {
	if l.met < len(l.t.seen) {
		maps.DeleteFunc(l.t.seen, func(_ string, n *node) bool { return n.look != l.t.looks })
	}
	maps.Copy(l.t.seen, l.changed)
}

func isDirectory(kind byte) bool { return kind == listing.Directory || kind == listing.Opaque }

func isOpaque(path string) bool {
	var value [len(listing.OpaqueValue)]byte
	n, err := syscall.Getxattr(path, listing.OpaqueName, value[:])
	return err == nil && string(value[:n]) == listing.OpaqueValue
}

// listChanges returns the differences, sorted by path.
func (l *look) listChanges() []change {
	var found []change
	for path, n := range l.changed {
		if kind := l.changeKind(path, n); kind != "" {
			found = append(found, change{kind, typeOf(*n, kind), path, n.size})
		}
		if n.kind == listing.Opaque && n.lowerKind != 0 || l.t.deep && n.kind != 'd' && n.lowerKind == 'd' {
			found = append(found, l.listHidden(path)...)
		}
	}
	if l.met < len(l.t.seen) {
		for path, old := range l.t.seen {
			// A path that is gone from the upper layer did not exist in the lower layer,
			// or there would be a whiteout, unless the directory around it was replaced.
			if old.look != l.t.looks && old.kind != listing.Whiteout {
				found = append(found, change{"removed", typeOf(*old, ""), path, 0})
			}
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].path < found[j].path })
	return found
}

// changeKind returns how one path of the upper layer that differs from the last look has changed, or "".
func (l *look) changeKind(path string, n *node) string {
	old := l.t.seen[path]
	was := old != nil && old.kind != listing.Whiteout || old == nil && n.lowerKind != 0
	switch {
	case n.kind == listing.Whiteout:
		if was {
			return "removed"
		}
		return ""
	case !was:
		return "added"
	case isDirectory(n.kind) && (old == nil && n.lowerKind == listing.Directory || old != nil && isDirectory(old.kind)):
		return "" // what is in it has changed
	}
	return "changed"
}

// listHidden lists what an opaque directory hides of the lower layer.
func (l *look) listHidden(dir string) []change {
	if old := l.t.seen[dir]; old != nil && (old.kind == listing.Opaque || l.t.deep && old.kind != listing.Directory) {
		return nil // reported when it became opaque, or was removed
	}
	var found []change
	root := filepath.Join(l.t.lower, dir)
	filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return nil
		}
		rel := filepath.Join(dir, path[len(root)+1:])
		if l.changed[rel] == nil && l.t.seen[rel] == nil { // else it is reported by itself
			found = append(found, change{"removed", typeOfMode(d.Type()), rel, 0})
		}
		return nil
	})
	return found
}

func typeOf(n node, kind string) string {
	k := n.kind
	if kind == "removed" {
		k = n.lowerKind
	}
	switch k {
	case 'f', 0:
		return "file"
	case 'd', 'D':
		return "dir"
	case 'l':
		return "symlink"
	}
	return "other"
}

func typeOfMode(m os.FileMode) string {
	switch {
	case m.IsRegular():
		return "file"
	case m.IsDir():
		return "dir"
	case m&os.ModeSymlink != 0:
		return "symlink"
	}
	return "other"
}
