// SPDX-License-Identifier: Apache-2.0

package sentry

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"path"
	"strings"

	"gvisor.dev/gvisor/pkg/abi/linux"
	"gvisor.dev/gvisor/pkg/fspath"
	"gvisor.dev/gvisor/pkg/sentry/fsimpl/erofs"
	"gvisor.dev/gvisor/pkg/sentry/fsimpl/gofer"
	"gvisor.dev/gvisor/pkg/sentry/fsimpl/overlay"
	"gvisor.dev/gvisor/pkg/sentry/fsimpl/tmpfs"
	"gvisor.dev/gvisor/pkg/sentry/kernel"
	"gvisor.dev/gvisor/pkg/sentry/vfs"
	"gvisor.dev/gvisor/pkg/usermem"

	"github.com/fumehood/fumehood/internal/kit/elf"
	"github.com/fumehood/fumehood/internal/kit/pathwalk"
	"github.com/fumehood/fumehood/internal/watch/monitor/wire"
)

// private is the sandbox's own part of the root; nothing in it may be executed.
const private = "/.fumehood/private/"

// maxProgram is how much of a program that can change is read at each exec, in bytes.
const maxProgram = 1 << 30

// A fileKey identifies the content of a file. Every write gives the file a new time of change,
// which no process can set, except for writes through a mapping: see execGate.noteSharedWrite.
type fileKey struct {
	inode
	size     uint64
	changed  linux.StatxTimestamp
	modified linux.StatxTimestamp
}

// An inode identifies a file, whatever its content is.
type inode struct {
	fs    *vfs.Filesystem
	major uint32
	minor uint32
	ino   uint64
}

func inodeOf(f *vfs.FileDescription, st *linux.Statx) inode {
	return inode{f.Mount().Filesystem(), st.DevMajor, st.DevMinor, st.Ino}
}

// noteSharedWrite records that file can be written through a mapping from now on, so that its content
// must be read whenever it matters, and a listing has it as one that may have changed.
func (g *execGate) noteSharedWrite(t *kernel.Task, file *vfs.FileDescription) error {
	st, err := file.Stat(t, vfs.StatOptions{Mask: linux.STATX_BASIC_STATS})
	if err != nil {
		return err
	}
	if file.Mount().Filesystem().FilesystemType().Name() == overlay.Name {
		g.mapped.add(st.Ino)
	}
	g.files.Lock()
	defer g.files.Unlock()
	if len(g.shared) < maxDigests {
		g.shared[inodeOf(file, &st)] = true
	}
	return nil
}

// isKeyed reports whether the content of a file on layer is what key says. Without a place in
// g.shared for it, none is that can be written to.
func (g *execGate) isKeyed(layer wire.FileLayer, key fileKey) bool {
	switch layer {
	case wire.LayerRootfs, wire.LayerWorkspace:
		return true
	case wire.LayerWritten, wire.LayerMemory:
		return !g.sharedBefore && len(g.shared) < maxDigests && !g.shared[key.inode]
	}
	return false
}

// interpreterChain returns the files that an execve of f starts: f itself, and if it is a script
// its interpreter, and so on. If the loader of the last one is not on the read-only root,
// it follows.
func (g *execGate) interpreterChain(t *kernel.Task, f *vfs.FileDescription, away bool) ([]wire.File, error) {
	file, err := g.describeFile(t, f, away)
	if err != nil {
		return nil, err
	}
	files := []wire.File{file}
	line, err := parseScriptLine(t, f)
	for err == nil && line.name != "" {
		if len(files) == wire.MaxScripts {
			return nil, errors.New("too many scripts")
		}
		if file, line, err = g.openInterpreter(t, line, away); err == nil {
			files = append(files, file)
		}
	}
	if loader := file.ELF.Interpreter; err == nil && loader != "" && (away || !g.isStablePath(t, loader)) {
		if len(loader) == elf.MaxText {
			return files, errors.New("the path of its loader is too long")
		}
		if file, _, err = g.openInterpreter(t, loaderLine(loader), away); err == nil {
			file.Loaded = true
			files = append(files, file)
		}
	}
	return files, err
}

// A scriptLine is the first line of a script. The zero line means that the file is not a
// script.
type scriptLine struct{ name, arg string }

// loaderLine returns the line of a script whose interpreter is loader.
func loaderLine(loader string) scriptLine { return scriptLine{name: loader} }

