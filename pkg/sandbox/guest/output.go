// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
)

// glob lists the workspace's paths that match a pattern. os.Root keeps every
// lookup inside the workspace, even through symlinks.
func (s *server) glob(args string, w *bufio.Writer) error {
	limit, rest, err := cutNumber(args)
	if err != nil {
		return err
	}
	pattern, err := strconv.Unquote(rest)
	if err != nil {
		return fmt.Errorf("invalid pattern %s", rest)
	}
	root, err := os.OpenRoot(s.root)
	if err != nil {
		return err
	}
	defer root.Close()
	names, err := match(root, pattern)
	if err != nil {
		return err
	}
	for i, name := range names {
		if int64(i) >= limit {
			break
		}
		info, err := lstat(root, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "match %s %d %q\n", typeOfMode(info.Mode()), info.Size(), name)
	}
	fmt.Fprintf(w, "ok %d\n", max(0, int64(len(names))-limit))
	return nil
}

// match is fs.Glob, except that it also finds a symlink whose name has no
// wildcards, so that the host can report why it is not copied.
func match(root *os.Root, pattern string) ([]string, error) {
	if _, err := root.Lstat(pattern); err == nil {
		return []string{pattern}, nil
	}
	return fs.Glob(root.FS(), pattern)
}

// lstat returns the file info of name, or of the first symlink in its path: a name
// below a link is not a file of the workspace, wherever the link leads. os.Root is
// not enough, because it relies on the kernel for the resolution, and gVisor's
// openat2 follows an absolute link anyway.
func lstat(root *os.Root, name string) (fs.FileInfo, error) {
	for i, c := range name {
		if c != '/' {
			continue
		}
		info, err := root.Lstat(name[:i])
		if err != nil || info.Mode()&fs.ModeSymlink != 0 {
			return info, err
		}
	}
	return root.Lstat(name)
}

// read sends one regular file of at most MAX bytes.
func (s *server) read(args string, w *bufio.Writer) error {
	limit, rest, err := cutNumber(args)
	if err != nil {
		return err
	}
	name, err := strconv.Unquote(rest)
	if err != nil {
		return fmt.Errorf("invalid path %s", rest)
	}
	root, err := os.OpenRoot(s.root)
	if err != nil {
		return err
	}
	defer root.Close()
	info, err := lstat(root, name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return fmt.Errorf("not a regular file of at most %d bytes", limit)
	}
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return send(f, info.Size(), w)
}

func send(f *os.File, size int64, w *bufio.Writer) error {
	fmt.Fprintf(w, "data %d\n", size)
	// No other process is left that could shorten the file; if it is shorter
	// anyway, the announced length is wrong and the host must not read on.
	_, err := io.CopyN(w, f, size)
	if err != nil {
		panic("guest: internal error: file shorter than its size")
	}
	return nil
}
