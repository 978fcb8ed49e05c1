// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// pack writes the directory dir to a tar.gz at path. Its bytes depend only on names,
// modes and contents: entries are sorted, have no time and belong to root. A second name
// of a file is a hard link to the first, so that the sentry, which is the same file as
// runsc, takes no space and stays one file when it is unpacked.
func pack(dir, path string) (err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	zipped := gzip.NewWriter(file)
	archive := tar.NewWriter(zipped)
	links := map[[2]uint64]string{}
	// WalkDir goes in the order of names.
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		return add(archive, dir, path, links)
	})
	return errors.Join(err, archive.Close(), zipped.Close())
}

func add(archive *tar.Writer, dir, path string, links map[[2]uint64]string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	name, err := filepath.Rel(dir, path)
	if err != nil {
		return err
	}
	header := &tar.Header{Name: filepath.ToSlash(name), Mode: 0o755, Format: tar.FormatUSTAR}
	switch {
	case info.IsDir():
		header.Typeflag, header.Name = tar.TypeDir, header.Name+"/"
		return archive.WriteHeader(header)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%q is neither a file nor a directory", name)
	case info.Mode().Perm()&0o111 == 0:
		header.Mode = 0o644
	}
	id := identity(info)
	if first, ok := links[id]; ok {
		header.Typeflag, header.Linkname = tar.TypeLink, first
		return archive.WriteHeader(header)
	}
	links[id] = header.Name
	header.Typeflag, header.Size = tar.TypeReg, info.Size()
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(archive, file)
	return err
}

func identity(info fs.FileInfo) [2]uint64 {
	s := info.Sys().(*syscall.Stat_t)
	return [2]uint64{s.Dev, s.Ino}
}