// openInterpreter opens the interpreter of a script as the kernel did, and returns it and
// its own first line.
func (g *execGate) openInterpreter(t *kernel.Task, by scriptLine, away bool) (wire.File, scriptLine, error) {
	root := t.FSContext().RootDirectory()
	defer root.DecRef(t)
	wd := t.FSContext().WorkingDirectory()
	defer wd.DecRef(t)
	at := vfs.PathOperation{Root: root, Start: wd, Path: fspath.Parse(by.name), FollowFinalSymlink: true}
	if at.Path.Absolute {
		at.Start = root
	}
	f, err := t.Kernel().VFS().OpenAt(t, t.Credentials(), &at, &vfs.OpenOptions{Flags: linux.O_RDONLY, FileExec: true})
	if err != nil {
		return wire.File{}, scriptLine{}, err
	}
	defer f.DecRef(t)
	file, err := g.describeFile(t, f, away)
	if err != nil {
		return file, scriptLine{}, err
	}
	if file.Layer == wire.LayerRootfs && !g.isStablePath(t, by.name) {
		file.Layer = wire.LayerWritten
	}
	file.Named, file.Arg = by.name, by.arg
	next, err := parseScriptLine(t, f)
	return file, next, err
}

// parseScriptLine returns the text after "#!" in f, parsed as gVisor's loader parses it.
func parseScriptLine(t *kernel.Task, f *vfs.FileDescription) (scriptLine, error) {
	var b [127]byte
	n, err := f.ReadFull(t, usermem.BytesIOSequence(b[:]), 0)
	if err != nil && err != io.ErrUnexpectedEOF {
		return scriptLine{}, err
	}
	rest, script := bytes.CutPrefix(b[:n], []byte("#!"))
	if !script {
		return scriptLine{}, nil
	}
	rest, _, _ = bytes.Cut(rest, []byte("\n"))
	rest = bytes.TrimLeft(rest, " \t")
	name, arg := rest, []byte(nil)
	if i := bytes.IndexAny(rest, " \t"); i >= 0 {
		name, arg = rest[:i], bytes.TrimLeft(rest[i:], " \t")
	}
	if len(name) == 0 {
		return scriptLine{}, errors.New("script without interpreter")
	}
	return scriptLine{string(name), string(arg)}, nil
}

func (g *execGate) describeFile(t *kernel.Task, f *vfs.FileDescription, away bool) (wire.File, error) {
	st, err := f.Stat(t, vfs.StatOptions{Mask: linux.STATX_BASIC_STATS})
	if err != nil {
		return wire.File{}, err
	}
	file := wire.File{Path: wire.Truncate(f.MappedName(t), wire.MaxPath), Size: st.Size}
	file.Layer = g.layerOf(t, f, &st, file.Path, away)
	key := fileKey{inodeOf(f, &st), st.Size, st.Ctime, st.Mtime}
	g.files.Lock()
	known, ok := g.contents[key]
	ok = ok && g.isKeyed(file.Layer, key)
	g.files.Unlock()
	if ok {
		file.Digest, file.ELF = known.digest, known.elf
		return file, nil
	}
	if file.Digest, file.ELF, err = readContent(t, f); err != nil {
		return file, err
	}
	if again := g.layerOf(t, f, &st, file.Path, away); again != file.Layer {
		file.Layer = again // it was changed while it was read
		return file, nil
	}
	g.files.Lock()
	defer g.files.Unlock()
	if !g.isKeyed(file.Layer, key) {
		return file, nil
	}
	if len(g.contents) >= maxDigests {
		clear(g.contents)
	}
	g.contents[key] = read{file.Digest, file.ELF}
	return file, nil
}

// A read is the result of reading a file.
type read struct {
	digest [32]byte
	elf    elf.Facts
}

// readContent reads f. If another process changes the file meanwhile, the facts and the
// digest may be from different versions; such a file can only be run where policy
// allows files that processes can write.
func readContent(t *kernel.Task, f *vfs.FileDescription) (sum [32]byte, facts elf.Facts, err error) {
	if sum, err = digestFile(t, f); err != nil {
		return sum, facts, err
	}
	return sum, elf.Read(readerAt{t, f}), nil
}

// A readerAt reads a file as its task does.
type readerAt struct {
	t *kernel.Task
	f *vfs.FileDescription
}

// ReadAt implements io.ReaderAt.
func (r readerAt) ReadAt(p []byte, off int64) (int, error) {
	for n := 0; ; {
		more, err := r.f.PRead(r.t, usermem.BytesIOSequence(p[n:]), off+int64(n), vfs.ReadOptions{})
		switch n += int(more); {
		case n == len(p):
			return n, nil
		case err != nil:
			return n, err
		case more == 0:
			return n, io.EOF
		}
	}
}

func digestFile(t *kernel.Task, f *vfs.FileDescription) (sum [32]byte, err error) {
	hash, buf := sha256.New(), make([]byte, 256<<10)
	for at := int64(0); ; {
		n, err := f.PRead(t, usermem.BytesIOSequence(buf), at, vfs.ReadOptions{})
		hash.Write(buf[:n])
		at += n
		switch {
		case err == io.EOF || err == nil && n == 0:
			return [32]byte(hash.Sum(nil)), nil
		case err != nil:
			return sum, err
		case at > maxProgram:
			return sum, errors.New("program is too large")
		}
	}
}

