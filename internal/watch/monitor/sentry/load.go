// SPDX-License-Identifier: Apache-2.0

package sentry

import (
	"errors"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/abi/linux"
	"gvisor.dev/gvisor/pkg/errors/linuxerr"
	"gvisor.dev/gvisor/pkg/hostarch"
	"gvisor.dev/gvisor/pkg/sentry/arch"
	"gvisor.dev/gvisor/pkg/sentry/fsimpl/tmpfs"
	"gvisor.dev/gvisor/pkg/sentry/kernel"
	"gvisor.dev/gvisor/pkg/sentry/kernel/ipc"
	"gvisor.dev/gvisor/pkg/sentry/kernel/shm"
	"gvisor.dev/gvisor/pkg/sentry/memmap"
	syscalls "gvisor.dev/gvisor/pkg/sentry/syscalls/linux"
	"gvisor.dev/gvisor/pkg/sentry/vfs"

	"github.com/fumehood/fumehood/internal/kit/elf"
	"github.com/fumehood/fumehood/internal/watch/monitor/wire"
)

// A file is code if it is mapped executable. gVisor passes to a sink only the name of such a
// file, and only for mmap. So the calls that can make a mapping executable go through this
// file, in the tables that gVisor exports:
//
//   - mmap and shmat ask about the file that they map with PROT_EXEC, and map that file: the
//     descriptor is looked up once, so another thread cannot exchange it.
//   - What they map without PROT_EXEC can never become executable, as if the file was on a
//     file system without programs (maxPerms). The limit is the mapping's own: it follows it
//     through mremap and fork.
//   - mprotect asks about the files of the mappings that this limit stops, and raises it.
//
// Nothing is asked about a library of the read-only root, or about memory without a file. A program of
// the root is asked about: what maps another program than its own (valgrind, a loader) starts it
// without an execve. The kernel's own loader maps without these calls.
// remap_file_pages, pkey_mprotect, uselib and READ_IMPLIES_EXEC are not in gVisor. A test
// compares the calls of its tables that map memory with those that are known here.

// gated are the calls of a system call table that are replaced, by name.
var gated = map[string]func(*execGate, *kernel.Task, arch.SyscallArguments, call) (uintptr, error){
	"mmap": (*execGate).mmap, "mprotect": (*execGate).mprotect, "shmat": (*execGate).shmat, "bind": (*execGate).bindSocket,
}

// A call is gVisor's own implementation of a system call, with its arguments.
type call func() (uintptr, *kernel.SyscallControl, error)

// active is the gate of the sandbox. Without one, nothing is decided.
var active atomic.Pointer[execGate]

func init() {
	for _, table := range []*kernel.SyscallTable{syscalls.AMD64, syscalls.ARM64} {
		for number, entry := range table.Table {
			decide, ok := gated[entry.Name]
			if change, changes := changing[entry.Name]; changes {
				decide, ok = change.makeCall, true
			}
			if !ok {
				continue
			}
			inner := entry.Fn
			entry.Fn = func(t *kernel.Task, sysno uintptr, args arch.SyscallArguments) (uintptr, *kernel.SyscallControl,
				error) {
				own := func() (uintptr, *kernel.SyscallControl, error) { return inner(t, sysno, args) }
				g := active.Load()
				if g == nil || g.init(t) {
					return own()
				}
				result, err := decide(g, t, args, own)
				return result, nil, err
			}
			table.Table[number] = entry
		}
		table.Init()
	}
}

// checkCalls checks that every call of gated is in the tables of this gVisor version.
func checkCalls() error {
	for _, table := range []*kernel.SyscallTable{syscalls.AMD64, syscalls.ARM64} {
		for name := range gated {
			if _, err := table.LookupNo(name); err != nil {
				return errLayout
			}
		}
		for _, name := range []string{"openat", "openat2", "renameat2", "linkat", "symlinkat", "mkdirat", "unlinkat",
			"truncate"} {
			if _, err := table.LookupNo(name); err != nil || changing[name].Name == "" {
				return errLayout
			}
		}
	}
	return nil
}

