// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// A Local reads commits of a repository on this machine through a separate store
// that borrows its objects. So the repository's configuration, hooks, replaced
// objects and grafts have no effect, and missing objects are not fetched.
type Local struct {
	git    git
	own    *os.Root // the work tree's git directory, with HEAD
	common *os.Root // with refs and objects; differs from own only in a linked worktree
	bare   string
	digits int
	top    string // the directory with the work tree
}

// CodeLocal is the code for a repository, or a name in it, that cannot be used.
const CodeLocal = "checkout.local"

const maxRefs = 64 << 20 // bytes of packed-refs

// OpenLocal opens the repository that contains dir.
func OpenLocal(ctx context.Context, dir string) (*Local, error) {
	top, folder, err := gitDirAround(dir)
	if err != nil {
		return nil, err
	}
	l := &Local{top: top}
	if l.git, err = findGit(ctx); err != nil {
		return nil, err
	}
	if l.own, err = os.OpenRoot(folder); err != nil {
		return nil, newStopError(CodeLocal, "make it readable", err, "cannot open the repository %q", cutOutput(folder))
	}
	if err := l.openCommonDir(folder); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func (l *Local) openCommonDir(folder string) error {
	if line, err := readRef(l.own, "commondir", 4096); err == nil {
		if folder = filepath.Join(folder, line); filepath.IsAbs(line) {
			folder = line
		}
	}
	var err error
	if l.common, err = os.OpenRoot(folder); err != nil {
		return newStopError(CodeLocal, "make it readable", err, "cannot open the repository %q", cutOutput(folder))
	}
	if _, err := l.common.Lstat("reftable"); err == nil {
		return newStopError(CodeLocal, "name the commit by its full id, from a clone that keeps its refs in files", nil,
			"the repository keeps its refs in a reftable, which is not supported")
	}
	if l.bare, err = os.MkdirTemp("", "fumehood-local-"); err != nil {
		return newStopError(CodeWrite, "", err, "cannot make the store")
	}
	l.digits = 40
	if id, err := l.followRef("HEAD"); err == nil {
		l.digits = len(id)
	}
	if err := writeBorrowingBare(l.bare, filepath.Join(folder, "objects"), l.digits); err != nil {
		return newStopError(CodeWrite, "", err, "cannot make the store")
	}
	// Without the commits at which history ends, git would look for their parents.
	if shallow, err := readRef(l.common, "shallow", maxRefs); err == nil {
		err = os.WriteFile(filepath.Join(l.bare, "shallow"), []byte(shallow+"\n"), 0o600)
		if err != nil {
			return newStopError(CodeWrite, "", err, "cannot make the store")
		}
	}
	return nil
}

// Close removes the files that OpenLocal made.
func (l *Local) Close() error {
	for _, root := range []*os.Root{l.own, l.common} {
		if root != nil {
			root.Close()
		}
	}
	if l.bare == "" {
		return nil
	}
	return os.RemoveAll(l.bare)
}

// RelativePath returns the path of dir, a directory of the work tree, relative to its top; "" is the top.
func (l *Local) RelativePath(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", newStopError(CodeLocal, "name an existing directory", err, "cannot find the directory %q",
			cutOutput(dir))
	}
	below, err := filepath.Rel(l.top, abs)
	if err != nil || !filepath.IsLocal(below) {
		return "", newStopError(CodeLocal, "name a directory of the work tree", err, "%q is not in the work tree",
			cutOutput(dir))
	}
	if below == "." {
		return "", nil
	}
	return below, nil
}

// gitDirAround goes up from dir to a directory with a .git, and returns both.
func gitDirAround(dir string) (top, folder string, err error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", "", newStopError(CodeLocal, "name an existing directory", err, "cannot find the directory %q",
			cutOutput(dir))
	}
	for at := abs; ; at = filepath.Dir(at) {
		info, err := os.Lstat(filepath.Join(at, ".git"))
		switch {
		case err == nil && info.IsDir():
			return at, filepath.Join(at, ".git"), nil
		case err == nil && info.Mode().IsRegular():
			folder, err = linkedFolder(at)
			return at, folder, err
		}
		if at == filepath.Dir(at) {
			return "", "", newStopError(CodeLocal, "run in a clone of the repository, or name one with --workspace",
				nil, "%q is not in a git repository", cutOutput(abs))
		}
	}
}

