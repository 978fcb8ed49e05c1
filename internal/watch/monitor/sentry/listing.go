// SPDX-License-Identifier: Apache-2.0

package sentry

import (
	"io"
	"path"
	"slices"
	"strings"
	"sync"

	"gvisor.dev/gvisor/pkg/abi/linux"
	"gvisor.dev/gvisor/pkg/context"
	"gvisor.dev/gvisor/pkg/errors/linuxerr"
	"gvisor.dev/gvisor/pkg/fspath"
	"gvisor.dev/gvisor/pkg/sentry/fsimpl/kernfs"
	"gvisor.dev/gvisor/pkg/sentry/kernel"
	"gvisor.dev/gvisor/pkg/sentry/kernel/auth"
	"gvisor.dev/gvisor/pkg/sentry/vfs"
	"gvisor.dev/gvisor/pkg/usermem"

	"github.com/fumehood/fumehood/internal/kit/listing"
)

// ListingName is the type of a file system that has one file, its root. Reading it returns a
// listing, in the form of package listing, of the directory that was the source of the mount. Only
// the sandbox's init can mount it.
//
// After each command, init needs the attributes of all files that commands have written. A system
// call for each file costs twenty times as much as this listing, which is as exact: it asks the
// file system about each file, each time.
const ListingName = "fumehood-listing"

// registerListing makes ListingName available.
func registerListing(k *kernel.Kernel) error {
	return k.VFS().RegisterFilesystemType(ListingName, &listingType{},
		&vfs.RegisterFilesystemTypeOptions{AllowUserMount: true})
}

type listingType struct{}

// Name implements vfs.FilesystemType.
func (*listingType) Name() string { return ListingName }

// Release implements vfs.FilesystemType.
func (*listingType) Release(context.Context) {}

// GetFilesystem implements vfs.FilesystemType.
func (lt *listingType) GetFilesystem(
	ctx context.Context, v *vfs.VirtualFilesystem, creds *auth.Credentials, source string,
	opts vfs.GetFilesystemOptions,
) (*vfs.Filesystem, *vfs.Dentry, error) {
	t, ok := ctx.(*kernel.Task)
	if !ok || t.ThreadGroup() != t.Kernel().GlobalInit() {
		return nil, nil, linuxerr.EPERM
	}
	if opts.Data != "" || !path.IsAbs(source) {
		return nil, nil, linuxerr.EINVAL
	}
	at := t.FSContext().RootDirectory()
	defer at.DecRef(ctx)
	of, err := v.GetDentryAt(ctx, creds, &vfs.PathOperation{Root: at, Start: at, Path: fspath.Parse(source)},
		&vfs.GetDentryOptions{})
	if err != nil {
		return nil, nil, err
	}
	f := &listingFS{of: of, source: source}
	f.VFSFilesystem().Init(v, lt, f)
	file := &listingFile{f: f}
	file.InodeAttrs.Init(ctx, creds, linux.UNNAMED_MAJOR, 0, f.NextIno(), linux.ModeRegular|linux.ModeUserRead)
	root := &kernfs.Dentry{}
	root.InitRoot(&f.Filesystem, file)
	return f.VFSFilesystem(), root.VFSDentry(), nil
}

type listingFS struct {
	kernfs.Filesystem
	of     vfs.VirtualDentry
	source string // its path
}

// Release implements vfs.FilesystemImpl.
func (f *listingFS) Release(ctx context.Context) {
	f.Filesystem.Release(ctx)
	f.of.DecRef(ctx)
}

// MountOptions implements vfs.FilesystemImpl.
func (*listingFS) MountOptions() string { return "" }

// A listingFile is the only file of a listingFS.
type listingFile struct {
	kernfs.InodeAttrs
	kernfs.InodeFSOwned
	kernfs.InodeNoStatFS
	kernfs.InodeNoopRefCount
	kernfs.InodeNotAnonymous
	kernfs.InodeNotDirectory
	kernfs.InodeNotSymlink
	kernfs.InodeWatches
	f *listingFS
}

// SetStat implements kernfs.Inode.
func (*listingFile) SetStat(context.Context, *vfs.Filesystem, *auth.Credentials, vfs.SetStatOptions) error {
	return linuxerr.EPERM
}

// Open implements kernfs.Inode.
func (i *listingFile) Open(
	ctx context.Context, rp *vfs.ResolvingPath, d *kernfs.Dentry, opts vfs.OpenOptions,
) (*vfs.FileDescription, error) {
	fd := &listingFD{f: i.f, gate: active.Load(), creds: rp.Credentials(), left: []*listedDir{{}}}
	if err := fd.vfsfd.Init(fd, opts.Flags, fd.creds, rp.Mount(), d.VFSDentry(),
		&vfs.FileDescriptionOptions{DenyPRead: true, DenyPWrite: true, UseDentryMetadata: true}); err != nil {
		return nil, err
	}
	if t, ok := ctx.(*kernel.Task); !ok || fd.gate != nil && !fd.gate.mapped.beginListing(t) {
		fd.buf = listing.AppendUnread(fd.buf)
	}
	return &fd.vfsfd, nil
}