func (g *execGate) mmap(t *kernel.Task, args arch.SyscallArguments, own call) (uintptr, error) {
	flags := args[3].Int()
	private, shared := flags&linux.MAP_PRIVATE != 0, flags&linux.MAP_SHARED != 0
	if flags&linux.MAP_ANONYMOUS != 0 || private == shared { // which is invalid
		address, _, err := own()
		return address, err
	}
	file := t.GetFile(args[4].Int())
	if file == nil {
		return 0, linuxerr.EBADF
	}
	defer file.DecRef(t)
	opts, err := mappingOptions(t, file, args, private)
	if err != nil {
		return 0, err
	}
	defer func() {
		if opts.MappingIdentity != nil {
			opts.MappingIdentity.DecRef(t)
		}
	}()
	if err := g.admitMapping(t, &opts, file); err != nil {
		return 0, err
	}
	address, err := t.MemoryManager().MMap(t, opts)
	return uintptr(address), err
}

// mappingOptions returns how a call of mmap maps file, as gVisor's own mmap does.
func mappingOptions(
	t *kernel.Task, file *vfs.FileDescription, args arch.SyscallArguments, private bool,
) (memmap.MMapOpts, error) {
	prot, flags := args[2].Int(), args[3].Int()
	fixed, keep := flags&linux.MAP_FIXED != 0, flags&linux.MAP_FIXED_NOREPLACE != 0
	opts := memmap.MMapOpts{
		Addr: args[0].Pointer(), Length: args[1].Uint64(), Offset: args[5].Uint64(),
		Fixed: fixed || keep, Unmap: fixed && !keep, NoReplace: keep, Map32Bit: flags&linux.MAP_32BIT != 0,
		Private: private, Perms: accessOf(prot), MaxPerms: hostarch.AnyAccess,
		GrowsDown: flags&linux.MAP_GROWSDOWN != 0, Stack: flags&linux.MAP_STACK != 0,
	}
	if flags&linux.MAP_POPULATE != 0 {
		opts.PlatformEffect = memmap.PlatformEffectCommit
	}
	if flags&linux.MAP_LOCKED != 0 {
		opts.MLockMode = memmap.MLockEager
	}
	if !file.IsReadable() {
		return opts, linuxerr.EACCES
	}
	if !private {
		sealed, err := tmpfs.GetSeals(file)
		sealed &= linux.F_SEAL_WRITE
		if err == nil && sealed != 0 && opts.Perms.Write {
			return opts, linuxerr.EPERM
		}
		opts.MaxPerms.Write = file.IsWritable() && (err != nil || sealed == 0)
	}
	if file.Mount().MountFlags()&linux.ST_NOEXEC != 0 {
		if opts.Perms.Execute {
			return opts, linuxerr.EPERM
		}
		opts.MaxPerms.Execute = false
	}
	return opts, file.ConfigureMMap(t, &opts)
}

func accessOf(prot int32) hostarch.AccessType {
	return hostarch.AccessType{Read: prot&linux.PROT_READ != 0, Write: prot&linux.PROT_WRITE != 0,
		Execute: prot&linux.PROT_EXEC != 0}
}

// admitMapping decides about a mapping of file that is executable, and lets no other become so.
func (g *execGate) admitMapping(t *kernel.Task, opts *memmap.MMapOpts, file *vfs.FileDescription) error {
	switch {
	case opts.Mappable == nil, opts.MappingIdentity != file && isZero(t, file): // memory without a file
	case g.isReadOnlyMount(t, file.Mount()) && !g.isOtherProgram(t, file):
	case opts.Perms.Execute:
		if !g.mayLoad(t, file) {
			return linuxerr.EACCES
		}
		fallthrough
	default:
		opts.MaxPerms.Execute = opts.MaxPerms.Execute && opts.Perms.Execute
		if !opts.Private && opts.MaxPerms.Write {
			return g.noteSharedWrite(t, file)
		}
	}
	return nil
}

// isOtherProgram reports whether file, of the read-only root, is a program, and not the one that t runs.
func (g *execGate) isOtherProgram(t *kernel.Task, file *vfs.FileDescription) bool {
	g.files.Lock()
	program, known := g.programs[file.Dentry()]
	g.files.Unlock()
	if !known {
		program = elf.Read(readerAt{t, file}).IsProgram()
		g.files.Lock()
		if len(g.programs) >= maxDigests {
			clear(g.programs)
		}
		g.programs[file.Dentry()] = program
		g.files.Unlock()
	}
	if !program {
		return false
	}
	own := programFile(t)
	if own == nil {
		return true
	}
	defer own.DecRef(t)
	return own.Dentry() != file.Dentry()
}

