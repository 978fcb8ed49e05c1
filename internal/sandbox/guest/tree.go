// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"syscall"
)

// An upperTree reports what changed in an overlay from one look to the next. It reads only
// the upper layer, so the cost depends on what was written and not on the size of the
// tree.
type upperTree struct {
	upper, lower string
	seen         map[string]node // the content of the upper layer at the last look
	found        []change        // by the last look
	marked       map[string]node // what the looks before a mark have found
	deep         bool            // list what is below a directory that was removed, too
}

type node struct {
	kind      byte // 'f' file, 'd' directory, 'l' symlink, 'o' other, 'w' whiteout, 'D' opaque directory
	size      int64
	mtime     int64
	ctime     int64
	ino       uint64
	copiedUp  bool // the lower layer has the path too
	lowerKind byte
}

type change struct {
	kind, typ, path string
	size            int64
}

func newTree(upper, lower string) *upperTree {
	return &upperTree{upper: upper, lower: lower, seen: map[string]node{}}
}

func (t *upperTree) writeChanges(limit int, w *bufio.Writer) error {
	if t == nil {
		return errors.New("no workspace")
	}
	found, omitted := t.scanChanges()
	for i, c := range found {
		if i >= limit {
			omitted += len(found) - limit
			break
		}
		fmt.Fprintf(w, "change %s %s %d %q\n", c.kind, c.typ, c.size, c.path)
	}
	fmt.Fprintf(w, "ok %d\n", omitted)
	return nil
}

// markSetup makes total leave out what the last look has found, as it is now.
func (t *upperTree) markSetup() error {
	if t == nil {
		return errors.New("no workspace")
	}
	if t.marked == nil {
		t.marked = map[string]node{}
	}
	for _, c := range t.found {
		if n, there := t.seen[c.path]; there {
			t.marked[c.path] = n
		} else {
			delete(t.marked, c.path)
		}
	}
	return nil
}

// writeTotalChanges is changes since the mark. It does not count as a look.
func (t *upperTree) writeTotalChanges(limit int, w *bufio.Writer) error {
	if t == nil {
		return errors.New("no workspace")
	}
	return (&upperTree{upper: t.upper, lower: t.lower, seen: t.marked, deep: true}).writeChanges(limit, w)
}

// scanChanges walks the upper layer and compares it with the last walk. It returns the
// differences sorted by path, and the number of places that it could not read: a
// command can make a path longer than the kernel accepts, and this must not stop the
// run.
func (t *upperTree) scanChanges() ([]change, int) {
	now, unseen := map[string]node{}, 0
	_ = filepath.WalkDir(t.upper, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			unseen++
			return fs.SkipDir
		}
		if path == t.upper {
			return nil
		}
		rel := path[len(t.upper)+1:]
		n, err := t.statNode(path, rel)
		if err != nil {
			unseen++
			return nil
		}
		now[rel] = n
		return nil
	})
	found := t.compareNodes(now)
	t.seen, t.found = now, found
	sort.Slice(found, func(i, j int) bool { return found[i].path < found[j].path })
	return found, unseen
}

func (t *upperTree) statNode(path, rel string) (node, error) {
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil {
		return node{}, err
	}
	n := node{kind: kindOf(st), size: st.Size, mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano(), ino: st.Ino}
	if n.kind == 'd' {
		n.size = 0
		if isOpaque(path) {
			n.kind = 'D'
		}
	}
	var low syscall.Stat_t
	if old, known := t.seen[rel]; known { // the lower layer does not change
		n.copiedUp, n.lowerKind = old.copiedUp, old.lowerKind
	} else if syscall.Lstat(filepath.Join(t.lower, rel), &low) == nil {
		n.copiedUp, n.lowerKind = true, kindOf(low)
	}
	return n, nil
}

func kindOf(st syscall.Stat_t) byte {
	switch st.Mode & syscall.S_IFMT {
	case syscall.S_IFREG:
		return 'f'
	case syscall.S_IFDIR:
		return 'd'
	case syscall.S_IFLNK:
		return 'l'
	case syscall.S_IFCHR:
		if st.Rdev == 0 {
			return 'w'
		}
	}
	return 'o'
}

func isOpaque(path string) bool {
	var value [1]byte
	n, err := syscall.Getxattr(path, "trusted.overlay.opaque", value[:])
	return err == nil && n == 1 && value[0] == 'y'
}

func (t *upperTree) compareNodes(now map[string]node) []change {
	var found []change
	for path, n := range now {
		if kind := t.changeKind(path, n); kind != "" {
			found = append(found, change{kind, typeOf(n, kind), path, n.size})
		}
		if n.kind == 'D' && n.copiedUp || t.deep && n.kind != 'd' && n.lowerKind == 'd' {
			found = append(found, t.listHidden(path, now)...)
		}
	}
	for path, old := range t.seen {
		_, still := now[path]
		// A path that is gone from the upper layer did not exist in the lower layer,
		// or there would be a whiteout, unless the directory around it was replaced.
		if !still && old.kind != 'w' {
			found = append(found, change{"removed", typeOf(old, ""), path, 0})
		}
	}
	return found
}

// changeKind returns how one path of the upper layer has changed since the last look, or
// "".
func (t *upperTree) changeKind(path string, n node) string {
	old, known := t.seen[path]
	was := known && old.kind != 'w' || !known && n.copiedUp
	switch {
	case n.kind == 'w':
		if was {
			return "removed"
		}
	case !was:
		return "added"
	case n.kind == 'd' || n.kind == 'D':
		if !known && n.lowerKind != 'd' {
			return "changed"
		}
	case !known, old.mtime != n.mtime, old.ctime != n.ctime, old.size != n.size, old.ino != n.ino, old.kind != n.kind:
		return "changed"
	}
	return ""
}

// listHidden lists what an opaque directory hides of the lower layer.
func (t *upperTree) listHidden(dir string, now map[string]node) []change {
	if k := t.seen[dir].kind; k == 'D' || t.deep && k != 0 && k != 'd' {
		return nil // reported when it became opaque, or was removed
	}
	var found []change
	root := filepath.Join(t.lower, dir)
	filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return nil
		}
		rel := filepath.Join(dir, path[len(root)+1:])
		_, stands := now[rel]
		_, known := t.seen[rel] // if known, compare reports it
		if !stands && !known {
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
