// SPDX-License-Identifier: Apache-2.0

package sentry

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"

	"gvisor.dev/gvisor/pkg/sentry/checkpoint"
	"gvisor.dev/gvisor/pkg/sentry/fsimpl/host"
	"gvisor.dev/gvisor/pkg/sentry/fsimpl/kernfs"
	"gvisor.dev/gvisor/pkg/sentry/kernel"
	"gvisor.dev/gvisor/pkg/sentry/vfs"
	"gvisor.dev/gvisor/pkg/sync"

	"github.com/fumehood/fumehood/internal/watch/monitor/wire"
)

// gVisor saves a sandbox as runsc's own client would: what was started over the control socket is
// killed when the sandbox is restored, and its host descriptors lead nowhere. Interpreters are started so,
// and are what a snapshot is for. Before a save, each process that the supervisor started becomes a child of
// init, as an orphan does, and its descriptors get keys under which restored ones are donated (wire.RestoredFD).
//
// The fields for this are not exported. A save is refused if they differ from the gVisor version pinned in
// go.mod.

// prepareSave makes the sandbox ready to be saved, and returns how many processes other than init run: then it
// changes nothing.
func (g *execGate) prepareSave(k *kernel.Kernel) (running uint32, err error) {
	if k == nil || g.pod != nil {
		return 0, errGeneration
	}
	first := k.GlobalInit()
	all := k.RootPIDNamespace().ThreadGroups()
	for _, p := range all {
		if p != first && hasLivingThread(p) && !isStopped(p) {
			running++
		}
	}
	if running > 0 {
		return running, nil
	}
	if err := g.capacity.restoreLimit(k); err != nil {
		return 0, err
	}
	name, err := containerName(first.Leader())
	if err != nil {
		return 0, err
	}
	for _, p := range all {
		if p == first {
			continue
		}
		if leader := p.Leader(); leader != nil && leader.Parent() == nil {
			if err := adoptProcess(first.Leader(), leader); err != nil {
				return 0, err
			}
			if err := nameDescriptors(k, p, name); err != nil {
				return 0, err
			}
		}
		p.ForEachTask(func(t *kernel.Task) bool {
			t.Origin = kernel.OriginUnknown
			return true
		})
	}
	return 0, nil
}

// restoreLimit gives the layer that takes every write its original size, which is then saved.
func (r *capacity) restoreLimit(k *kernel.Kernel) error {
	if r.limit == 0 {
		return nil
	}
	fs, _, err := r.upperLayer(k)
	if err != nil {
		return err
	}
	limit, err := sizeOf(fs)
	if err == nil {
		atomic.StoreUint64(limit, r.limit)
	}
	return err
}

// fieldOf returns the address of a field of the struct at p, which must have the type T.
func fieldOf[T any](p any, name string) (*T, error) {
	v := reflect.ValueOf(p)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return nil, errLayout
	}
	field := v.Elem().FieldByName(name)
	if !field.IsValid() || field.Type() != reflect.TypeFor[T]() {
		return nil, errLayout
	}
	return (*T)(unsafe.Pointer(field.UnsafeAddr())), nil
}

// adoptProcess makes t, which has no parent, a child of parent.
func adoptProcess(parent, t *kernel.Task) error {
	of, err := fieldOf[*kernel.Task](t, "parent")
	if err != nil {
		return err
	}
	children, err := fieldOf[map[*kernel.Task]struct{}](parent, "children")
	if err != nil || *children == nil {
		return errLayout
	}
	lock := reflect.ValueOf(t.TaskSet()).Elem().FieldByName("mu")
	if !lock.IsValid() || lock.Kind() != reflect.Struct || lock.NumField() != 1 ||
		lock.Field(0).Type() != reflect.TypeFor[sync.RWMutex]() {
		return errLayout
	}
	mu := (*sync.RWMutex)(unsafe.Pointer(lock.UnsafeAddr()))
	mu.Lock()
	defer mu.Unlock()
	*of = parent
	(*children)[t] = struct{}{}
	return nil
}

// hostFile returns the inode of a file that is a descriptor of the host, or nil.
func hostFile(file *vfs.FileDescription) any {
	d, ok := file.Dentry().Impl().(*kernfs.Dentry)
	if !ok {
		return nil
	}
	inode := d.Inode()
	if of := reflect.TypeOf(inode); of.Kind() != reflect.Pointer || of.Elem().Name() != "inode" ||
		!strings.HasSuffix(of.Elem().PkgPath(), "/pkg/sentry/fsimpl/host") {
		return nil
	}
	return inode
}

// containerName returns the name under which runsc donates what init's own streams become.
func containerName(first *kernel.Task) (string, error) {
	stdin := first.GetFile(0)
	if stdin == nil {
		return "", errLayout
	}
	defer stdin.DecRef(first)
	key, err := fieldOf[checkpoint.ResourceID](hostFile(stdin), "restoreKey")
	if err != nil || *key != host.MakeResourceID(key.ContainerName, 0) {
		return "", errLayout
	}
	return key.ContainerName, nil
}

// nameDescriptors gives the host descriptors with which the process of t was started their keys. Of what it got
// from elsewhere under the same number, only one gets it: what the other leads to is gone after a restore.
func nameDescriptors(k *kernel.Kernel, p *kernel.ThreadGroup, container string) (err error) {
	ctx := k.SupervisorContext()
	var tables []*kernel.FDTable // of all threads: the first may have ended
	p.ForEachTask(func(t *kernel.Task) bool {
		t.WithMuLocked(func(t *kernel.Task) {
			if table := t.FDTable(); table != nil && !slices.Contains(tables, table) {
				table.IncRef()
				tables = append(tables, table)
			}
		})
		return true
	})
	named, pid := map[checkpoint.ResourceID]bool{}, int32(k.RootPIDNamespace().IDOfThreadGroup(p))
	for _, table := range tables {
		table.ForEach(ctx, func(_ int32, file *vfs.FileDescription, _ kernel.FDFlags) bool {
			if inode := hostFile(file); inode != nil {
				err = nameDescriptor(inode, pid, container, named)
			}
			return err == nil
		})
		table.DecRef(ctx)
	}
	return err
}

// nameDescriptor gives a host descriptor of the process pid its key, if that is not in named.
func nameDescriptor(inode any, pid int32, container string, named map[checkpoint.ResourceID]bool) error {
	key, err := fieldOf[checkpoint.ResourceID](inode, "restoreKey")
	if err != nil {
		return err
	}
	restorable, err := fieldOf[bool](inode, "restorable")
	if err != nil || *restorable { // because it is saved again
		return err
	}
	var number int
	if _, err := fmt.Sscanf(key.Path, "host:%d", &number); err != nil || number > wire.MaxDonated {
		return errLayout
	}
	if id := host.MakeResourceID(container, wire.RestoredFD(pid, number)); !named[id] {
		named[id], *key, *restorable = true, id, true
	}
	return nil
}
