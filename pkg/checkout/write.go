// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"bytes"
	"context"
	"io"
	"os"
	"path"
	"strings"
)

// Write writes the whole tree of a commit to dir, which must not exist yet, and
// whose parent must. It writes files (0644 or 0755), symlinks that stay in the
// tree, and an empty folder for each submodule, byte for byte as in the objects.
//
// Limits are checked before the first file is written. After an error dir is gone.
func (s *Store) Write(ctx context.Context, sha, dir string) (Tree, error) {
	return s.WriteUnder(ctx, sha, "", dir)
}

// WriteUnder writes one folder of a commit, its content directly in dir. A folder
// that the commit does not have is a *NotFound. Symlinks that lead out of the folder
// are left out, so a caller that needs all of it must look at Tree.Left.
func (s *Store) WriteUnder(ctx context.Context, sha, under, dir string) (Tree, error) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.Wall)
	defer cancel()
	if err := checkPath(under); err != nil {
		return Tree{}, err
	}
	o, err := s.objects(ctx)
	if err != nil {
		return Tree{}, err
	}
	defer o.close()
	id, err := o.commit(ctx, sha)
	if err != nil {
		return Tree{}, err
	}
	at, err := o.find(ctx, sha, id, under)
	if err != nil {
		return Tree{}, err
	}
	if at.kind != folder {
		return Tree{}, stop(CodeTree, "", nil, "%q is not a folder in commit %s", cut(under), sha)
	}
	return s.write(ctx, o, Tree{SHA: sha, ID: at.id}, dir)
}

// checkPath refuses what is not a plain path below the root; "" is the root.
func checkPath(p string) error {
	if p == "" {
		return nil
	}
	if path.Clean(p) != p || path.IsAbs(p) || p == "." || p == ".." || strings.HasPrefix(p, "../") || badName(p) {
		return stop(CodeTree, "give a path below the repository's root, without dots", nil, "invalid path %q", cut(p))
	}
	return nil
}

func (s *Store) write(ctx context.Context, o *objects, tree Tree, dir string) (_ Tree, err error) {
	p, err := s.plan(ctx, o, tree.ID)
	if err != nil {
		return Tree{}, err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return Tree{}, stop(CodeWrite, "", err, "cannot make the folder for the commit")
	}
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
		}
	}()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Tree{}, stop(CodeWrite, "", err, "cannot open the folder for the commit")
	}
	defer root.Close()
	if err := root.Chmod(".", 0o755); err != nil {
		return Tree{}, stop(CodeWrite, "", err, "cannot open the folder for others to read")
	}
	w := writer{root: root, made: map[string]bool{".": true}, tree: tree, exact: map[os.FileMode]bool{}, buffer: make([]byte, 1<<16)}
	if w.in, err = root.OpenRoot("."); err != nil {
		return Tree{}, stop(CodeWrite, "", err, "cannot open the folder for the commit")
	}
	w.inPath = "."
	defer func() { w.in.Close() }()
	if err := w.all(ctx, o, p); err != nil {
		return Tree{}, asStop(err, CodeWrite, "cannot write the commit")
	}
	return w.tree, nil
}

// A writer writes nodes below a root.
type writer struct {
	root *os.Root
	made map[string]bool // folders
	tree Tree

	exact  map[os.FileMode]bool // modes that need no care
	buffer []byte
	in     *os.Root // the folder of the last file
	inPath string
}

// all writes files first and links last, so that no file is written while there is
// a link that it could go through.
func (w *writer) all(ctx context.Context, o *objects, p plan) error {
	var files []node
	var ids []string
	for _, n := range p.nodes {
		if n.kind == file && !n.left.absent() {
			files, ids = append(files, n), append(ids, n.id)
		}
	}
	pointers := map[string]bool{}
	err := o.each(ctx, "blob", int64(1)<<62, ids, func(i int, size int64, r io.Reader) error {
		pointer, err := w.file(files[i], size, r)
		if pointer {
			pointers[files[i].path] = true
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, n := range p.nodes {
		if err := w.rest(n, p.targets[n.id]); err != nil {
			return err
		}
		w.tell(n, p.targets[n.id], pointers[n.path])
	}
	return nil
}

// rest writes what is not a file.
func (w *writer) rest(n node, target string) error {
	switch {
	case n.left.absent():
		return nil
	case n.kind == submodule:
		return w.folder(n.path)
	case n.kind == link:
		if err := w.folder(path.Dir(n.path)); err != nil {
			return err
		}
		w.tree.Symlinks++
		return w.root.Symlink(target, n.path)
	}
	return nil
}

// tell names in Left what is not as the commit has it.
func (w *writer) tell(n node, target string, pointer bool) {
	switch {
	case n.left == BadLink:
		w.add(n.path, BadLink, "to "+orElse(target, "nothing"))
	case n.left == Collision:
		w.add(n.path, Collision, n.other)
	case n.left != "":
		w.add(n.path, n.left, "")
	}
	if n.kind == submodule && !n.left.absent() {
		w.add(n.path, Submodule, "at "+n.id)
	}
	if pointer {
		w.add(n.path, LargeFile, "")
	}
}

func (w *writer) add(path string, why Why, detail string) {
	w.tree.Left = append(w.tree.Left, Left{Path: path, Why: why, Detail: detail})
}

// folder makes a folder and those above it. Modes are set once more, because the
// process's umask may have taken away what the sandbox's user needs.
func (w *writer) folder(p string) error {
	if w.made[p] {
		return nil
	}
	if err := w.folder(path.Dir(p)); err != nil {
		return err
	}
	w.made[p] = true
	if err := w.root.Mkdir(p, 0o755); err != nil {
		return err
	}
	return w.root.Chmod(p, 0o755)
}

// enter makes the folder the one that files are written to. They come folder by
// folder, so a file's whole path need not be gone for each.
func (w *writer) enter(p string) error {
	if p == w.inPath {
		return nil
	}
	if err := w.folder(p); err != nil {
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

// file writes one file and says whether it is a Git LFS pointer.
func (w *writer) file(n node, size int64, r io.Reader) (pointer bool, err error) {
	if err := w.enter(path.Dir(n.path)); err != nil {
		return false, err
	}
	mode := os.FileMode(0o644)
	if n.exec {
		mode = 0o755
	}
	f, err := w.in.OpenFile(n.name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return false, err
	}
	defer func() {
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
	}()
	if err := w.mode(f, mode); err != nil {
		return false, err
	}
	var head bytes.Buffer
	if size <= maxPointer {
		r = io.TeeReader(r, &head)
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{f}, r, w.buffer); err != nil { // one buffer for all
		return false, err
	}
	w.tree.Files++
	w.tree.Bytes += size
	return isPointer(head.Bytes()), nil
}

// mode sets what the umask may have taken away. When it took nothing from the first
// file of a mode, it takes nothing from the others.
func (w *writer) mode(f *os.File, mode os.FileMode) error {
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

// maxPointer is how large a Git LFS pointer file may be, by its specification.
const maxPointer = 1024

func isPointer(content []byte) bool {
	for _, first := range []string{"version https://git-lfs.github.com/spec/", "version https://hawser.github.com/spec/"} {
		if bytes.HasPrefix(content, []byte(first)) {
			return bytes.Contains(content, []byte("\noid "))
		}
	}
	return false
}
