// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"cmp"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"syscall"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/kit/listing"
	"github.com/fumehood/fumehood/internal/kit/sample"
)

// walkUpper is a lister that makes a system call for each file.
func walkUpper(upper string) lister {
	return func(each func(listing.Entry)) error {
		unread := ""
		return filepath.WalkDir(upper, func(path string, d fs.DirEntry, err error) error {
			var st syscall.Stat_t
			switch {
			case err != nil && path == unread:
				return fs.SkipDir
			case path == upper && err == nil:
				return nil
			case err != nil || syscall.Lstat(path, &st) != nil:
				unread = path
				each(listing.Entry{Kind: listing.Unread})
				return nil
			}
			e := listing.Entry{Kind: listing.KindOf(st.Mode, st.Rdev), Size: st.Size, Mtime: st.Mtim.Nano(),
				Ctime: st.Ctim.Nano(), Inode: st.Ino, Path: []byte(path[len(upper)+1:])}
			if e.Kind == listing.Directory && isOpaque(path) {
				e.Kind = listing.Opaque
			}
			each(e)
			return nil
		})
	}
}

// compareListers returns list, with an error if it has anything else than other.
func compareListers(list, other lister) lister {
	return func(each func(listing.Entry)) error {
		var got []listing.Entry
		if err := list(func(e listing.Entry) {
			e.Path = slices.Clone(e.Path)
			got = append(got, e)
		}); err != nil {
			return err
		}
		want, err := describeEntries(other)
		if err != nil {
			return err
		}
		have, err := describeEntries(func(each func(listing.Entry)) error {
			for _, e := range got {
				each(e)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if !slices.Equal(want, have) {
			return fmt.Errorf("the listing differs: missing %q, too much %q", without(want, have), without(have, want))
		}
		for _, e := range got {
			each(e)
		}
		return nil
	}
}

func describeEntries(list lister) (lines []string, err error) {
	err = list(func(e listing.Entry) {
		lines = append(lines, fmt.Sprintf("%q %c %d %d %d %d", e.Path, e.Kind, e.Size, e.Mtime, e.Ctime, e.Inode))
	})
	slices.Sort(lines)
	return lines, err
}

// without returns the first of lines that others lacks.
func without(lines, others []string) []string {
	lines = slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		_, found := slices.BinarySearch(others, line)
		return found
	})
	return lines[:min(len(lines), 5)]
}

// A fullTree compares two complete lists of files. It is what an upperTree must be equal to.
type fullTree struct {
	list  lister
	lower string
	seen  map[string]fullNode
	deep  bool
}

type fullNode struct {
	listing.Entry
	lower byte
}

// scan compares with the last look, and makes this one the last if keep is set.
func (t *fullTree) scan(keep bool) []change {
	now := map[string]fullNode{}
	_ = t.list(func(e listing.Entry) {
		n := fullNode{Entry: e}
		path := string(e.Path)
		n.Path = nil
		if isDirectory(n.Kind) {
			n.Size = 0
		}
		n.lower = lowerKind(t.lower, path)
		now[path] = n
	})
	var found []change
	for path, n := range now {
		if kind := t.compare(path, n); kind != "" {
			found = append(found, change{kind, typeOf(node{kind: n.Kind, lowerKind: n.lower}, kind), path, n.Size})
		}
		if n.Kind == 'D' && n.lower != 0 || t.deep && n.Kind != 'd' && n.lower == 'd' {
			found = append(found, t.hidden(path, now)...)
		}
	}
	for path, old := range t.seen {
		if _, still := now[path]; !still && old.Kind != 'w' {
			found = append(found, change{"removed", typeOf(node{kind: old.Kind}, ""), path, 0})
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].path < found[j].path })
	if keep {
		t.seen = now
	}
	return found
}

// lowerKind returns what the lower layer has at path, without following links, or 0.
func lowerKind(lower, path string) byte {
	var st syscall.Stat_t
	for at := lower; ; {
		name, rest, more := strings.Cut(path, "/")
		at = filepath.Join(at, name)
		if syscall.Lstat(at, &st) != nil {
			return 0
		}
		kind := listing.KindOf(st.Mode, st.Rdev)
		if !more {
			return kind
		}
		if kind != 'd' {
			return 0
		}
		path = rest
	}
}

