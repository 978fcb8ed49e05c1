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

// glob lists the workspace's paths that match a pattern. os.Root keeps every look
// inside the workspace, symlinks included.
func (s *server) glob(args string, w *bufio.Writer) error {
	most, rest, err := cutNumber(args)
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
	names, err := fs.Glob(root.FS(), pattern)
	if err != nil {
		return err
	}
	for i, name := range names {
		if int64(i) >= most {
			break
		}
		info, err := root.Lstat(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "match %s %d %q\n", typeOfMode(info.Mode()), info.Size(), name)
	}
	fmt.Fprintf(w, "ok %d\n", max(0, int64(len(names))-most))
	return nil
}

// read sends one regular file of at most MAX bytes.
func (s *server) read(args string, w *bufio.Writer) error {
	most, rest, err := cutNumber(args)
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
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return fmt.Errorf("not a regular file of at most %d bytes", most)
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
	sent, err := io.Copy(w, io.LimitReader(f, size))
	if err != nil || sent < size {
		// The length is promised: fill it, then the host's digest tells nothing false
		// because the file changed under our hands and no process is left to do so.
		_, err = io.CopyN(w, zeros{}, size-sent)
	}
	return err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