// linkedFolder follows a .git that is a file.
func linkedFolder(at string) (string, error) {
	root, err := os.OpenRoot(at)
	if err != nil {
		return "", newStopError(CodeLocal, "make it readable", err, "cannot open %q", cutOutput(at))
	}
	defer root.Close()
	line, err := readRef(root, ".git", 4096)
	to, ok := strings.CutPrefix(line, "gitdir: ")
	if err != nil || !ok {
		return "", newStopError(CodeLocal, "run in a clone of the repository", err,
			"the .git file of %q does not name a git directory", cutOutput(at))
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(at, to)
	}
	return to, nil
}

// readRef reads a small regular file, without its newline.
func readRef(root *os.Root, name string, max int64) (string, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > max {
		return "", errors.Join(err, fmt.Errorf("%s is not a regular file of the expected size", name))
	}
	data, err := io.ReadAll(io.LimitReader(f, max))
	return strings.TrimRight(string(data), "\n"), err
}

// A revision is a name, followed by how far to go up its parents.
var revisionRE = pattern.New(`^([^~^:\s-][^~^:\s]*)((?:[~^][0-9]{0,4}){0,8})$`)

var shortRE = pattern.New(`^[0-9a-f]{7,64}$`)

// Commit returns the full id of the commit that a revision names: HEAD, a branch, a
// tag, a remote's branch (origin/main), an id of at least seven digits, each
// optionally followed by ~N or ^N. An ambiguous name, such as a branch and a tag of
// the same name, is refused.
func (l *Local) Commit(ctx context.Context, revision string) (string, error) {
	match := revisionRE.FindStringSubmatch(revision)
	if match == nil || badName(revision) {
		return "", newStopError(CodeLocal, "name a branch, a tag or a commit", nil, "invalid name of a commit %q",
			cutOutput(revision))
	}
	id, err := l.resolveName(match[1])
	if err != nil {
		return "", err
	}
	said, err := l.git.command(ctx, nil, "--git-dir="+l.bare, "rev-parse", "--verify", "--quiet", "--end-of-options",
		id+match[2]+"^{commit}").output(256)
	full := strings.TrimSpace(string(said))
	if err != nil || !idRE.MatchString(full) {
		return "", newStopError(CodeLocal,
			"fetch it first: git fetch origin COMMIT; a shallow clone lacks most (in CI: fetch-depth: 0)", nil, "the repository does not have the commit %q", cutOutput(revision))
	}
	return full, nil
}

// resolveName returns the id that a name or a full or short id refers to.
func (l *Local) resolveName(name string) (string, error) {
	if idRE.MatchString(name) {
		return name, nil
	}
	if name == "HEAD" || strings.HasPrefix(name, "refs/") {
		return l.followRef(name)
	}
	var found, refs []string
	for _, prefix := range []string{"refs/heads/", "refs/tags/", "refs/remotes/", "refs/"} {
		if id, err := l.followRef(prefix + name); err == nil {
			found, refs = append(found, id), append(refs, prefix+name)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", newStopError(CodeLocal, "write the full name: "+refs[0], nil, "%q is ambiguous: %s", cutOutput(name),
			strings.Join(refs, " and "))
	case shortRE.MatchString(name):
		return name, nil
	}
	return "", newStopError(CodeLocal, "check the spelling, or fetch it first", nil,
		"the repository has no branch, tag or commit %q", cutOutput(name))
}

// followRef reads a ref, following symbolic refs.
func (l *Local) followRef(name string) (string, error) {
	for range 5 {
		if name != "HEAD" && !plainRef(name) {
			break
		}
		root := l.common
		if name == "HEAD" {
			root = l.own
		}
		line, err := readRef(root, name, 4096)
		if errors.Is(err, fs.ErrNotExist) {
			return l.readPackedRefs(name)
		}
		if err != nil {
			return "", newStopError(CodeLocal, "", err, "cannot read the ref %q", cutOutput(name))
		}
		if idRE.MatchString(line) {
			return line, nil
		}
		next, symbolic := strings.CutPrefix(line, "ref: ")
		if !symbolic {
			break
		}
		name = next
	}
	return "", newStopError(CodeLocal, "check the spelling, or fetch it first", nil, "the repository has no ref %q",
		cutOutput(name))
}

