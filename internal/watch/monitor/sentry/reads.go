// SPDX-License-Identifier: Apache-2.0

package sentry

import (
	"path"
	"sync"

	"gvisor.dev/gvisor/pkg/abi/linux"
	"gvisor.dev/gvisor/pkg/atomicbitops"
	"gvisor.dev/gvisor/pkg/context"
	"gvisor.dev/gvisor/pkg/errors/linuxerr"
	"gvisor.dev/gvisor/pkg/fspath"
	"gvisor.dev/gvisor/pkg/sentry/kernel"
	"gvisor.dev/gvisor/pkg/sentry/kernel/auth"
	"gvisor.dev/gvisor/pkg/sentry/socket/unix/transport"
	"gvisor.dev/gvisor/pkg/sentry/vfs"

	"github.com/fumehood/fumehood/internal/watch/monitor/wire"
)

// RecordedName is the type of a file system that shows another directory, read-only, and records
// what is read of it. Only the sandbox's init can mount it: its source is the directory.
//
// It is made to be the lower layer of an overlay. The overlay resolves paths itself, one name
// after the other, and asks the lower layer only where the layers above do not have the answer.
// So every answer that a process gets from the directory passes through here, whatever system
// call, descriptor, link or mapping it comes from, with the path of the file that answered. What
// the processes have written themselves does not. Names are the kernel's own: no process can
// change one between the access and the record.
//
// An access is recorded before it is carried out, and also if it fails. Extended attributes and
// access control lists are not shown, because they are not recorded.
const RecordedName = "fumehood-recorded"

// A readRecord is what was read of the directories of recorded file systems. The zero record is
// ready to use.
type readRecord struct {
	mu     sync.Mutex
	lookup map[string]uint32 // the first generation, by path
	read   map[string]uint32 // the same, for contents
	shown  bool              // there is a file system that records
	over   bool              // there was more than can be said
	sent   bool              // nothing is recorded any more
}

// addAccess records that the generation looked up the file at name, and read its content.
func (r *readRecord) addAccess(generation uint32, name string, content bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || r.sent {
		return
	}
	if r.lookup == nil {
		r.lookup, r.read = map[string]uint32{}, map[string]uint32{}
	}
	if _, known := r.lookup[name]; !known {
		if len(r.lookup) >= wire.MaxReads || len(name) > wire.MaxPath {
			r.markOverLimit()
			return
		}
		r.lookup[name] = generation
	}
	if _, known := r.read[name]; content && !known {
		r.read[name] = generation
	}
}

func (r *readRecord) markOverLimit() {
	r.over, r.lookup, r.read = true, nil, nil
}

// markUnknownPath records an access of which the path is not known.
func (r *readRecord) markUnknownPath() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.markOverLimit()
}

// markRecording notes that a file system that records is there.
func (r *readRecord) markRecording() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown = true
}

// takeReads returns what was read until the end of the generation until, and what more after it, and
// ends the record. What was not recorded is more than can be said.
func (r *readRecord) takeReads(until uint32) []wire.Reads {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := []wire.Reads{{Over: r.over || r.sent || !r.shown}}
	r.sent = true
	for name, first := range r.lookup {
		content, known := r.read[name]
		if first <= until {
			list = wire.AddRead(list, wire.Read{Path: name, Content: known && content <= until})
		}
		if first > until || known && content > until {
			list = wire.AddRead(list, wire.Read{Path: name, Content: known, Optional: true})
		}
	}
	r.lookup, r.read = nil, nil
	return list
}

// registerRecorded makes RecordedName available.
func (g *execGate) registerRecorded(k *kernel.Kernel) error {
	return k.VFS().RegisterFilesystemType(RecordedName, &recordedType{g},
		&vfs.RegisterFilesystemTypeOptions{AllowUserMount: true})
}

type recordedType struct{ g *execGate }

// Name implements vfs.FilesystemType.
func (*recordedType) Name() string { return RecordedName }

