// SPDX-License-Identifier: Apache-2.0

package sentry

import (
	"reflect"
	"slices"
	"unsafe"

	"gvisor.dev/gvisor/pkg/hostarch"
	"gvisor.dev/gvisor/pkg/sentry/kernel"
	"gvisor.dev/gvisor/pkg/sentry/memmap"
	"gvisor.dev/gvisor/pkg/sentry/mm"
	"gvisor.dev/gvisor/pkg/sync"
)

// gVisor does not export the mappings of a process. They are a B-tree in its memory manager,
// which is read and changed here under the memory manager's own lock. The gate refuses to
// start if the fields differ from the gVisor version pinned in go.mod.

// filesWithoutExecute returns the files of the mappings in area that must not become executable, with a
// reference for each.
func filesWithoutExecute(t *kernel.Task, area hostarch.AddrRange) (files []memmap.MappingIdentity) {
	visitMappings(t.MemoryManager(), area, func(max *hostarch.AccessType, file memmap.MappingIdentity) {
		if !max.Execute && file != nil && !slices.Contains(files, file) {
			file.IncRef()
			files = append(files, file)
		}
	})
	return files
}

// allowExecute lets the mappings of file in area become executable.
func allowExecute(t *kernel.Task, area hostarch.AddrRange, file memmap.MappingIdentity) {
	visitMappings(t.MemoryManager(), area, func(max *hostarch.AccessType, of memmap.MappingIdentity) {
		if of == file {
			max.Execute = true
		}
	})
}

// visitMappings calls f for every mapping in area, with the limit of its permissions and its file.
func visitMappings(m *mm.MemoryManager, area hostarch.AddrRange, f func(*hostarch.AccessType, memmap.MappingIdentity)) {
	v := reflect.ValueOf(m).Elem()
	mu := (*sync.RWMutex)(unsafe.Pointer(v.FieldByName("mappingMu").UnsafeAddr()))
	mu.Lock()
	defer mu.Unlock()
	visitNode(v.FieldByName("vmas").FieldByName("root"), area, f)
}

func visitNode(node reflect.Value, area hostarch.AddrRange, f func(*hostarch.AccessType, memmap.MappingIdentity)) {
	keys, values, children := node.FieldByName("keys"), node.FieldByName("values"), node.FieldByName("children")
	inner, segments := node.FieldByName("hasChildren").Bool(), int(node.FieldByName("nrSegments").Int())
	for i := range segments + 1 {
		if inner {
			visitNode(children.Index(i).Elem(), area, f)
		}
		if i < segments && (*hostarch.AddrRange)(unsafe.Pointer(keys.Index(i).UnsafeAddr())).Overlaps(area) {
			value := values.Index(i)
			f((*hostarch.AccessType)(unsafe.Pointer(value.FieldByName("maxPerms").UnsafeAddr())),
				*(*memmap.MappingIdentity)(unsafe.Pointer(value.FieldByName("id").UnsafeAddr())))
		}
	}
}

// checkMappings checks the fields that visit uses.
func checkMappings() error {
	field := func(of reflect.Type, name string) reflect.Type {
		if of.Kind() != reflect.Struct {
			return reflect.TypeFor[struct{}]()
		}
		f, _ := of.FieldByName(name)
		if f.Type == nil {
			return reflect.TypeFor[struct{}]()
		}
		return f.Type
	}
	manager := reflect.TypeFor[mm.MemoryManager]()
	lock, node := field(manager, "mappingMu"), field(field(manager, "vmas"), "root")
	keys, values, children := field(node, "keys"), field(node, "values"), field(node, "children")
	for _, array := range []reflect.Type{keys, values, children} {
		if array.Kind() != reflect.Array {
			return errLayout
		}
	}
	if lock.Kind() != reflect.Struct || lock.NumField() != 1 || lock.Field(0).Type != reflect.TypeFor[sync.RWMutex]() ||
		keys.Elem() != reflect.TypeFor[hostarch.AddrRange]() || children.Elem() != reflect.PointerTo(node) ||
		field(values.Elem(), "maxPerms") != reflect.TypeFor[hostarch.AccessType]() ||
		field(values.Elem(), "id") != reflect.TypeFor[memmap.MappingIdentity]() ||
		field(node, "hasChildren").Kind() != reflect.Bool || field(node, "nrSegments").Kind() != reflect.Int {
		return errLayout
	}
	return nil
}
