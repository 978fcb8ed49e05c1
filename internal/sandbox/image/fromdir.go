// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// DirOptions say how FromDir reads a directory.
type DirOptions struct {
	Options
	// Owner returns the user and group that a file of uid and gid has in the image; nil
	// means the same.
	Owner func(uid, gid uint32) (uint32, uint32)
	// Private means that only this process uses the image: FromDir returns no digest, which
	// would take a fifth of the time.
	Private bool
}

// FromDir writes the tree below the directory dir to a new image at path, and returns the
// image's digest, as Writer.Close does. It follows no symbolic link, and a file or directory
// on which another is mounted is an error. Files with several names in the tree keep them as
// hard links.
//
// The image is not a snapshot of one moment, but each file in it is: a file or directory
// that changes while it is read is an error, as are files that cannot be read and devices,
// sockets and pipes. Errors are *proposal.StopErrors or ctx's.
func FromDir(ctx context.Context, path, dir string, o DirOptions) (digest string, err error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", unreadableError(dir, err)
	}
	root := os.NewFile(uintptr(fd), dir)
	defer root.Close()
	w, err := Create(path, o.Options)
	if err != nil {
		return "", err
	}
	defer w.Abort()
	if o.Owner == nil {
		o.Owner = func(uid, gid uint32) (uint32, uint32) { return uid, gid }
	}
	r := reader{ctx: ctx, w: w, owner: o.Owner, names: map[[2]uint64]string{}}
	if err := r.addDirectory(root, "."); err != nil {
		return "", err
	}
	w.private = o.Private
	digest, _, err = w.Close()
	return digest, err
}

// A reader adds a tree to w.
type reader struct {
	ctx   context.Context
	w     *Writer
	owner func(uid, gid uint32) (uint32, uint32)
	names map[[2]uint64]string // of files with several names, by device and inode
}

func (r *reader) addDirectory(dir *os.File, name string) error {
	var before, after unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &before); err != nil {
		return unreadableError(name, err)
	}
	if err := r.w.Add(r.entryFromStat(name, before), nil); err != nil {
		return err
	}
	list, err := dir.ReadDir(r.w.o.MaxFiles)
	switch {
	case err != nil && err != io.EOF:
		return unreadableError(name, err)
	case len(list) == r.w.o.MaxFiles:
		return tooLarge("files", int64(r.w.o.MaxFiles))
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range list {
		if err := r.addChild(dir, e, path.Join(name, e.Name())); err != nil {
			return err
		}
	}
	if err := unix.Fstat(int(dir.Fd()), &after); err != nil || !isUnchanged(before, after) {
		return changedError(name, err)
	}
	return nil
}

func (r *reader) addChild(dir *os.File, e fs.DirEntry, name string) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	switch e.Type() {
	case fs.ModeSymlink:
		return r.addSymlink(int(dir.Fd()), e.Name(), name)
	case fs.ModeDir:
		fd, err := openChild(int(dir.Fd()), e.Name(), unix.O_DIRECTORY)
		if err != nil {
			return unreadableError(name, err)
		}
		child := os.NewFile(uintptr(fd), name)
		defer child.Close()
		return r.addDirectory(child, name)
	case 0:
		fd, err := openChild(int(dir.Fd()), e.Name(), 0)
		if err != nil {
			return unreadableError(name, err)
		}
		defer unix.Close(fd)
		return r.addRegular(fd, name)
	}
	return entryError(name, "it is a "+specialTypeName(e.Type()))
}

// openChild opens a child of dir, which must still be what the directory said: no link is
// followed, a pipe does not block, and nothing that is mounted in the tree gets in.
func openChild(dir int, name string, flags uint64) (fd int, err error) {
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC | unix.O_NOCTTY |
		flags, Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS}
	for {
		fd, err = unix.Openat2(dir, name, &how)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

func (r *reader) addRegular(fd int, name string) error {
	var before, after unix.Stat_t
	if err := unix.Fstat(fd, &before); err != nil {
		return unreadableError(name, err)
	}
	if before.Mode&unix.S_IFMT != unix.S_IFREG {
		return changedError(name, nil)
	}
	e := r.entryFromStat(name, before)
	if before.Nlink > 1 {
		key := [2]uint64{before.Dev, before.Ino}
		if first, known := r.names[key]; known {
			e.Hard, e.Size = first, 0
			return r.w.Add(e, nil)
		}
		r.names[key] = name
	}
	if err := r.w.Add(e, descriptor(fd)); err != nil {
		return err
	}
	if err := unix.Fstat(fd, &after); err != nil || !isUnchanged(before, after) {
		return changedError(name, err)
	}
	return nil
}

func (r *reader) addSymlink(dir int, base, name string) error {
	var info unix.Stat_t
	if err := unix.Fstatat(dir, base, &info, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return unreadableError(name, err)
	}
	target := make([]byte, maxLink+1)
	n, err := unix.Readlinkat(dir, base, target)
	if err != nil || info.Mode&unix.S_IFMT != unix.S_IFLNK {
		return changedError(name, err)
	}
	e := r.entryFromStat(name, info)
	e.Link = string(target[:n])
	return r.w.Add(e, nil)
}

func (r *reader) entryFromStat(name string, info unix.Stat_t) Entry {
	e := Entry{Path: name, Mode: fs.FileMode(info.Mode & 0o777), ModTime: time.Unix(info.Mtim.Unix())}
	e.UID, e.GID = r.owner(info.Uid, info.Gid)
	if info.Mode&unix.S_ISVTX != 0 {
		e.Mode |= fs.ModeSticky
	}
	switch info.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		e.Mode |= fs.ModeDir
	case unix.S_IFLNK:
		e.Mode |= fs.ModeSymlink
	default:
		e.Size = info.Size
	}
	return e
}

// isUnchanged reports whether a file was not changed between before and after.
func isUnchanged(before, after unix.Stat_t) bool {
	return before.Size == after.Size && before.Mtim == after.Mtim && before.Ctim == after.Ctim
}

// A descriptor reads a file that is not given to the runtime's poller.
type descriptor int

func (d descriptor) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(int(d), p)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}