// A listingFD makes a listing while it is read: it keeps the entries of one directory.
type listingFD struct {
	vfs.FileDescriptionDefaultImpl
	vfs.DentryMetadataFileDescriptionImpl
	vfs.NoLockFD
	vfsfd vfs.FileDescription
	f     *listingFS
	gate  *execGate         // nil if there is none
	creds *auth.Credentials // of the process that opened it

	mu    sync.Mutex
	left  []*listedDir // that are not listed yet
	names []string     // in the directory that is listed
	buf   []byte       // its bytes from at on are not read yet
	at    int
	ended bool
}

// Release implements vfs.FileDescriptionImpl.
func (*listingFD) Release(context.Context) {}

// Read implements vfs.FileDescriptionImpl.
func (fd *listingFD) Read(ctx context.Context, dst usermem.IOSequence, _ vfs.ReadOptions) (int64, error) {
	fd.mu.Lock()
	defer fd.mu.Unlock()
	if int64(len(fd.buf)-fd.at) < dst.NumBytes() {
		fd.buf, fd.at = slices.Delete(fd.buf, 0, fd.at), 0
	}
	for int64(len(fd.buf)-fd.at) < dst.NumBytes() && !fd.ended {
		if err := fd.listNext(ctx); err != nil {
			return 0, err
		}
	}
	if fd.at == len(fd.buf) {
		return 0, io.EOF
	}
	n, err := dst.CopyOut(ctx, fd.buf[fd.at:])
	fd.at += n
	return int64(n), err
}

// listNext lists the next directory. That the root cannot be listed is an error.
func (fd *listingFD) listNext(ctx context.Context) error {
	if len(fd.left) == 0 {
		fd.buf, fd.ended = listing.AppendEnd(fd.buf), true
		return nil
	}
	last := len(fd.left) - 1
	dir := fd.left[last]
	fd.left = fd.left[:last]
	name := dir.path()
	v := fd.vfsfd.Mount().Filesystem().VirtualFilesystem()
	open, err := v.OpenAt(ctx, fd.creds, &vfs.PathOperation{Root: fd.f.of, Start: fd.f.of, Path: fspath.Parse(name)},
		&vfs.OpenOptions{Flags: linux.O_RDONLY | linux.O_DIRECTORY | linux.O_NOFOLLOW})
	if err != nil && dir.in == nil {
		return err
	}
	if err != nil {
		fd.buf = listing.AppendUnread(fd.buf)
		return nil
	}
	defer open.DecRef(ctx)
	// The names are collected first: the file system of the directory is locked meanwhile.
	fd.names = fd.names[:0]
	err = open.IterDirents(ctx, vfs.IterDirentsCallbackFunc(func(d vfs.Dirent) error {
		if d.Name != "." && d.Name != ".." {
			fd.names = append(fd.names, d.Name)
		}
		return nil
	}))
	if err != nil {
		fd.buf = listing.AppendUnread(fd.buf)
	}
	fd.buf = listing.AppendDirectory(fd.buf, name)
	at := &vfs.PathOperation{Root: open.VirtualDentry(), Start: open.VirtualDentry()}
	for _, name := range fd.names {
		at.Path = fspath.Parse(name)
		fd.listEntry(ctx, v, at, dir, name)
	}
	return nil
}

// A listedDir is a directory, as the last name of its path: paths together could be far longer than
// what commands have written.
type listedDir struct {
	in     *listedDir // nil for the root
	name   string
	length int // of the path, with a slash behind
}

func (d *listedDir) path() string {
	b := make([]byte, d.length)
	for ; d.in != nil; d = d.in {
		copy(b[d.in.length:], d.name)
		b[d.length-1] = '/'
	}
	return strings.TrimSuffix(string(b), "/")
}

// listEntry lists one name of dir, which is at at. A path that is too long for init's system calls is not
// listed.
func (fd *listingFD) listEntry(
	ctx context.Context, v *vfs.VirtualFilesystem, at *vfs.PathOperation, dir *listedDir, name string,
) {
	st, err := v.StatAt(ctx, fd.creds, at, &vfs.StatOptions{Mask: linux.STATX_BASIC_STATS})
	if err != nil || len(fd.f.source)+len("/")+dir.length+len(name) >= linux.PATH_MAX {
		fd.buf = listing.AppendUnread(fd.buf)
		return
	}
	e := listing.Entry{
		Kind: listing.KindOf(uint32(st.Mode), uint64(linux.MakeDeviceID(uint16(st.RdevMajor), st.RdevMinor))),
		Size: int64(st.Size), Mtime: st.Mtime.ToNsec(), Ctime: st.Ctime.ToNsec(), Inode: st.Ino,
	}
	if e.Kind == listing.Directory {
		fd.left = append(fd.left, &listedDir{dir, name, dir.length + len(name) + len("/")})
		value, err := v.GetXattrAt(ctx, fd.creds, at, &vfs.GetXattrOptions{Name: listing.OpaqueName,
			Size: uint64(len(listing.OpaqueValue))})
		if err == nil && value == listing.OpaqueValue {
			e.Kind = listing.Opaque
		}
	}
	if e.Kind == listing.File && fd.gate != nil {
		e.Mapped = fd.gate.mapped.lastListing(st.Ino)
	}
	fd.buf = listing.AppendEntry(fd.buf, name, e)
}