func (l *Local) readPackedRefs(name string) (string, error) {
	data, err := readRef(l.common, "packed-refs", maxRefs)
	if err == nil {
		var refs map[string]string
		if refs, err = parsePackedRefs(data + "\n"); err == nil && refs[name] != "" {
			return refs[name], nil
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", newStopError(CodeLocal, "", err, "the repository's packed-refs cannot be read")
	}
	return "", newStopError(CodeLocal, "check the spelling, or fetch it first", nil, "the repository has no ref %q",
		cutOutput(name))
}

// A Content is one file.
type Content struct {
	Path  string // below the requested directory; untrusted
	Bytes []byte
}

// ReadDir reads the files below a directory of a commit that wanted accepts, within
// limits: their number and sizes are known before the first is read. Left lists
// everything in the directory that is not a regular file, wanted or not: links,
// submodules, pointers to large files, refused names. If the commit does not have
// the directory, the error is a *NotFound.
func (l *Local) ReadDir(
	ctx context.Context, sha, under string, wanted func(string) bool, limits Limits,
) ([]Content, []Left, error) {
	limits = limits.withDefaults()
	ctx, cancel := context.WithTimeout(ctx, limits.Wall)
	defer cancel()
	if err := checkPath(under); err != nil {
		return nil, nil, err
	}
	o := openObjects(ctx, l.git, l.bare)
	defer o.close()
	tree, err := o.readCommitTree(ctx, sha)
	if err != nil {
		return nil, nil, err
	}
	at, err := o.findEntry(ctx, sha, tree, under)
	if err != nil {
		return nil, nil, err
	}
	if at.kind != folder {
		return nil, nil, newStopError(CodeTree, "name the directory itself", nil, "%q is not a directory in commit %s",
			cutOutput(under), sha)
	}
	nodes, err := o.walkTree(ctx, at.id, limits)
	if err != nil {
		return nil, nil, err
	}
	left, chosen := chooseFiles(nodes, wanted)
	p := plan{nodes: chosen, sizes: map[string]int64{}, targets: map[string]string{}}
	if err := p.measureBlobs(ctx, o, limits); err != nil {
		return nil, nil, err
	}
	contents, pointers, err := p.readContents(ctx, o, limits)
	return contents, append(left, pointers...), err
}

// chooseFiles separates the wanted files from what is not a regular file.
func chooseFiles(nodes []node, wanted func(string) bool) (left []Left, chosen []node) {
	for _, n := range nodes {
		switch {
		case n.left != "":
			left = append(left, Left{n.path, n.left, n.other})
		case n.kind == link:
			left = append(left, Left{n.path, "a symlink", ""})
		case n.kind == submodule:
			left = append(left, Left{n.path, Submodule, ""})
		case n.kind == file && wanted(n.path):
			chosen = append(chosen, n)
		}
	}
	return left, chosen
}

// readContents reads the files of p, each object once.
func (p plan) readContents(ctx context.Context, o *objects, limits Limits) (all []Content, pointers []Left, err error) {
	ids, read := p.writableBlobs(file), map[string][]byte{}
	err = o.readEach(ctx, "blob", limits.File, ids, func(i int, _ int64, r io.Reader) error {
		content, err := io.ReadAll(r)
		read[ids[i]] = content
		return err
	})
	if err != nil {
		return nil, nil, asStop(err, CodeTree, "cannot read the commit's files")
	}
	for _, n := range p.nodes {
		if content := read[n.id]; isPointer(content) {
			pointers = append(pointers, Left{n.path, LargeFile, ""})
		} else {
			all = append(all, Content{n.path, content})
		}
	}
	return all, pointers, nil
}

// WriteCommit writes the files of a commit of the repository of workspace to dir, which does not exist,
// and returns what of them it left out.
func WriteCommit(ctx context.Context, workspace, commit, dir string) (left []string, err error) {
	local, err := OpenLocal(ctx, workspace)
	if err != nil {
		return nil, err
	}
	defer local.Close()
	tree, err := local.Write(ctx, commit, dir, Limits{})
	return tree.Describe(), err
}
