// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/fumehood/fumehood/internal/kit/elf"
	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// A sameIndex finds the programs of the root with a given content, so that a copy of
// curl is recognized as curl. It knows the programs in directories whose names say that
// they hold programs and, wherever they are, dynamic loaders and C libraries, which run
// any program. It reads a program only if its size matches.
type sameIndex struct {
	roots readOnlyRoot
	once  sync.Once
	sizes map[uint64][]sameFile
	count int
}

type sameFile struct {
	inside, host string
	inode        uint64 // with the host's device: identifies one content under many names
	device       uint64
}

// Limits on the search.
const (
	sameFiles = 20_000
	sameNames = 32 // busybox often has hundreds of links, and its own name is among the first
	sameDepth = 4  // of directories below a bind
)

// holders are the names of directories that hold programs.
var holders = map[string]bool{"bin": true, "sbin": true, "libexec": true, "games": true, "git-core": true}

// loaders are the file names of dynamic loaders and of the C library, which in musl is
// the loader: ld-linux-x86-64.so.2, ld-2.31.so, ld.so.1, ld-musl-x86_64.so.1, libc.so.6.
var loaders = pattern.New(`^(ld[\w.-]*|libc([.-][\w.-]*)?)\.so(\.\d+)*$`)

// common are programs whose loader counts as a loader whatever its name is.
var common = []string{"/bin/bash", "/bin/sh", "/usr/bin/env"}

// skipped are the names of directories that hold no programs and many other files.
var skipped = map[string]bool{"share": true, "include": true, "src": true, "doc": true, "locale": true}

func (x *sameIndex) namesOfContent(size uint64, digest string) []string {
	x.once.Do(x.buildIndex)
	var names []string
	same := map[[2]uint64]bool{} // hard links are read once
	for _, f := range x.sizes[size] {
		file := [2]uint64{f.device, f.inode}
		if _, known := same[file]; !known {
			same[file] = x.fileDigest(f.host) == digest
		}
		if same[file] && len(names) < sameNames {
			names = append(names, f.inside)
		}
	}
	slices.Sort(names)
	return names
}

// maxLinked is how many names a program of the root may have and still count as one
// tool: perl has two, unzip and git some.
const maxLinked = 8

// hardLinks returns the hard links of a program of the root if it has more than maxLinked,
// as busybox does in some images. When such a program starts itself again through
// /proc/self/exe, the kernel does not know the name it was started under.
func (x *sameIndex) hardLinks(inside string) []string {
	info, err := x.roots.files.Lstat(x.hostPath(inside))
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Nlink <= maxLinked {
		return nil
	}
	x.once.Do(x.buildIndex)
	var names []string
	own := fileAt("", "", info)
	for _, f := range x.sizes[uint64(info.Size())] {
		if f.device == own.device && f.inode == own.inode && len(names) < sameNames {
			names = append(names, f.inside)
		}
	}
	slices.Sort(names)
	return names
}

// fileDigest returns the digest of a program of the root, or "".
func (x *sameIndex) fileDigest(host string) string {
	f, err := x.roots.files.Open(host)
	if err != nil {
		return ""
	}
	defer f.Close()
	sum, err := digestOf(f)
	if err != nil {
		return ""
	}
	return sum
}

// hostPath returns the host path of a path of the root, or "".
func (x *sameIndex) hostPath(inside string) string {
	for _, b := range x.roots.binds {
		if isWithinDir(inside, b.Target) {
			return filepath.Join(b.Source, inside[len(b.Target):])
		}
	}
	return ""
}

func (x *sameIndex) buildIndex() {
	x.sizes = map[uint64][]sameFile{}
	for _, b := range x.roots.binds {
		x.walkDir(b.Source, b.Target, holders[path.Base(b.Target)], 0)
	}
	for _, name := range common {
		x.addLoaderOf(name)
	}
}

// addLoaderOf records the loader that the kernel starts with a program of the root.
func (x *sameIndex) addLoaderOf(name string) {
	_, host, err := x.roots.resolveBinary(name)
	if err != nil {
		return
	}
	f, err := x.roots.files.Open(host)
	if err != nil {
		return
	}
	defer f.Close()
	program, ok := f.(io.ReaderAt)
	if !ok {
		return
	}
	inside, host, err := x.roots.resolvePath(elf.Read(program).Interpreter)
	if err != nil {
		return
	}
	if info, err := x.roots.files.Lstat(host); err == nil && info.Mode().IsRegular() &&
		!slices.Contains(x.sizes[uint64(info.Size())], fileAt(inside, host, info)) {
		x.addFile(inside, host, info)
	}
}

func (x *sameIndex) addFile(inside, host string, info os.FileInfo) {
	size := uint64(info.Size())
	x.sizes[size] = append(x.sizes[size], fileAt(inside, host, info))
}

// walkDir records the programs of a directory, if it holds any, and of those below it.
func (x *sameIndex) walkDir(host, inside string, holds bool, depth int) {
	list, err := x.roots.files.ReadDir(host)
	if err != nil {
		return
	}
	for _, d := range list {
		h, i := filepath.Join(host, d.Name()), path.Join(inside, d.Name())
		switch {
		case d.IsDir() && depth < sameDepth && !skipped[d.Name()]:
			x.walkDir(h, i, holds || holders[d.Name()], depth+1)
		case d.Type().IsRegular() && loaders.MatchString(d.Name()):
			if info, err := d.Info(); err == nil { // a copy can be made executable
				x.addFile(i, h, info)
			}
		case holds && d.Type().IsRegular() && x.count < sameFiles:
			if info, err := d.Info(); err == nil && info.Mode().Perm()&0o111 != 0 {
				x.addFile(i, h, info)
				x.count++
			}
		}
	}
}

func fileAt(inside, host string, info os.FileInfo) sameFile {
	f := sameFile{inside: inside, host: host}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		f.device, f.inode = uint64(st.Dev), st.Ino
	}
	return f
}
