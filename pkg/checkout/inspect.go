// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/fumehood/fumehood/pkg/internal/text"
)

// An Existing is a checkout that somebody else made and that we found fit.
type Existing struct {
	Dir  string
	HEAD string // the commit it is at, one of those that were wanted
	Ref  string // the branch that HEAD is on; "" when it is detached. Untrusted
	// Tracked counts the files and links of HEAD's tree. Changed and Missing are those
	// of them that the work tree has otherwise or not at all; what git converts (line
	// ends, Git LFS, other filters) counts as changed. Untracked are files that HEAD
	// does not have, ignored ones included.
	Tracked, Changed, Missing, Untracked int
	Examples                             []string // untrusted: the first paths that differ
	// Partial says why the counts are not of the whole tree, or "".
	Partial string
}

// Bounds of an inspection. What is not compared makes the result Partial; what is
// not searched for credentials refuses it.
const (
	maxWalked   = 2_000_000
	maxCompared = 4 << 30
	maxExamples = 10
)

// Inspect checks a work tree that actions/checkout made, without running git in it:
// neither its config nor its hooks are read by any program. Its HEAD must be one of
// want (full ids), and neither it nor a repository within it may hold a credential:
// in a config, in a file that a config includes, in a store of passwords, in an
// address. Files that other actions are known to leave credentials in count too.
//
// A checkout that is refused is a StopError (CodeCredentials, CodeHead or
// CodeNoCheckout). getenv gives RUNNER_TEMP and HOME. The objects are read from a
// store beside it, in RUNNER_TEMP, which borrows them.
//
// It does not find a credential in files of another kind or name.
func Inspect(ctx context.Context, dir string, want []string, getenv func(string) string) (Existing, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Existing{}, notCheckout("its path is unknown", err)
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return Existing{}, notCheckout("it cannot be opened", err)
	}
	defer root.Close()
	info, err := root.Lstat(".git")
	switch {
	case err != nil:
		return Existing{}, notCheckout("it has no .git", nil)
	case !info.IsDir():
		return Existing{}, notCheckout("its .git is not a folder", nil)
	}
	if _, err := root.Lstat(".git/reftable"); err == nil {
		return Existing{}, notCheckout("it keeps its refs in a reftable", nil)
	}
	s := &search{root: root, dir: abs, getenv: getenv}
	if err := s.gitFolder(".git"); err != nil {
		return Existing{}, err
	}
	e := Existing{Dir: abs}
	if e.HEAD, e.Ref, err = s.head(".git"); err != nil {
		return Existing{}, err
	}
	if !slices.Contains(want, e.HEAD) {
		return Existing{}, stop(CodeHead, headHint, nil, "the checkout is at %s, not at %s", e.HEAD, strings.Join(want, " or "))
	}
	c := comparison{search: s, existing: &e, tracked: map[string]bool{}}
	err = c.tree(ctx)
	if err == nil {
		err = c.others(ctx)
	}
	if err != nil {
		return Existing{}, err
	}
	return e, nil
}

// Describe returns how the checkout differs from its commit, one line each, fit to
// be shown; none when it does not.
func (e Existing) Describe() []string {
	var lines []string
	if e.Partial != "" {
		lines = append(lines, "the checkout was not wholly compared with its commit: "+text.Inline(e.Partial, 200))
	}
	if e.Changed+e.Missing+e.Untracked > 0 {
		var names []string
		for _, name := range e.Examples {
			names = append(names, text.Inline(name, 80))
		}
		lines = append(lines, fmt.Sprintf("the checkout differs from its commit in %d changed, %d missing and %d further files: %s",
			e.Changed, e.Missing, e.Untracked, strings.Join(names, ", ")))
	}
	return lines
}

const headHint = "give the checkout step the pull request's own commit\n" +
	"  - uses: actions/checkout@…\n" +
	"    with:\n" +
	"      ref: ${{ github.event.pull_request.head.sha }}"

// A comparison counts how a work tree differs from HEAD's tree.
type comparison struct {
	*search
	existing *Existing
	tracked  map[string]bool
	unread   bool // nothing is known about the tree
	hashed   int64
}

