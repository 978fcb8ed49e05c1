// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// Branches are the names of a pull request's two branches. They are untrusted: a name
// that cannot be used is left out. The zero value names none.
type Branches struct{ Head, Base string }

// WriteRepository creates a .git in dir, which Write made from head, so that git log,
// git diff and git status work there. It holds the objects of the store, an index, and
// these refs: HEAD at head, on the branch b.Head if that name can be used; and, unless
// base is "", refs/remotes/origin/base, refs/remotes/origin/NAME and refs/heads/NAME at
// base, where NAME is b.Base. It has the history that the store has, no remote, no
// credential, no hook, and only the settings that define its storage format.
//
// Paths that Write left out, and files that Extras put in the place of a pointer, are marked
// in the index as not checked out, so that git status does not report them.
func (s *Store) WriteRepository(ctx context.Context, dir, head, base string, b Branches) error {
	ctx, cancel := context.WithTimeout(ctx, s.limits.Wall)
	defer cancel()
	index, err := s.makeIndex(ctx, head)
	if err != nil {
		return err
	}
	defer os.RemoveAll(filepath.Dir(index))
	shallow, err := s.listShallow(ctx, head, base)
	if err != nil {
		return err
	}
	return s.writeGitDir(dir, index, shallow, b.refFiles(head, base))
}

// writeGitDir writes what WriteRepository promises, or nothing; refs are files and their content.
func (s *Store) writeGitDir(dir, index, shallow string, refs map[string]string) (err error) {
	work, err := os.OpenRoot(dir)
	if err != nil {
		return newStopError(CodeWrite, "", err, "cannot open the directory of the commit")
	}
	defer work.Close()
	if err := work.Mkdir(".git", 0o755); err != nil { // also fails if there is one already
		return newStopError(CodeWrite, "", err, "cannot make .git")
	}
	defer func() {
		if err != nil {
			work.RemoveAll(".git")
		}
	}()
	root, err := work.OpenRoot(".git")
	if err != nil {
		return newStopError(CodeWrite, "", err, "cannot open .git")
	}
	defer root.Close()
	return asStop(s.fillGitDir(root, index, shallow, refs), CodeWrite, "cannot write .git")
}

// makeIndex makes the index in the store, where git has no work tree to read.
func (s *Store) makeIndex(ctx context.Context, head string) (path string, err error) {
	o, tree, err := s.treeOf(ctx, head)
	if err != nil {
		return "", err
	}
	defer o.close()
	plan, err := o.planTree(ctx, tree, s.limits)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(s.dir, "index-")
	if err != nil {
		return "", newStopError(CodeWrite, "", err, "cannot make the index")
	}
	path = filepath.Join(dir, "index")
	env := []string{"GIT_INDEX_FILE=" + path}
	// Names that only NTFS objects to are needed in the index, to be marked.
	anyName := []string{"--git-dir=" + s.bare, "-c", "core.protectNTFS=false", "-c", "core.protectHFS=false"}
	if _, err := s.git.command(ctx, env, append(anyName, "read-tree", tree)...).output(4096); err != nil {
		return "", stopOrContextError(ctx, err)
	}
	var absent strings.Builder
	for _, n := range plan.nodes {
		if (n.left.isAbsent() || s.hidden.Match(n.path)) && n.kind != folder {
			absent.WriteString(n.path + "\x00")
		}
	}
	for _, path := range s.replaced {
		absent.WriteString(path + "\x00")
	}
	if absent.Len() == 0 {
		return path, nil
	}
	empty := filepath.Join(dir, "empty") // update-index needs a work tree, though it reads nothing in it
	if err := os.Mkdir(empty, 0o700); err != nil {
		return "", newStopError(CodeWrite, "", err, "cannot make the index")
	}
	c := s.git.command(ctx, env, append(anyName, "--work-tree="+empty, "update-index", "-z", "--skip-worktree",
		"--stdin")...)
	c.Stdin = strings.NewReader(absent.String())
	_, err = c.output(4096)
	return path, stopOrContextError(ctx, err)
}

