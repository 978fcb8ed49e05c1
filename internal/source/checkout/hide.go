// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// HiddenPaths are patterns of paths of a repository whose contents nothing in a sandbox may read.
//
// A pattern is a path from the top if it has a slash before its end ("/keys", "src/keys", "keys/**"), otherwise a
// name in any directory ("keys", "keys/", "**/keys", "*.pem"). What is below a path that matches is hidden, too. "*" is
// any text without a slash. Upper and lower case differ.
type HiddenPaths []string

// Check returns what is invalid in h. Other patterns are read alike by Match and by git.
func (h HiddenPaths) Check() error {
	for _, p := range h {
		rest, top := parseHidden(p)
		plain := utf8.ValidString(rest) && !badName(rest) && strings.TrimSpace(rest) == rest &&
			!strings.ContainsAny(rest, `\[]?!"`) && !strings.Contains(rest, "**") && path.Clean(rest) == rest &&
			fs.ValidPath(rest)
		if !plain || rest == "." || !top && strings.Contains(rest, "/") || strings.Trim(rest, "*/") == "" {
			return fmt.Errorf("invalid pattern %q: want a name or a path of the repository, in which * is any text without a slash",
				cutOutput(p))
		}
	}
	return nil
}

// parseHidden returns the pattern without what has no effect of its own, and whether it is a path from the top.
func parseHidden(p string) (rest string, top bool) {
	rest, anywhere := strings.CutPrefix(strings.TrimSuffix(p, "/"), "**/")
	top = strings.Contains(rest, "/") && !anywhere
	return strings.TrimSuffix(strings.TrimPrefix(rest, "/"), "/**"), top
}

// Match reports whether the file, whose path is relative to the top, is hidden.
func (h HiddenPaths) Match(file string) bool {
	if len(h) == 0 { // for every path of most commits
		return false
	}
	for at := path.Clean(file); at != "." && at != "/"; at = path.Dir(at) {
		for _, p := range h {
			rest, top := parseHidden(p)
			name := at
			if !top {
				name = path.Base(at)
			}
			if ok, err := path.Match(rest, name); ok || err != nil {
				return true
			}
		}
	}
	return false
}

// sparsePatterns returns what is not hidden in the format of git's sparse checkouts.
func (h HiddenPaths) sparsePatterns() string {
	text := "/*\n"
	for _, p := range h {
		rest, top := parseHidden(p)
		if top {
			rest = "/" + rest
		}
		text += "!" + rest + "\n"
	}
	return text
}

// CodeHide is the code for hidden paths that cannot be kept out.
const CodeHide = "checkout.hide"

// hiddenRemote is the name that git reports with an object that is not there.
const hiddenRemote = "hidden-by-the-configuration"

// CopyVisible writes the work tree in from, a directory, to the new directory to, without hidden paths, and
// with a repository that lacks their contents in every commit. Files and directories keep their owner, permissions and
// time.
//
//   - A content that also has a path that is not hidden, in any commit of the repository, stays in the repository.
//   - Of the repository, the commits of HEAD, branches, tags and remotes' branches are copied; no other object, no
//     settings, hooks, stash, reflog and notes. The index is HEAD's. It is a partial clone and a sparse checkout: what
//     needs a hidden content ends with an error of git, which names hiddenRemote.
//   - Nothing else named .git is copied, so that submodules and repositories in the tree have no history, and a linked
//     work tree has none. A repository that borrows objects is refused: its owner may not be who may read them.
//     Sockets, FIFOs and devices are not copied.
//   - A hard link to a hidden file is another path.
//
// If it fails, to may have a part. Its error is a *proposal.StopError.
func (h HiddenPaths) CopyVisible(ctx context.Context, from, to string) error {
	if err := h.Check(); err != nil {
		return newStopError(CodeHide, "fix the list of hidden paths", err, "cannot hide paths of the workspace")
	}
	err := h.copyWorkTree(ctx, from, to)
	if err == nil {
		return nil
	}
	var stopped *proposal.StopError
	hint := "leave out hide, or name a workspace with a complete repository"
	if errors.As(err, &stopped) && stopped.Hint != "" {
		hint = stopped.Hint
	}
	return newStopError(CodeHide, hint, err, "cannot make a copy of the workspace without its hidden paths")
}