// Release implements vfs.FilesystemType.
func (*recordedType) Release(context.Context) {}

// GetFilesystem implements vfs.FilesystemType.
func (rt *recordedType) GetFilesystem(
	ctx context.Context, v *vfs.VirtualFilesystem, creds *auth.Credentials, source string,
	opts vfs.GetFilesystemOptions,
) (*vfs.Filesystem, *vfs.Dentry, error) {
	t, ok := ctx.(*kernel.Task)
	if !ok || !rt.g.init(t) {
		return nil, nil, linuxerr.EPERM
	}
	if opts.Data != "" || !path.IsAbs(source) {
		return nil, nil, linuxerr.EINVAL
	}
	root := t.FSContext().RootDirectory()
	defer root.DecRef(ctx)
	below, err := v.GetDentryAt(ctx, creds, &vfs.PathOperation{Root: root, Start: root, Path: fspath.Parse(source)},
		&vfs.GetDentryOptions{})
	if err != nil {
		return nil, nil, err
	}
	rt.g.record.markRecording()
	f := &recordedFS{g: rt.g}
	f.vfsfs.Init(v, rt, f)
	return &f.vfsfs, &newRecordedNode(below, ".").vfsd, nil
}

// A recordedNode is a file. There may be several for one.
type recordedNode struct {
	vfsd    vfs.Dentry
	refs    atomicbitops.Int64
	watches vfs.Watches
	below   vfs.VirtualDentry
	path    string // relative to the root, "." for it
}

// newRecordedNode returns a node with one reference, which takes over that to below.
func newRecordedNode(below vfs.VirtualDentry, name string) *recordedNode {
	n := &recordedNode{refs: atomicbitops.FromInt64(1), below: below, path: name}
	n.vfsd.Init(n)
	return n
}

// IncRef implements vfs.DentryImpl.
func (n *recordedNode) IncRef() { n.refs.Add(1) }

// TryIncRef implements vfs.DentryImpl.
func (n *recordedNode) TryIncRef() bool {
	for {
		refs := n.refs.Load()
		if refs <= 0 {
			return false
		}
		if n.refs.CompareAndSwap(refs, refs+1) {
			return true
		}
	}
}

// DecRef implements vfs.DentryImpl.
func (n *recordedNode) DecRef(ctx context.Context) {
	if n.refs.Add(-1) == 0 {
		n.below.DecRef(ctx)
	}
}

// InotifyWithParent implements vfs.DentryImpl. Overlays have watches of their own.
func (n *recordedNode) InotifyWithParent(context.Context, uint32, uint32, vfs.EventType) {}

// Watches implements vfs.DentryImpl.
func (n *recordedNode) Watches() *vfs.Watches { return &n.watches }

// OnZeroWatches implements vfs.DentryImpl.
func (n *recordedNode) OnZeroWatches(context.Context) {}

// A recordedFS passes every operation on, to the mount below.
type recordedFS struct {
	vfsfs vfs.Filesystem
	g     *execGate
}

// recordOperation records an operation on the file that rp names, and returns its path, and what names it
// in the mount below. A path of more than one name, which no overlay asks for, is refused.
func (f *recordedFS) recordOperation(rp *vfs.ResolvingPath, content bool) (*vfs.PathOperation, string, error) {
	start := rp.Start().Impl().(*recordedNode)
	op, name := &vfs.PathOperation{Root: start.below, Start: start.below}, start.path
	if !rp.Done() {
		last := rp.Component()
		if !rp.Final() || last == "." || last == ".." {
			f.g.record.markUnknownPath()
			return nil, "", linuxerr.EXDEV
		}
		op.Path, name = fspath.Parse(last), path.Join(name, last)
	}
	f.g.record.addAccess(f.g.lineages.now.Load().number, name, content)
	return op, name, nil
}

