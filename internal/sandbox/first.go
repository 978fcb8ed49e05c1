// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/kit/elf"
	"github.com/fumehood/fumehood/internal/kit/pathwalk"
	"github.com/fumehood/fumehood/internal/watch/monitor"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// gVisor's kernel does not ask about the first program of a command, because no
// program starts it. If it is clearly a binary of the root file system, it is decided
// here: both its path and its content are known on the host and cannot change.
// Everything else, such as a script or a file of the workspace, goes through guest
// init, which execs it, so that the kernel asks. That costs 6 to 13 ms, and fumehood never
// has to know better than the kernel which file a name means.

var errNotFound = errors.New("executable file not found in $PATH")

// isPlainProgram reports whether the command's first process is a program, not a shell or a
// launcher, and is started without init in between.
func (c *command) isPlainProgram() bool {
	if c.x.Text != "" || c.x.Launches || c.hasLoweredLimits() {
		return false
	}
	_, _, _, err := c.s.o.newReadOnlyRoot().findProgram(c.decidedArgv()[0], c.s.o.Path)
	return err == nil
}

// decideFirstProgram decides the first program and returns what to start.
//
// started must be called with the process's id, or 0 if it could not be started.
func (g *execGate) decideFirstProgram(c *command) (program string, argv []string, started func(int), err error) {
	started = func(int) {}
	if c.hasLoweredLimits() {
		return "", c.argvThroughInit(), started, nil
	}
	if g == nil {
		return "", c.decidedArgv(), started, nil
	}
	asked, inside, host, err := c.s.o.newReadOnlyRoot().findProgram(c.decidedArgv()[0], c.s.o.Path)
	if errors.Is(err, errNotFound) {
		return "", nil, nil, err
	}
	if err != nil {
		return "", c.argvThroughInit(), started, nil
	}
	x, err := c.firstExec(asked, inside, host)
	if err != nil {
		return "", nil, nil, err
	}
	d, started, err := g.monitor.DecideFirst(c.facts, x)
	if err != nil {
		return "", nil, nil, err
	}
	if d.Effect != proposal.Allow {
		return "", nil, nil, fmt.Errorf("%w %q", errRefused, inside)
	}
	return inside, c.decidedArgv(), started, nil
}

// How much of argv an Exec contains, as in package monitor.
const (
	maxWords = 256
	maxWord  = 1024
	maxArgv  = 20 << 10
)

func (c *command) firstExec(asked, inside, host string) (proposal.Exec, error) {
	f, err := c.s.o.newReadOnlyRoot().files.Open(host)
	if err != nil {
		return proposal.Exec{}, err
	}
	defer f.Close()
	digest, err := digestOf(f)
	if err != nil {
		return proposal.Exec{}, err
	}
	facts, err := elfFacts(f)
	if err != nil {
		return proposal.Exec{}, err
	}
	x := proposal.Exec{Command: c.x.ID, Path: inside, Asked: path.Clean(asked), Argv: []string{}, Env: []string{},
		Cwd: c.workingDir(), Digest: digest, ELF: facts,
		Layer: proposal.LayerRootfs, First: true, Same: []string{}, Grants: append([]string{}, c.x.Grant.Exec...)}
	hash, room := sha256.New(), maxArgv
	for i, w := range c.decidedArgv() {
		io.WriteString(hash, w)
		hash.Write([]byte{0})
		if i >= maxWords || room == 0 {
			x.ArgvCut = true
			continue
		}
		kept := w[:min(len(w), maxWord, room)]
		x.Argv, room, x.ArgvCut = append(x.Argv, strings.ToValidUTF8(kept, "\uFFFD")), room-len(kept), x.ArgvCut ||
			len(kept) < len(w)
	}
	x.ArgvDigest = "sha256:" + hex.EncodeToString(hash.Sum(nil))
	return x, nil
}

// elfFacts returns what the kernel would report about a file of the root file system.
func elfFacts(f fs.File) (*proposal.ELF, error) {
	r, ok := f.(io.ReaderAt)
	if !ok {
		return nil, errors.New("not a regular file")
	}
	return monitor.ELFOf(elf.Read(r)), nil
}

// A readOnlyRoot is the read-only part of the sandbox's file tree, as the host sees it.
type readOnlyRoot struct {
	files files // of the sources of binds
	binds []Bind
	links map[string]string
	trees []string // directories that are not part of it
}

