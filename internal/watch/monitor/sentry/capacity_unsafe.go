// SPDX-License-Identifier: Apache-2.0

package sentry

import (
	"errors"
	"reflect"
	"sync/atomic"
	"unsafe"

	"gvisor.dev/gvisor/pkg/fspath"
	"gvisor.dev/gvisor/pkg/hostarch"
	"gvisor.dev/gvisor/pkg/sentry/fsimpl/tmpfs"
	"gvisor.dev/gvisor/pkg/sentry/kernel"
	"gvisor.dev/gvisor/pkg/sentry/usage"
	"gvisor.dev/gvisor/pkg/sentry/vfs"
)

// upper is the directory of the size-limited layer that guest init makes, which takes
// every write.
const upper = private + "upper"

// A capacity is the disk space that the running command may write, and the memory that it
// sees. gVisor fixes both when a sandbox starts, for the run's largest limits, and a
// later mount cannot change them. They are set here between two commands, when no
// process runs that could read them.
type capacity struct {
	kernel atomic.Pointer[kernel.Kernel] // set once guest init has made its first thread
	limit  uint64                        // the layer's original size, in pages
}

// setLimits makes memory bytes appear as the machine's memory, and allows disk bytes to be
// written in addition to earlier writes. 0 leaves either unchanged.
func (r *capacity) setLimits(memory, disk uint64) error {
	if memory > 0 {
		atomic.StoreUint64(&usage.MinimumTotalMemoryBytes, memory)
		atomic.StoreUint64(&usage.MaximumTotalMemoryBytes, memory)
	}
	if disk == 0 {
		return nil
	}
	k := r.kernel.Load()
	if k == nil {
		return errors.New("nothing has run yet")
	}
	fs, used, err := r.upperLayer(k)
	if err != nil {
		return err
	}
	return r.resizeTmpfs(fs, used, disk)
}

// upperLayer returns the layer that takes every write, and how many of its pages are used.
func (r *capacity) upperLayer(k *kernel.Kernel) (fs *vfs.Filesystem, used uint64, err error) {
	first := k.GlobalInit().Leader()
	root := first.FSContext().RootDirectory()
	ctx := k.SupervisorContext()
	defer root.DecRef(ctx)
	at := vfs.PathOperation{Root: root, Start: root, Path: fspath.Parse(upper)}
	vd, err := k.VFS().GetDentryAt(ctx, first.Credentials(), &at, &vfs.GetDentryOptions{})
	if err != nil {
		return nil, 0, err
	}
	defer vd.DecRef(ctx)
	st, err := k.VFS().StatFSAt(ctx, first.Credentials(), &at)
	if err != nil {
		return nil, 0, err
	}
	return vd.Mount().Filesystem(), st.Blocks - st.BlocksFree, nil
}

// resizeTmpfs makes room for disk bytes in addition to the used pages.
func (r *capacity) resizeTmpfs(fs *vfs.Filesystem, used, disk uint64) error {
	limit, err := sizeOf(fs)
	if err != nil {
		return err
	}
	if r.limit == 0 {
		r.limit = *limit
	}
	atomic.StoreUint64(limit, min(r.limit, used+(disk+hostarch.PageSize-1)/hostarch.PageSize))
	return nil
}

// sizeOf returns the field of a tmpfs that holds its size in pages. The gate breaks if
// the field differs from the gVisor version pinned in go.mod; a test also fills a
// layer.
func sizeOf(fs *vfs.Filesystem) (*uint64, error) {
	impl := reflect.ValueOf(fs.Impl())
	if fs.FilesystemType().Name() != tmpfs.Name || impl.Kind() != reflect.Pointer {
		return nil, errLayout
	}
	field := impl.Elem().FieldByName("maxSizeInPages")
	if !field.IsValid() || field.Kind() != reflect.Uint64 {
		return nil, errLayout
	}
	return (*uint64)(unsafe.Pointer(field.UnsafeAddr())), nil
}