// Release implements vfs.FilesystemImpl.
func (f *recordedFS) Release(context.Context) {}

// Sync implements vfs.FilesystemImpl.
func (f *recordedFS) Sync(context.Context) error { return nil }

// MountOptions implements vfs.FilesystemImpl.
func (f *recordedFS) MountOptions() string { return "" }

// AccessAt implements vfs.FilesystemImpl.
func (f *recordedFS) AccessAt(
	ctx context.Context, rp *vfs.ResolvingPath, creds *auth.Credentials, ats vfs.AccessTypes,
) error {
	op, _, err := f.recordOperation(rp, false)
	if err != nil {
		return err
	}
	return rp.VirtualFilesystem().AccessAt(ctx, creds, ats, op)
}

// GetDentryAt implements vfs.FilesystemImpl.
func (f *recordedFS) GetDentryAt(
	ctx context.Context, rp *vfs.ResolvingPath, opts vfs.GetDentryOptions,
) (*vfs.Dentry, error) {
	op, name, err := f.recordOperation(rp, false)
	if err != nil {
		return nil, err
	}
	if rp.Done() && !opts.CheckSearchable {
		d := rp.Start()
		d.IncRef()
		return d, nil
	}
	below, err := rp.VirtualFilesystem().GetDentryAt(ctx, rp.Credentials(), op, &opts)
	if err != nil {
		return nil, err
	}
	return &newRecordedNode(below, name).vfsd, nil
}

// GetParentDentryAt implements vfs.FilesystemImpl.
func (f *recordedFS) GetParentDentryAt(context.Context, *vfs.ResolvingPath) (*vfs.Dentry, error) {
	return nil, linuxerr.EROFS // it is the first step of a change
}

// OpenAt implements vfs.FilesystemImpl. The opened file is that of the mount below, which is
// read-only.
func (f *recordedFS) OpenAt(
	ctx context.Context, rp *vfs.ResolvingPath, opts vfs.OpenOptions,
) (*vfs.FileDescription, error) {
	op, _, err := f.recordOperation(rp, true)
	if err != nil {
		return nil, err
	}
	return rp.VirtualFilesystem().OpenAt(ctx, rp.Credentials(), op, &opts)
}

// ReadlinkAt implements vfs.FilesystemImpl.
func (f *recordedFS) ReadlinkAt(ctx context.Context, rp *vfs.ResolvingPath) (string, error) {
	op, _, err := f.recordOperation(rp, true)
	if err != nil {
		return "", err
	}
	return rp.VirtualFilesystem().ReadlinkAt(ctx, rp.Credentials(), op)
}

// StatAt implements vfs.FilesystemImpl.
func (f *recordedFS) StatAt(ctx context.Context, rp *vfs.ResolvingPath, opts vfs.StatOptions) (linux.Statx, error) {
	op, _, err := f.recordOperation(rp, false)
	if err != nil {
		return linux.Statx{}, err
	}
	return rp.VirtualFilesystem().StatAt(ctx, rp.Credentials(), op, &opts)
}

// StatFSAt implements vfs.FilesystemImpl.
func (f *recordedFS) StatFSAt(ctx context.Context, rp *vfs.ResolvingPath) (linux.Statfs, error) {
	op, _, err := f.recordOperation(rp, false)
	if err != nil {
		return linux.Statfs{}, err
	}
	return rp.VirtualFilesystem().StatFSAt(ctx, rp.Credentials(), op)
}

// BoundEndpointAt implements vfs.FilesystemImpl. A workspace has no sockets that a set-up could
// use again.
func (f *recordedFS) BoundEndpointAt(
	context.Context, *vfs.ResolvingPath, vfs.BoundEndpointOptions,
) (transport.BoundEndpoint, error) {
	return nil, linuxerr.ECONNREFUSED
}

// ListXattrAt implements vfs.FilesystemImpl.
func (f *recordedFS) ListXattrAt(context.Context, *vfs.ResolvingPath, uint64) ([]string, error) {
	return nil, linuxerr.EOPNOTSUPP
}