func (t *fullTree) compare(path string, n fullNode) string {
	old, known := t.seen[path]
	was := known && old.Kind != 'w' || !known && n.lower != 0
	switch {
	case n.Kind == 'w' && was:
		return "removed"
	case n.Kind == 'w':
		return ""
	case !was:
		return "added"
	case isDirectory(n.Kind):
		if known && !isDirectory(old.Kind) || !known && n.lower != 'd' {
			return "changed"
		}
	case !known, old.Mtime != n.Mtime, old.Ctime != n.Ctime, old.Size != n.Size, old.Inode != n.Inode, old.Kind != n.Kind:
		return "changed"
	}
	return ""
}

func (t *fullTree) hidden(dir string, now map[string]fullNode) []change {
	if k := t.seen[dir].Kind; k == 'D' || t.deep && k != 0 && k != 'd' {
		return nil
	}
	var found []change
	root := filepath.Join(t.lower, dir)
	filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return nil
		}
		rel := filepath.Join(dir, path[len(root)+1:])
		_, stands := now[rel]
		_, known := t.seen[rel]
		if !stands && !known {
			found = append(found, change{"removed", typeOfMode(d.Type()), rel, 0})
		}
		return nil
	})
	return found
}

// An upperTree finds after any operations what a comparison of everything finds, in a look as in all
// since the mark, however many looks were between.
func TestLooksAreComparisonsOfEverything(t *testing.T) {
	random := sample.Random(t)
	for range 20 {
		upper, lower := t.TempDir(), t.TempDir()
		for range 30 {
			changeRandomly(random, lower, false)
		}
		tree := newTree(walkUpper(upper), lower)
		last, total := &fullTree{list: tree.list, lower: lower}, &fullTree{list: tree.list, lower: lower, deep: true}
		for look := range 25 {
			for range random.IntN(12) {
				changeRandomly(random, upper, true)
			}
			if random.IntN(4) == 0 {
				compareChanges(t, "total", totalOf(t, tree), total.scan(false))
			}
			found, _, err := tree.scanChanges()
			if err != nil {
				t.Fatal(err)
			}
			compareChanges(t, fmt.Sprint("look ", look), found, last.scan(true))
			if random.IntN(4) == 0 {
				if err := tree.markSetup(); err != nil {
					t.Fatal(err)
				}
				markFound(total, last, found)
			}
		}
		if t.Failed() {
			return
		}
	}
}

// markFound is markSetup of a fullTree.
func markFound(total, last *fullTree, found []change) {
	if total.seen == nil {
		total.seen = map[string]fullNode{}
	}
	for _, c := range found {
		delete(total.seen, c.path)
		if n, there := last.seen[c.path]; there {
			total.seen[c.path] = n
		}
	}
}

func compareChanges(t *testing.T, what string, got, want []change) {
	t.Helper()
	for _, list := range [][]change{got, want} {
		slices.SortFunc(list, func(a, b change) int { return cmp.Compare(a.path+a.kind, b.path+b.kind) })
	}
	if diff := gocmp.Diff(want, got, gocmp.AllowUnexported(change{})); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// changeRandomly does something to a file of one of a few names; in an upper layer also what an overlay does.
func changeRandomly(random *rand.Rand, root string, upper bool) {
	name := func() string {
		parts := []string{root}
		for range 1 + random.IntN(3) {
			parts = append(parts, string(rune('a'+random.IntN(3))))
		}
		return filepath.Join(parts...)
	}
	path := name()
	operations := []func(){
		func() { _ = os.WriteFile(path, make([]byte, random.IntN(3)), 0o644) },
		func() { _ = os.WriteFile(path, make([]byte, random.IntN(3)), 0o644) },
		func() { _ = os.Mkdir(path, 0o755) },
		func() { _ = os.MkdirAll(path, 0o755) },
		func() { _ = os.RemoveAll(path) },
		func() { _ = os.Symlink(string(rune('a'+random.IntN(3))), path) },
		func() { _ = os.Rename(path, name()) },
		func() { _ = os.Link(path, name()) },
		func() { _ = os.Chmod(path, os.FileMode(0o600+random.IntN(0o100))) },
	}
	if upper {
		operations = append(operations,
			func() {
				if os.RemoveAll(path) == nil {
					_ = unix.Mknod(path, unix.S_IFCHR, 0)
				}
			},
			func() { _ = unix.Setxattr(path, listing.OpaqueName, []byte(listing.OpaqueValue), 0) },
			func() { _ = unix.Mknod(path, unix.S_IFSOCK|0o600, 0) }) // opening a FIFO would wait
	}
	operations[random.IntN(len(operations))]()
}