// layerOf returns the layer that f is on. away means that the task has its own mounts.
func (g *execGate) layerOf(
	t *kernel.Task, f *vfs.FileDescription, st *linux.Statx, name string, away bool,
) wire.FileLayer {
	fs := f.Mount().Filesystem()
	switch {
	case tmpfs.IsMemfd(f) || st.Nlink == 0:
		return wire.LayerMemory
	case away || strings.HasPrefix(name, private):
		return wire.LayerOther
	case g.isReadOnlyMount(t, f.Mount()):
		return wire.LayerRootfs
	case fs.FilesystemType().Name() == tmpfs.Name || g.pod != nil && fs.FilesystemType().Name() == gofer.Name:
		return wire.LayerWritten
	case fs.FilesystemType().Name() != overlay.Name || !g.isInitOverlay(t, fs):
		return wire.LayerOther
	case overlay.IsCopiedUp(f.Dentry()):
		return wire.LayerWritten
	case overlay.IsOnLower(f.Dentry()):
		return wire.LayerWorkspace
	}
	return wire.LayerOther
}

// isReadOnlyMount reports whether nothing on m can change: it is a read-only view of the host's
// files. The sandbox's configuration ensures that the gofer serves them read-only too. In a pod
// that is only so for the root: what one container sees read-only another may write to.
func (g *execGate) isReadOnlyMount(t *kernel.Task, m *vfs.Mount) bool {
	if g.pod != nil && !g.pod.isRoot(t, m) {
		return false
	}
	switch m.Filesystem().FilesystemType().Name() {
	case gofer.Name:
		return m.ReadOnly()
	case erofs.Name:
		return true
	}
	return false
}

// isInitOverlay reports whether fs is one of the overlays made by the sandbox's init, and not
// by a command from its own files.
func (g *execGate) isInitOverlay(t *kernel.Task, fs *vfs.Filesystem) bool {
	if g.pod != nil {
		return g.pod.rootFS(t) == fs
	}
	first := t.Kernel().GlobalInit().Leader()
	root := first.FSContext().RootDirectory()
	defer root.DecRef(t)
	for _, tree := range g.trees {
		at := vfs.PathOperation{Root: root, Start: root, Path: fspath.Parse(tree), FollowFinalSymlink: true}
		vd, err := t.Kernel().VFS().GetDentryAt(t, first.Credentials(), &at, &vfs.GetDentryOptions{})
		if err != nil {
			continue
		}
		same := vd.Mount().Filesystem() == fs
		vd.DecRef(t)
		if same {
			return true
		}
	}
	return false
}

// isStablePath reports whether every component of the path name is where nothing can
// change, so that the name always means the same file. It must be called only for
// tasks with the sandbox's own mounts and root.
func (g *execGate) isStablePath(t *kernel.Task, name string) bool {
	key := name
	if g.pod != nil {
		key = t.ContainerID() + "\x00" + name // each has its own files
	}
	g.files.Lock()
	known, ok := g.stable[key]
	g.files.Unlock()
	if ok {
		return known
	}
	found := g.walkStablePath(t, name)
	g.files.Lock()
	defer g.files.Unlock()
	if g.stable == nil || len(g.stable) >= maxDigests {
		g.stable = map[string]bool{}
	}
	if found { // what is not settled may become settled
		g.stable[key] = true
	}
	return found
}

func (g *execGate) walkStablePath(t *kernel.Task, name string) bool {
	if !path.IsAbs(name) {
		return false
	}
	root := t.FSContext().RootDirectory()
	defer root.DecRef(t)
	_, err := pathwalk.Resolve(name, func(step string) (string, error) { return g.readStableLink(t, root, step) })
	return err == nil
}

// readStableLink returns the target if name is a symbolic link. It fails if name is where something can
// change.
func (g *execGate) readStableLink(t *kernel.Task, root vfs.VirtualDentry, name string) (string, error) {
	fsys, creds := t.Kernel().VFS(), t.Credentials()
	at := func() *vfs.PathOperation {
		return &vfs.PathOperation{Root: root, Start: root, Path: fspath.Parse(name)}
	}
	vd, err := fsys.GetDentryAt(t, creds, at(), &vfs.GetDentryOptions{})
	if err != nil {
		return "", err
	}
	defer vd.DecRef(t)
	if !g.isReadOnlyMount(t, vd.Mount()) {
		return "", errChanging
	}
	st, err := fsys.StatAt(t, creds, at(), &vfs.StatOptions{Mask: linux.STATX_TYPE})
	if err != nil || linux.FileMode(st.Mode).FileType() != linux.ModeSymlink {
		return "", err
	}
	return fsys.ReadlinkAt(t, creds, at())
}

var errChanging = errors.New("it can change")