// listShallow lists the commits whose parents the store does not have, where history
// ends. If base is a parent of head, history goes on to base.
func (s *Store) listShallow(ctx context.Context, head, base string) (string, error) {
	o, err := s.openObjects(ctx)
	if err != nil {
		return "", err
	}
	defer o.close()
	todo, seen, list := []string{head}, map[string]bool{}, ""
	if base != "" {
		todo = append(todo, base)
	}
	for len(todo) > 0 {
		sha := todo[0]
		if todo = todo[1:]; seen[sha] {
			continue
		}
		seen[sha] = true
		_, parents, err := o.readTreeAndParents(ctx, sha)
		if err != nil {
			return "", err
		}
		missing := false
		err = o.readSizes(ctx, parents,
			func(_ int, kind string, _ int64) error { missing = missing || kind == ""; return nil })
		if err != nil {
			return "", err
		}
		if missing {
			list += sha + "\n"
		} else {
			todo = append(todo, parents...)
		}
	}
	return list, nil
}

// refFiles returns the content of the files that are refs. A name that is taken, or is a
// directory of another, is left out.
func (b Branches) refFiles(head, base string) map[string]string {
	refs := map[string]string{"HEAD": head + "\n"}
	add := func(name, content string) bool {
		if !plainRef(name) || strings.Contains(name, "/-") { // a name that git would read as an option
			return false
		}
		for other := range refs {
			if other == name || strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/") {
				return false
			}
		}
		refs[name] = content + "\n"
		return true
	}
	if base != "" {
		add("refs/remotes/origin/base", base)
		if b.Base != "" {
			add("refs/remotes/origin/"+b.Base, base)
			add("refs/heads/"+b.Base, base)
		}
	}
	if b.Head != "" && add("refs/heads/"+b.Head, head) {
		refs["HEAD"] = "ref: refs/heads/" + b.Head + "\n"
	}
	return refs
}

// fillGitDir fills what writeGitDir has made.
func (s *Store) fillGitDir(root *os.Root, index, shallow string, refs map[string]string) error {
	config := formatConfig(s.digits, false) +
		"[advice]\n\tdetachedHead = false\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"
	files := map[string]string{"config": config}
	if s.hidden != nil {
		files["config"] += "[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = false\n[extensions]\n\tpartialClone = " +
			hiddenRemote + "\n"
		files["info/sparse-checkout"] = s.hidden.sparsePatterns()
	}
	if shallow != "" {
		files["shallow"] = shallow
	}
	maps.Copy(files, refs)
	for _, directory := range []string{"objects/pack", "refs/heads"} {
		if err := root.MkdirAll(directory, 0o755); err != nil {
			return err
		}
	}
	for name, content := range files {
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := root.WriteFile(name, []byte(content), 0o644); err != nil {
			return err
		}
	}
	if err := copyFile(root, index, "index"); err != nil {
		return err
	}
	if err := s.copyPacks(root); err != nil {
		return err
	}
	return restorePermissions(root)
}

// copyPacks copies rather than links, so that a change in one copy does not change
// the other.
func (s *Store) copyPacks(root *os.Root) error {
	for _, pattern := range []string{"*.pack", "*.idx", "*.rev", "*.promisor"} {
		packs, err := filepath.Glob(filepath.Join(s.bare, "objects/pack", pattern))
		if err != nil {
			return err
		}
		for _, pack := range packs {
			if err := copyFile(root, pack, "objects/pack/"+filepath.Base(pack)); err != nil {
				return err
			}
		}
	}
	return nil
}

func copyFile(root *os.Root, from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := root.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// restorePermissions restores the permissions that the process's umask removed: the sandbox's
// user is a different one.
func restorePermissions(root *os.Root) error {
	return fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return root.Chmod(path, 0o755)
		}
		return root.Chmod(path, 0o644)
	})
}