func (h HiddenPaths) copyWorkTree(ctx context.Context, from, to string) error {
	from, err := filepath.EvalSymlinks(from)
	if err == nil {
		from, err = filepath.Abs(from)
	}
	if err != nil {
		return err
	}
	source, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer source.Close()
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	target, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer target.Close()
	var directories []string
	err = filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if name, err = filepath.Rel(from, name); err != nil {
			return err
		}
		if name != "." && (h.Match(name) || dotGit(path.Base(name))) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			directories = append(directories, name)
		}
		return copyNode(source, target, name)
	})
	if err == nil {
		err = h.copyRepository(ctx, from, to)
	}
	if err != nil {
		return err
	}
	for _, name := range slices.Backward(directories) { // when nothing is written to them any more
		if err := copyAttributes(source, target, name); err != nil {
			return err
		}
	}
	return nil
}

// copyNode copies the file or link at name, whose directory is there, or makes the directory, without its attributes.
func copyNode(source, target *os.Root, name string) error {
	info, err := source.Lstat(name)
	if err != nil {
		return err
	}
	switch {
	case info.IsDir() && name != ".":
		err = target.Mkdir(name, 0o700)
	case info.Mode().IsRegular():
		err = copyContent(source, target, name)
	case info.Mode()&fs.ModeSymlink != 0:
		var to string
		if to, err = source.Readlink(name); err == nil {
			err = target.Symlink(to, name)
		}
	case !info.IsDir():
		return nil
	}
	if err != nil || info.IsDir() {
		return err
	}
	return copyAttributes(source, target, name)
}

// copyAttributes copies the owner, and of what is not a link, permissions and time.
func copyAttributes(source, target *os.Root, name string) error {
	info, err := source.Lstat(name)
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t)
	err = target.Lchown(name, int(owner.Uid), int(owner.Gid))
	if err != nil || info.Mode()&fs.ModeSymlink != 0 {
		return err
	}
	return errors.Join(target.Chmod(name, info.Mode().Perm()), target.Chtimes(name, info.ModTime(), info.ModTime()))
}

func copyContent(source, target *os.Root, name string) error {
	in, err := source.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := target.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// copyRepository makes the repository of the work tree in to. One without a commit is left out.
func (h HiddenPaths) copyRepository(ctx context.Context, from, to string) error {
	if info, err := os.Lstat(filepath.Join(from, ".git")); err != nil || !info.IsDir() {
		return nil // commands would not see the repository of another place either
	}
	l, err := OpenLocal(ctx, from)
	if err != nil {
		return err
	}
	defer l.Close()
	for _, other := range []string{"commondir", "objects/info/alternates"} {
		if _, err := l.own.Lstat(other); !errors.Is(err, fs.ErrNotExist) {
			return newStopError(CodeHide, "make a clone that borrows nothing: git clone --no-local", err,
				"the repository has parts in another place: .git/%s", other)
		}
	}
	head, err := l.followRef("HEAD")
	if err != nil {
		return nil
	}
	refs, err := l.readRefs(ctx)
	if err != nil {
		return err
	}
	if err := l.packVisible(ctx, h, append(slices.Collect(maps.Values(refs)), head+"\n")); err != nil {
		return err
	}
	refs["HEAD"] = head + "\n"
	if line, err := readRef(l.own, "HEAD", 4096); err == nil && refs[strings.TrimPrefix(line, "ref: ")] == head+"\n" {
		refs["HEAD"] = line + "\n"
	}
	const unlimited = 1 << 62
	s := &Store{git: l.git, bare: l.bare, dir: l.bare, digits: l.digits, hidden: h,
		limits: Limits{Files: maxWalked, Path: 4096, Bytes: unlimited, File: unlimited}.withDefaults()}
	index, err := s.makeIndex(ctx, head)
	if err != nil {
		return err
	}
	shallow, _ := os.ReadFile(filepath.Join(l.bare, "shallow"))
	if err := s.writeGitDir(to, index, string(shallow), refs); err != nil {
		return err
	}
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t)
	return filepath.WalkDir(filepath.Join(to, ".git"), func(name string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(name, int(owner.Uid), int(owner.Gid)))
	})
}