// GetXattrAt implements vfs.FilesystemImpl.
func (f *recordedFS) GetXattrAt(context.Context, *vfs.ResolvingPath, vfs.GetXattrOptions) (string, error) {
	return "", linuxerr.EOPNOTSUPP
}

// GetPosixACLAt implements vfs.FilesystemImpl.
func (f *recordedFS) GetPosixACLAt(context.Context, *vfs.ResolvingPath, vfs.ACLType) (*vfs.PosixACL, error) {
	return nil, nil
}

// LinkAt implements vfs.FilesystemImpl.
func (f *recordedFS) LinkAt(context.Context, *vfs.ResolvingPath, vfs.VirtualDentry) error {
	return linuxerr.EROFS
}

// MkdirAt implements vfs.FilesystemImpl.
func (f *recordedFS) MkdirAt(context.Context, *vfs.ResolvingPath, vfs.MkdirOptions) error {
	return linuxerr.EROFS
}

// MknodAt implements vfs.FilesystemImpl.
func (f *recordedFS) MknodAt(context.Context, *vfs.ResolvingPath, vfs.MknodOptions) error {
	return linuxerr.EROFS
}

// RenameAt implements vfs.FilesystemImpl.
func (f *recordedFS) RenameAt(context.Context, *vfs.ResolvingPath, vfs.VirtualDentry, string, vfs.RenameOptions) error {
	return linuxerr.EROFS
}

// RmdirAt implements vfs.FilesystemImpl.
func (f *recordedFS) RmdirAt(context.Context, *vfs.ResolvingPath) error { return linuxerr.EROFS }

// SetStatAt implements vfs.FilesystemImpl.
func (f *recordedFS) SetStatAt(context.Context, *vfs.ResolvingPath, vfs.SetStatOptions) error {
	return linuxerr.EROFS
}

// SymlinkAt implements vfs.FilesystemImpl.
func (f *recordedFS) SymlinkAt(context.Context, *vfs.ResolvingPath, string) error {
	return linuxerr.EROFS
}

// UnlinkAt implements vfs.FilesystemImpl.
func (f *recordedFS) UnlinkAt(context.Context, *vfs.ResolvingPath) error { return linuxerr.EROFS }

// SetXattrAt implements vfs.FilesystemImpl.
func (f *recordedFS) SetXattrAt(context.Context, *vfs.ResolvingPath, vfs.SetXattrOptions) error {
	return linuxerr.EROFS
}

// RemoveXattrAt implements vfs.FilesystemImpl.
func (f *recordedFS) RemoveXattrAt(context.Context, *vfs.ResolvingPath, string) error {
	return linuxerr.EROFS
}

// SetPosixACLAt implements vfs.FilesystemImpl.
func (f *recordedFS) SetPosixACLAt(
	context.Context, *vfs.ResolvingPath, vfs.ACLType, *vfs.PosixACL, bool,
) (*vfs.PosixACL, linux.FileMode, error) {
	return nil, 0, linuxerr.EROFS
}

// PrependPath implements vfs.FilesystemImpl.
func (f *recordedFS) PrependPath(_ context.Context, _, vd vfs.VirtualDentry, b *fspath.Builder) error {
	if n := vd.Dentry().Impl().(*recordedNode); n.path != "." {
		b.PrependComponent(n.path)
		return vfs.PrependPathAtNonMountRootError{}
	}
	return nil
}

// IsDescendant implements vfs.FilesystemImpl.
func (f *recordedFS) IsDescendant(root, vd vfs.VirtualDentry) bool {
	above, n := root.Dentry().Impl().(*recordedNode), vd.Dentry().Impl().(*recordedNode)
	return above.path == "." || n.path == above.path ||
		len(n.path) > len(above.path) && n.path[:len(above.path)+1] == above.path+"/"
}