func (o Options) newReadOnlyRoot() readOnlyRoot {
	r := readOnlyRoot{files: o.files, binds: o.Binds, links: o.Links,
		trees: []string{"/workspace", "/tmp", "/home", "/proc", "/dev", "/.fumehood"}}
	for _, t := range o.Trees {
		r.trees = append(r.trees, t.Target)
	}
	for _, i := range o.Images {
		r.trees = append(r.trees, i.Target)
	}
	return r
}

// findProgram finds the binary that the kernel would find for a name with this PATH, and the path
// by which it would be asked for. It returns errNotFound if the binary certainly does not exist.
func (r readOnlyRoot) findProgram(name, dirs string) (asked, inside, host string, err error) {
	if strings.Contains(name, "/") {
		inside, host, err = r.resolveBinary(name)
		return name, inside, host, err
	}
	for dir := range strings.SplitSeq(dirs, ":") {
		asked = path.Join(dir, name)
		inside, host, err = r.resolveBinary(asked)
		if !errors.Is(err, errNotFound) {
			return asked, inside, host, err
		}
	}
	return "", "", "", errNotFound
}

// resolveBinary resolves an absolute path to an executable ELF file of the root.
func (r readOnlyRoot) resolveBinary(name string) (inside, host string, err error) {
	if !path.IsAbs(name) {
		return "", "", fmt.Errorf("%q is not absolute", name)
	}
	if inside, host, err = r.resolvePath(name); err != nil {
		return "", "", err
	}
	f, err := r.files.Open(host)
	if err != nil {
		return "", "", err
	}
	defer f.Close()
	var magic [4]byte
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 != 0o111 {
		return "", "", fmt.Errorf("%q is not clearly a program", inside)
	}
	if _, err := io.ReadFull(f, magic[:]); err != nil || string(magic[:]) != "\x7fELF" {
		return "", "", fmt.Errorf("%q is not a binary", inside)
	}
	facts, err := elfFacts(f)
	if err != nil {
		return "", "", err
	}
	if facts != nil && facts.Interpreter != "" {
		if _, _, err := r.resolvePath(facts.Interpreter); err != nil { // so that the kernel asks about it
			return "", "", fmt.Errorf("the loader of %q is not in the root: %v", inside, err)
		}
	}
	return inside, host, nil
}

// resolvePath follows a path through the root as the kernel does.
func (r readOnlyRoot) resolvePath(name string) (inside, host string, err error) {
	inside, err = pathwalk.Resolve(name, func(step string) (target string, err error) {
		host, target, err = r.readLink(step)
		return target, err
	})
	return inside, host, err
}

// readLink returns the host's path of an inside path whose directory is resolved, and the
// target if it is a link.
func (r readOnlyRoot) readLink(name string) (host, target string, err error) {
	if target, ok := r.links[name]; ok {
		return "", target, nil
	}
	for _, tree := range r.trees {
		if isWithinDir(name, tree) {
			return "", "", fmt.Errorf("%q is not part of the root", name)
		}
	}
	best := Bind{}
	for _, b := range r.binds {
		if isWithinDir(name, b.Target) && len(b.Target) > len(best.Target) {
			best = b
		}
		if name != b.Target && isWithinDir(b.Target, name) && best.Target == "" {
			host = "/" // a directory of the skeleton, on the way to a bind
		}
	}
	if best.Target == "" {
		if host == "" {
			return "", "", errNotFound
		}
		return host, "", nil
	}
	host = filepath.Join(best.Source, name[len(best.Target):])
	info, err := r.files.Lstat(host)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return "", "", errNotFound
	}
	if err != nil {
		return "", "", err
	}
	if info.Mode()&os.ModeSymlink != 0 {
		target, err = r.files.ReadLink(host)
	}
	return host, target, err
}

// isWithinDir reports whether name is dir or below it.
func isWithinDir(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// A hostFile identifies a file's content on the host, as long as no process sets the
// clock back, which root could do.
type hostFile struct {
	dev, ino uint64
	size     int64
	mtime    unix.Timespec
	ctime    unix.Timespec
}

var digests sync.Map // hostFile → string

// digestOf returns the digest of a file of the root file system, or of an image.
func digestOf(f fs.File) (string, error) {
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	st := info.Sys().(*syscall.Stat_t)
	key := hostFile{st.Dev, st.Ino, st.Size, unix.Timespec(st.Mtim), unix.Timespec(st.Ctim)}
	if known, ok := digests.Load(key); ok {
		return known.(string), nil
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", err
	}
	sum := "sha256:" + hex.EncodeToString(hash.Sum(nil))
	digests.Store(key, sum)
	return sum, nil
}
