// SPDX-License-Identifier: Apache-2.0

// Package tree reads the files in an image file of package image, without mounting it.
//
// Paths are those of package io/fs: relative to the image's root, without "..". Names need not
// be UTF-8, so that each file that is listed can be read. Symbolic
// links are followed as a process sees them whose root is the image: an absolute target
// begins at the image's root, and ".." does not leave it. Nothing of the host is opened.
//
// The image is mapped into memory. It must be verified before, and must not be truncated
// while it is open, which would end the process: use it only for files of a store that no
// other user can write to.
package tree

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"gvisor.dev/gvisor/pkg/erofs"
)

// An FS is the files of one image. It implements fs.StatFS, fs.ReadDirFS, fs.ReadFileFS and
// fs.ReadLinkFS, and is safe for concurrent use until Close.
type FS struct {
	image  *erofs.Image
	device uint64
}

// devices counts the images that this process has opened.
var devices atomic.Uint64

// Open reads the image in file, which then belongs to the FS, also if there is an error.
func Open(file *os.File) (*FS, error) {
	image, err := erofs.OpenImage(file)
	if err != nil {
		file.Close()
		return nil, &fs.PathError{Op: "open", Path: file.Name(), Err: err}
	}
	return &FS{image, 1<<63 | devices.Add(1)}, nil
}

// Close ends the use of f and of everything that it returned.
func (f *FS) Close() { f.image.Close() }

const (
	maxLinks = 40       // as Linux's
	maxFile  = 64 << 20 // bytes that ReadFile returns
)

// Resolve returns the path of the file that name leads to, without links in it.
func (f *FS) Resolve(name string) (string, error) {
	at, _, err := f.findInode("resolve", name, true)
	return at, err
}

// findInode finds the inode of name; with follow, the last part may be a link, too.
func (f *FS) findInode(op, name string, follow bool) (at string, inode erofs.Inode, err error) {
	fail := func(err error) (string, erofs.Inode, error) {
		return "", erofs.Inode{}, &fs.PathError{Op: op, Path: name, Err: err}
	}
	if !fs.ValidPath(strings.ToValidUTF8(name, "?")) {
		return fail(fs.ErrInvalid)
	}
	root, err := f.image.Inode(f.image.RootNid())
	if err != nil {
		return fail(err)
	}
	names, inodes := []string{}, []erofs.Inode{root}
	rest := strings.Split(name, "/")
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		if part == "" || part == "." {
			continue
		}
		if part == ".." {
			names, inodes = names[:max(0, len(names)-1)], inodes[:max(1, len(inodes)-1)]
			continue
		}
		next, err := f.lookupChild(&inodes[len(inodes)-1], part)
		if err != nil {
			return fail(err)
		}
		if next.IsSymlink() && (follow || len(rest) > 0) {
			target, err := next.Readlink()
			if links++; err != nil || links > maxLinks {
				return fail(errors.Join(err, syscall.ELOOP))
			}
			if rest = append(strings.Split(target, "/"), rest...); path.IsAbs(target) {
				names, inodes = names[:0], inodes[:1]
			}
			continue
		}
		names, inodes = append(names, part), append(inodes, next)
	}
	return path.Join(append([]string{"."}, names...)...), inodes[len(inodes)-1], nil
}

func (f *FS) lookupChild(dir *erofs.Inode, name string) (erofs.Inode, error) {
	if !dir.IsDir() {
		return erofs.Inode{}, fs.ErrNotExist
	}
	nid, err := dir.Lookup(name)
	if err != nil {
		return erofs.Inode{}, fs.ErrNotExist
	}
	return f.image.Inode(nid)
}

// Open implements fs.FS. A regular file is also an io.ReaderAt.
func (f *FS) Open(name string) (fs.File, error) {
	_, inode, err := f.findInode("open", name, true)
	if err != nil {
		return nil, err
	}
	found := f.fileInfo(path.Base(name), &inode)
	if inode.IsDir() {
		list, err := f.listDir(&inode)
		return &directory{info: found, list: list}, err
	}
	data, err := regularContent(&inode)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &file{bytes.NewReader(data), found}, nil
}

