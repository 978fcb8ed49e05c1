// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"bytes"
	"context"
	"io"
	"os"
	"path"
)

// A writer writes nodes below a root.
type writer struct {
	root *os.Root
	made map[string]bool // directories
	tree Tree

	exact  map[os.FileMode]bool // modes that the umask does not affect
	buffer []byte
	in     *os.Root // the directory of the last file
	inPath string
}

// writeAll writes files first and links last, so that no file is written while there is
// a link that it could go through.
func (w *writer) writeAll(ctx context.Context, o *objects, p plan) error {
	var files []node
	var ids []string
	for _, n := range p.nodes {
		if n.kind == file && !n.left.isAbsent() {
			files, ids = append(files, n), append(ids, n.id)
		}
	}
	pointers := map[string]bool{}
	err := o.readEach(ctx, "blob", int64(1)<<62, ids, func(i int, size int64, r io.Reader) error {
		pointer, err := w.writeFile(files[i], size, r)
		if pointer {
			pointers[files[i].path] = true
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, n := range p.nodes {
		if err := w.writeSpecialNode(n, p.targets[n.id]); err != nil {
			return err
		}
		w.recordLeft(n, p.targets[n.id], pointers[n.path])
	}
	return nil
}

// writeSpecialNode writes nodes that are not files.
func (w *writer) writeSpecialNode(n node, target string) error {
	switch {
	case n.left.isAbsent():
		return nil
	case n.kind == submodule:
		return w.makeDir(n.path)
	case n.kind == link:
		if err := w.makeDir(path.Dir(n.path)); err != nil {
			return err
		}
		w.tree.Symlinks++
		return w.root.Symlink(target, n.path)
	}
	return nil
}

// recordLeft adds to Left what is not as the commit has it.
func (w *writer) recordLeft(n node, target string, pointer bool) {
	switch {
	case n.left == BadLink:
		w.addLeft(n.path, BadLink, "to "+orElse(target, "nothing"))
	case n.left == Collision:
		w.addLeft(n.path, Collision, n.other)
	case n.left != "":
		w.addLeft(n.path, n.left, "")
	}
	if n.kind == submodule && !n.left.isAbsent() {
		w.addLeft(n.path, Submodule, "at "+n.id)
	}
	if pointer {
		w.addLeft(n.path, LargeFile, "")
	}
}

func (w *writer) addLeft(path string, why Why, detail string) {
	w.tree.Left = append(w.tree.Left, Left{Path: path, Why: why, Detail: detail})
}

// makeDir makes a directory and its parents. It sets their modes again, because the
// process's umask may have removed permissions that the sandbox's user needs.
func (w *writer) makeDir(p string) error {
	if w.made[p] {
		return nil
	}
	if err := w.makeDir(path.Dir(p)); err != nil {
		return err
	}
	w.made[p] = true
	if err := w.root.Mkdir(p, 0o755); err != nil {
		return err
	}
	return w.root.Chmod(p, 0o755)
}

// enterDirectory opens the directory that files are written to. Files come directory by
// directory, so the whole path need not be resolved for each.
func (w *writer) enterDirectory(p string) error {
	if p == w.inPath {
		return nil
	}
	if err := w.makeDir(p); err != nil {
		return err
	}
	in, err := w.root.OpenRoot(p)
	if err != nil {
		return err
	}
	w.in.Close()
	w.in, w.inPath = in, p
	return nil
}

// writeFile writes one file and reports whether it is a Git LFS pointer.
func (w *writer) writeFile(n node, size int64, r io.Reader) (pointer bool, err error) {
	if err := w.enterDirectory(path.Dir(n.path)); err != nil {
		return false, cannotWrite(n.path, err)
	}
	mode := os.FileMode(0o644)
	if n.exec {
		mode = 0o755
	}
	f, err := w.in.OpenFile(n.name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return false, cannotWrite(n.path, err)
	}
	defer func() {
		if closeErr := f.Close(); err == nil && closeErr != nil {
			err = cannotWrite(n.path, closeErr)
		}
	}()
	if err := w.restoreMode(f, mode); err != nil {
		return false, cannotWrite(n.path, err)
	}
	var head bytes.Buffer
	if size <= maxPointer {
		r = io.TeeReader(r, &head)
	}
	out := &target{file: f}
	if _, err := io.CopyBuffer(out, r, w.buffer); err != nil { // one buffer for all
		if out.err != nil { // a write error, not a read error
			err = cannotWrite(n.path, out.err)
		}
		return false, err
	}
	w.tree.Files++
	w.tree.Bytes += size
	return isPointer(head.Bytes()), nil
}

// A target is a file that remembers its first write error.
type target struct {
	file *os.File
	err  error
}

func (t *target) Write(p []byte) (int, error) {
	n, err := t.file.Write(p)
	t.err = err
	return n, err
}

func cannotWrite(path string, err error) error {
	return newStopError(CodeWrite, "", err, "cannot write %q", cutOutput(path))
}

// restoreMode restores the permissions that the umask removed. If it removed none from the
// first file of a mode, it removes none from the others.
func (w *writer) restoreMode(f *os.File, mode os.FileMode) error {
	if w.exact[mode] {
		return nil
	}
	info, err := f.Stat()
	if err == nil && info.Mode() == mode {
		w.exact[mode] = true
		return nil
	}
	return f.Chmod(mode)
}

// maxPointer is the maximum size of a Git LFS pointer file, by its specification.
const maxPointer = 1024

func isPointer(content []byte) bool {
	for _, first := range []string{"version https://git-lfs.github.com/spec/",
		"version https://hawser.github.com/spec/"} {
		if bytes.HasPrefix(content, []byte(first)) {
			return bytes.Contains(content, []byte("\noid "))
		}
	}
	return false
}