// isZero reports whether file is /dev/zero.
func isZero(t *kernel.Task, file *vfs.FileDescription) bool {
	st, err := file.Stat(t, vfs.StatOptions{Mask: linux.STATX_BASIC_STATS})
	return err == nil && st.Mode&linux.S_IFMT == linux.S_IFCHR && st.RdevMajor == linux.MEM_MAJOR &&
		st.RdevMinor == zeroMinor
}

const zeroMinor = 5 // of /dev/zero

// shmat attaches a segment, as gVisor's own shmat does.
func (g *execGate) shmat(t *kernel.Task, args arch.SyscallArguments, _ call) (uintptr, error) {
	segment := t.IPCNamespace().ShmRegistry().FindByID(ipc.ID(args[0].Int()))
	if segment == nil {
		return 0, linuxerr.EINVAL
	}
	defer segment.DecRef(t)
	flags := args[2].Int()
	opts, err := segment.ConfigureAttach(t, args[1].Pointer(), shm.AttachOpts{
		Execute: flags&linux.SHM_EXEC != 0, Readonly: flags&linux.SHM_RDONLY != 0, Remap: flags&linux.SHM_REMAP != 0,
	})
	if err != nil {
		return 0, err
	}
	if opts.Perms.Execute && !g.mayLoad(t, segment) {
		return 0, linuxerr.EACCES
	}
	opts.MaxPerms.Execute = opts.Perms.Execute
	address, err := t.MemoryManager().MMap(t, opts)
	return uintptr(address), err
}

func (g *execGate) mprotect(t *kernel.Task, args arch.SyscallArguments, own call) (uintptr, error) {
	result, _, err := own()
	if args[2].Int()&linux.PROT_EXEC == 0 || !linuxerr.Equals(linuxerr.EACCES, err) {
		return result, err
	}
	start := hostarch.UntaggedUserAddr(args[0].Pointer())
	end, ok := hostarch.Addr(args[1].Uint64()).RoundUp()
	if !ok {
		return 0, err
	}
	area, ok := start.ToRange(uint64(end))
	if !ok {
		return 0, err
	}
	files := filesWithoutExecute(t, area)
	defer func() {
		for _, file := range files {
			file.DecRef(t)
		}
	}()
	for _, file := range files {
		if !g.mayLoad(t, file) {
			return 0, linuxerr.EACCES
		}
		allowExecute(t, area, file)
	}
	result, _, err = own()
	return result, err
}

// mayLoad decides whether t may map file as code.
func (g *execGate) mayLoad(t *kernel.Task, file memmap.MappingIdentity) bool {
	e := &wire.Exec{}
	e.Generation, e.Unverified = g.lineages.memberOf(t.ThreadGroup()).number, g.hasOwnFileTree(t)
	loaded, err := g.describeMapped(t, file, e.Unverified)
	loaded.Loaded = true
	if e.Files = []wire.File{loaded}; err == nil && g.isAllowed(e) && !g.lineages.hasEnded(t.ThreadGroup()) {
		return true
	}
	e = g.newQuestion(t)
	e.Files = []wire.File{loaded}
	g.noteFault(t, e, err, loaded.Path)
	return g.askSupervisor(t, e)
}

// describeMapped returns what is known of the file of a mapping.
func (g *execGate) describeMapped(t *kernel.Task, file memmap.MappingIdentity, away bool) (wire.File, error) {
	f, ok := file.(*vfs.FileDescription)
	if !ok { // a segment of shared memory has no file, and no content that could be read here
		return wire.File{Path: wire.Truncate(file.MappedName(t), wire.MaxPath), Layer: wire.LayerMemory}, nil
	}
	if f.Mount().MountFlags()&linux.ST_NOEXEC != 0 {
		return wire.File{Path: wire.Truncate(f.MappedName(t), wire.MaxPath)},
			errors.New("its file system has no programs")
	}
	return g.describeFile(t, f, away)
}
