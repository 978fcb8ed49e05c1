// SPDX-License-Identifier: Apache-2.0

package results

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// The limits of a workspace whose digest is taken.
const (
	MaxFiles = 100_000
	MaxBytes = 1 << 30
)

// DigestWorkspace returns a digest of everything in dir: the path, the type, the mode, the owner and
// the content of each file, and the target of each symbolic link, including those of .git.
// Modification times are not part of it.
//
// It is an error if there are more than MaxFiles files or MaxBytes bytes, if there is a file
// that is not a regular file, a directory or a link, or if a file changes while it is read.
func DigestWorkspace(ctx context.Context, dir string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	w := walk{ctx: ctx, root: root, sum: sha256.New(), bytes: MaxBytes, files: MaxFiles}
	if err := fs.WalkDir(root.FS(), ".", w.visitPath); err != nil {
		return "", err
	}
	return hex.EncodeToString(w.sum.Sum(nil)), nil
}

type walk struct {
	ctx   context.Context
	root  *os.Root
	sum   hash.Hash
	bytes int64 // that are left
	files int
}

func (w *walk) visitPath(path string, d fs.DirEntry, err error) error {
	if err == nil {
		err = w.ctx.Err()
	}
	if err != nil {
		return err
	}
	if w.files--; w.files < 0 {
		return fmt.Errorf("more than %d files", MaxFiles)
	}
	info, err := w.root.Lstat(path)
	if err != nil {
		return err
	}
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return fmt.Errorf("file %q has no owner", path)
	}
	fmt.Fprintf(w.sum, "%q %s %d %d\n", path, info.Mode(), stat.Uid, stat.Gid)
	switch {
	case info.IsDir():
		return nil
	case info.Mode().IsRegular():
		return w.addContent(path, info)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := w.root.Readlink(path)
		fmt.Fprintf(w.sum, "%q\n", target)
		return err
	}
	return fmt.Errorf("file %q is not a regular file", path)
}

// addContent adds the digest of the file that info was about.
func (w *walk) addContent(path string, info fs.FileInfo) error {
	f, err := w.root.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	opened, err := f.Stat()
	if err != nil {
		return err
	}
	if w.bytes -= info.Size(); w.bytes < 0 {
		return fmt.Errorf("more than %d bytes", int64(MaxBytes))
	}
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(f, info.Size()+1))
	switch {
	case err != nil:
		return err
	case n != info.Size() || !os.SameFile(info, opened):
		return fmt.Errorf("file %q changed while it was read", path)
	}
	fmt.Fprintf(w.sum, "%d %x\n", n, sum.Sum(nil))
	return nil
}