// readRefs returns the ids of branches, tags and remotes' branches that lead to a commit, as content of their files.
func (l *Local) readRefs(ctx context.Context) (map[string]string, error) {
	packed := map[string]string{}
	data, err := readRef(l.common, "packed-refs", maxRefs)
	if err == nil {
		packed, err = parsePackedRefs(data + "\n")
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	refs := map[string]string{}
	add := func(name string) {
		id, err := l.followRef(name)
		kind := strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/") ||
			strings.HasPrefix(name, "refs/remotes/")
		if kind && err == nil {
			refs[name] = id + "\n"
		}
	}
	for name := range packed {
		add(name)
	}
	err = fs.WalkDir(l.common.FS(), "refs", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			add(name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return refs, l.removeOtherRefs(ctx, refs)
}

// removeOtherRefs removes the refs that do not lead to a commit: what is below another tree has other paths.
func (l *Local) removeOtherRefs(ctx context.Context, refs map[string]string) error {
	names := slices.Sorted(maps.Keys(refs))
	var ask strings.Builder
	for _, name := range names {
		ask.WriteString(strings.TrimSpace(refs[name]) + "^{commit}\n")
	}
	kinds := l.git.command(ctx, nil, "--git-dir="+l.bare, "cat-file", "--batch-check=%(objecttype)")
	kinds.Stdin = strings.NewReader(ask.String())
	said, err := kinds.output(maxRefs)
	if err != nil {
		return err
	}
	lines := strings.Split(string(said), "\n")
	if len(lines) != len(names)+1 {
		return errors.New("git's answer is cut off")
	}
	for i, name := range names {
		if lines[i] != "commit" {
			delete(refs, name)
		}
	}
	return nil
}

// packVisible packs what is visible in the commits and tags with the ids, one in a line, and in their history. The pack
// is in the store of l.
func (l *Local) packVisible(ctx context.Context, h HiddenPaths, ids []string) error {
	patterns := l.git.command(ctx, nil, "--git-dir="+l.bare, "hash-object", "-w", "--stdin")
	patterns.Stdin = strings.NewReader(h.sparsePatterns())
	filter, err := patterns.output(256)
	if err != nil {
		return err
	}
	list, err := os.Create(filepath.Join(l.bare, "visible"))
	if err != nil {
		return err
	}
	defer list.Close()
	// A graph of commits is a copy of what they say, which were not compared with them.
	walk := l.git.command(ctx, nil, "--git-dir="+l.bare, "-c", "core.commitGraph=false", "rev-list", "--objects",
		"--filter=sparse:oid="+strings.TrimSpace(string(filter)), "--stdin")
	walk.Stdin = strings.NewReader(strings.Join(ids, ""))
	walk.Stdout = list
	if err := walk.Run(); err != nil {
		return walk.addStderr(err)
	}
	if _, err := list.Seek(0, io.SeekStart); err != nil {
		return err
	}
	pack := l.git.command(ctx, nil, "--git-dir="+l.bare, "pack-objects", "-q",
		filepath.Join(l.bare, "objects/pack/pack"))
	pack.Stdin = list
	name, err := pack.output(256)
	if err != nil {
		return err
	}
	// git accepts that objects are missing that those of such a pack name.
	mark := filepath.Join(l.bare, "objects/pack/pack-"+strings.TrimSpace(string(name))+".promisor")
	return os.WriteFile(mark, nil, 0o600)
}