// regularContent returns that of a regular file, without a copy.
func regularContent(inode *erofs.Inode) ([]byte, error) {
	if !inode.IsRegular() {
		return nil, fs.ErrInvalid
	}
	ranges, err := inode.DataRanges()
	return ranges[0].Bytes, err
}

// Stat implements fs.StatFS.
func (f *FS) Stat(name string) (fs.FileInfo, error) { return f.statPath("stat", name, true) }

// Lstat implements fs.ReadLinkFS.
func (f *FS) Lstat(name string) (fs.FileInfo, error) { return f.statPath("lstat", name, false) }

func (f *FS) statPath(op, name string, follow bool) (fs.FileInfo, error) {
	_, inode, err := f.findInode(op, name, follow)
	if err != nil {
		return nil, err
	}
	return f.fileInfo(path.Base(name), &inode), nil
}

// ReadLink implements fs.ReadLinkFS.
func (f *FS) ReadLink(name string) (string, error) {
	_, inode, err := f.findInode("readlink", name, false)
	if err != nil {
		return "", err
	}
	target, err := inode.Readlink()
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	return target, nil
}

// ReadFile implements fs.ReadFileFS. Files of more than 64 MiB are an error.
func (f *FS) ReadFile(name string) ([]byte, error) {
	_, inode, err := f.findInode("read", name, true)
	if err != nil {
		return nil, err
	}
	data, err := regularContent(&inode)
	if err == nil && len(data) > maxFile {
		err = syscall.EFBIG
	}
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return bytes.Clone(data), nil
}

// ReadDir implements fs.ReadDirFS.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	_, inode, err := f.findInode("readdir", name, true)
	if err != nil {
		return nil, err
	}
	return f.listDir(&inode)
}

func (f *FS) listDir(dir *erofs.Inode) (list []fs.DirEntry, err error) {
	err = dir.IterDirents(func(name string, _ uint8, nid uint64) error {
		if name == "." || name == ".." {
			return nil
		}
		inode, err := f.image.Inode(nid)
		if err == nil {
			list = append(list, fs.FileInfoToDirEntry(f.fileInfo(name, &inode)))
		}
		return err
	})
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, err
}

// An info describes a file. Its Sys is a *syscall.Stat_t with the inode, the number of names,
// the owner, and a device that no other image and no file of the host has.
type info struct {
	name string
	mode fs.FileMode
	size int64
	time time.Time
	stat syscall.Stat_t
}

func (f *FS) fileInfo(name string, inode *erofs.Inode) info {
	i := info{name: name, mode: fs.FileMode(inode.Mode() & 0o777), size: int64(inode.Size()),
		time: time.Unix(int64(inode.Mtime()), int64(inode.MtimeNsec()))}
	switch {
	case inode.IsDir():
		i.mode |= fs.ModeDir
	case inode.IsSymlink():
		i.mode |= fs.ModeSymlink
	case !inode.IsRegular():
		i.mode |= fs.ModeIrregular
	}
	if inode.Mode()&syscall.S_ISVTX != 0 {
		i.mode |= fs.ModeSticky
	}
	i.stat = syscall.Stat_t{Dev: f.device, Ino: inode.Nid(), Size: i.size, Uid: inode.UID(), Gid: inode.GID()}
	setLinks(&i.stat.Nlink, inode.Nlink())
	return i
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return i.time }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return &i.stat }

// A file is an open regular file.
type file struct {
	*bytes.Reader
	info info
}

func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *file) Close() error               { return nil }

// A directory is an open directory.
type directory struct {
	info info
	list []fs.DirEntry
}

func (d *directory) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *directory) Close() error               { return nil }
func (d *directory) Read([]byte) (int, error)   { return 0, fs.ErrInvalid }

// ReadDir implements fs.ReadDirFile.
func (d *directory) ReadDir(n int) ([]fs.DirEntry, error) {
	if n > 0 && len(d.list) == 0 {
		return nil, io.EOF
	}
	if n <= 0 || n > len(d.list) {
		n = len(d.list)
	}
	part := d.list[:n]
	d.list = d.list[n:]
	return part, nil
}

// setLinks sets a field whose type differs between processors.
func setLinks[T ~uint32 | ~uint64](field *T, n uint32) { *field = T(n) }
