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
	"strings"
	"syscall"
)

// A comparison counts how a work tree differs from HEAD's tree.
type comparison struct {
	*search
	existing *Existing
	tracked  map[string]bool
	unread   bool // nothing is known about the tree
	hashed   int64
}

// compareTree compares every tracked file. If a tree cannot be read, the result is
// partial: the checkout may lack some objects.
func (c *comparison) compareTree(ctx context.Context) error {
	nodes, err := c.readHeadNodes(ctx)
	if ctx.Err() != nil {
		return stopOrContextError(ctx, err)
	}
	if err != nil {
		c.unread = true
		c.markPartial("the tree of HEAD cannot be read: " + cutOutput(err.Error()))
		return nil
	}
	for _, n := range nodes {
		if ctx.Err() != nil {
			return stopOrContextError(ctx, ctx.Err())
		}
		c.tracked[n.path] = true
		switch n.kind {
		case file, link:
			c.existing.Tracked++
			c.compareNode(n)
		case submodule:
			if list, err := c.listFolder(n.path); err == nil && len(list) == 0 {
				c.existing.Left = append(c.existing.Left, Left{n.path, Submodule, "at " + n.id})
			}
		}
	}
	return nil
}

func (c *comparison) markPartial(why string) {
	if c.existing.Partial == "" {
		c.existing.Partial = why
	}
}

// readHeadNodes reads HEAD's tree through a new repository that borrows the objects.
func (c *comparison) readHeadNodes(ctx context.Context) ([]node, error) {
	g, err := findGit(ctx)
	if err != nil {
		return nil, err
	}
	bare, err := os.MkdirTemp(c.getenv("RUNNER_TEMP"), "inspect-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(bare)
	if err := writeBorrowingBare(bare, filepath.Join(c.dir, ".git/objects"), len(c.existing.HEAD)); err != nil {
		return nil, err
	}
	o := openObjects(ctx, g, bare)
	defer o.close()
	tree, err := o.readCommitTree(ctx, c.existing.HEAD)
	if err != nil {
		return nil, err
	}
	// No name is refused here: the entries are compared, not written.
	return o.walkTree(ctx, tree, Limits{Files: maxWalked, Path: 4096, Name: 255}.withDefaults())
}

func writeBorrowingBare(bare, objects string, digits int) error {
	if strings.ContainsAny(objects, "\n\"") {
		return errors.New("the path of the checkout contains a newline")
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

func (c *comparison) compareNode(n node) {
	info, err := c.root.Lstat(n.path)
	switch {
	case err != nil:
		c.existing.Missing++
		c.addExample(n.path)
	case !c.hasSameContent(n, info):
		c.existing.Changed++
		c.addExample(n.path)
	case n.kind == file && info.Size() <= maxPointer:
		if content, err := c.readRegularFile(n.path); err == nil && isPointer(content) {
			c.existing.Left = append(c.existing.Left, Left{n.path, LargeFile, ""})
		}
	}
}

func (c *comparison) addExample(path string) {
	if len(c.existing.Examples) < maxExamples {
		c.existing.Examples = append(c.existing.Examples, path)
	}
}

// hasSameContent hashes the file at the node's path. Beyond the bound, files are not hashed
// but assumed equal, and the result is partial.
func (c *comparison) hasSameContent(n node, info fs.FileInfo) bool {
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
		c.markPartial(fmt.Sprintf("only the first %d bytes were compared", int64(maxCompared)))
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

// findOtherFiles walks the work tree for files that HEAD does not have, and for nested
// repositories. Their configs are checked like the first one's.
func (c *comparison) findOtherFiles(ctx context.Context) error {
	walked := 0
	return fs.WalkDir(c.root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if walked++; walked > maxWalked {
			return newStopError(CodeLimit, "", nil, "the checkout has more than %d files and directories", maxWalked)
		}
		switch {
		case ctx.Err() != nil:
			return stopOrContextError(ctx, ctx.Err())
		case err != nil:
			return unreadableError(path, err)
		case path == ".git":
			return fs.SkipDir
		case d.IsDir() && strings.EqualFold(d.Name(), ".git"):
			if err := c.gitDir(path); err != nil {
				return err
			}
			return fs.SkipDir
		case d.IsDir() || c.tracked[path]:
			return nil
		case leftBehind(path):
			return newStopError(CodeCredentials, "make that action write elsewhere, or run fumehood before it", nil,
				"the checkout contains a credential that commands could read: %s", cutOutput(path))
		}
		if !c.unread {
			c.existing.Untracked++
			c.addExample(path)
		}
		return nil
	})
}