// tree compares every tracked file. A tree that cannot be read makes it partial:
// the checkout may be one without all objects.
func (c *comparison) tree(ctx context.Context) error {
	nodes, err := c.nodes(ctx)
	if ctx.Err() != nil {
		return ended(ctx, err)
	}
	if err != nil {
		c.unread = true
		c.partial("the tree of HEAD cannot be read: " + cut(err.Error()))
		return nil
	}
	for _, n := range nodes {
		if ctx.Err() != nil {
			return ended(ctx, ctx.Err())
		}
		c.tracked[n.path] = true
		if n.kind == file || n.kind == link {
			c.existing.Tracked++
			c.compare(n)
		}
	}
	return nil
}

func (c *comparison) partial(why string) {
	if c.existing.Partial == "" {
		c.existing.Partial = why
	}
}

// nodes reads HEAD's tree through a repository of our own that borrows the objects.
func (c *comparison) nodes(ctx context.Context) ([]node, error) {
	g, err := findGit(ctx)
	if err != nil {
		return nil, err
	}
	bare, err := os.MkdirTemp(c.getenv("RUNNER_TEMP"), "inspect-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(bare)
	if err := borrow(bare, filepath.Join(c.dir, ".git/objects"), len(c.existing.HEAD)); err != nil {
		return nil, err
	}
	o := openObjects(ctx, g, bare)
	defer o.close()
	tree, err := o.commit(ctx, c.existing.HEAD)
	if err != nil {
		return nil, err
	}
	// No name is refused here: it is looked at, not written.
	return o.walk(ctx, tree, Limits{Files: maxWalked, Path: 4096, Name: 255}.withDefaults())
}

func borrow(bare, objects string, digits int) error {
	if strings.ContainsAny(objects, "\n\"") {
		return errors.New("the path of the checkout cannot be written in a line")
	}
	if err := writeBare(bare, digits); err != nil {
		return err
	}
	info := filepath.Join(bare, "objects/info")
	if err := os.Mkdir(info, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(info, "alternates"), []byte(objects+"\n"), 0o600)
}

func (c *comparison) compare(n node) {
	info, err := c.root.Lstat(n.path)
	switch {
	case err != nil:
		c.existing.Missing++
		c.example(n.path)
	case !c.same(n, info):
		c.existing.Changed++
		c.example(n.path)
	}
}

func (c *comparison) example(path string) {
	if len(c.existing.Examples) < maxExamples {
		c.existing.Examples = append(c.existing.Examples, path)
	}
}

// same hashes what lies at the node's path. What is not hashed any more, because of
// the bound, is taken for the same, and the result is partial.
func (c *comparison) same(n node, info fs.FileInfo) bool {
	var content io.Reader
	switch {
	case n.kind == link && info.Mode()&fs.ModeSymlink != 0:
		target, err := c.root.Readlink(n.path)
		if err != nil {
			return false
		}
		content = strings.NewReader(target)
	case n.kind == file && info.Mode().IsRegular() && (info.Mode()&0o100 != 0) == n.exec:
		f, err := c.root.OpenFile(n.path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
		if err != nil {
			return false
		}
		defer f.Close()
		content = f
	default:
		return false
	}
	if c.hashed += info.Size(); c.hashed > maxCompared {
		c.partial(fmt.Sprintf("only the first %d bytes were compared", int64(maxCompared)))
		return true
	}
	sum := newHash(len(n.id))
	fmt.Fprintf(sum, "blob %d\x00", info.Size())
	if size, err := io.Copy(sum, io.LimitReader(content, info.Size()+1)); err != nil || size != info.Size() {
		return false
	}
	id, _ := hex.DecodeString(n.id)
	return bytes.Equal(sum.Sum(nil), id)
}

// others walks the work tree for files that HEAD does not have and for further
// repositories, whose configs count as much as the first one's.
func (c *comparison) others(ctx context.Context) error {
	walked := 0
	return fs.WalkDir(c.root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if walked++; walked > maxWalked {
			return stop(CodeLimit, "", nil, "the checkout has more than %d files and folders", maxWalked)
		}
		switch {
		case ctx.Err() != nil:
			return ended(ctx, ctx.Err())
		case err != nil:
			return doubt(path, err)
		case path == ".git":
			return fs.SkipDir
		case d.IsDir() && strings.EqualFold(d.Name(), ".git"):
			if err := c.gitFolder(path); err != nil {
				return err
			}
			return fs.SkipDir
		case d.IsDir() || c.tracked[path]:
			return nil
		case leftBehind(path):
			return stop(CodeCredentials, "let that action write elsewhere, or run fumehood before it", nil, "the checkout holds a credential that commands could read: %s", cut(path))
		}
		if !c.unread {
			c.existing.Untracked++
			c.example(path)
		}
		return nil
	})
}
