// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// The limits of what a Tree reads.
const (
	MaxTreeFiles = 300_000
	MaxTreeBytes = 1 << 30 // of the files that are hashed
)

// A Read is a path of the workspace that set-up has learned something of: at least what is there,
// or that nothing is, and with Content what is in the file, directory or link. Path is relative to
// the workspace.
type Read struct {
	Path    string
	Content bool
	// Optional means that only optional steps have learned it: see Step.Optional.
	Optional bool
}

// isCached reports whether the cache that an optional step fills does not depend on r. Go's build
// cache checks the content of Go files, and which files a package has. It does not see other files
// that a compiler reads, such as headers outside of the package's directory. A file that uses C counts:
// its directives choose what compilers do, and mistakes of Go there have let a package run code.
func (t *Tree) isCached(r Read) bool {
	if r.Path == ".git" || inGit(r.Path) {
		return true
	}
	info, err := t.root.Lstat(r.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return strings.HasSuffix(r.Path, ".go")
	case err != nil:
		return false
	case info.IsDir():
		return true
	}
	return strings.HasSuffix(r.Path, ".go") && info.Mode().IsRegular() && t.isPlainGo(r.Path, info)
}

// maxGoFile is the size of the largest Go file that is parsed.
const maxGoFile = 4 << 20

// isPlainGo reports whether the file that info describes is one of Go without C.
func (t *Tree) isPlainGo(name string, info fs.FileInfo) bool {
	file, err := t.openUnchanged(name, info)
	if err != nil {
		return false
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxGoFile))
	if err != nil || len(data) == maxGoFile {
		return false
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), "", data, parser.ImportsOnly)
	return err == nil && !slices.ContainsFunc(parsed.Imports, func(i *ast.ImportSpec) bool {
		imported, err := strconv.Unquote(i.Path.Value)
		return err != nil || imported == "C"
	})
}

// An Input is a path of the workspace, and what set-up has learned of it. Two workspaces with the
// same Inputs are the same to a set-up that read nothing else. State is one of
//
//	absent                      nothing is there
//	file MODE SIZE              a regular file; only what stat reports matters
//	content MODE SIZE SHA256    the same, and its content
//	dir MODE                    a directory
//	list MODE SHA256            the same, and the names and types of its entries
//	link "TARGET"               a symbolic link
//	tree SHA256                 all that is below the path: see Tree.AllInputs
//
// with an octal MODE. Owners, times, inode numbers and the number of links are left out: they
// differ from checkout to checkout. So is the size of a directory.
type Input struct{ Path, State string }

const (
	stateAbsent  = "absent"
	stateContent = "content "
	stateList    = "list "
	stateTree    = "tree "
)

// wantsContent reports whether the state of an Input is about content.
func (in Input) wantsContent() bool {
	return strings.HasPrefix(in.State, stateContent) || strings.HasPrefix(in.State, stateList) ||
		strings.HasPrefix(in.State, "link ")
}

// A stateKey is what a state depends on.
type stateKey struct {
	path    string
	content bool
}

// ErrChanged means that the workspace is not the one that set-up began with.
var ErrChanged = errors.New("the workspace changed meanwhile")

// A Tree reads the Inputs of one workspace. Its files are untrusted: no link is followed, and
// nothing is read that is not a regular file. An error of its methods means that nothing may be
// concluded. Close must be called.
type Tree struct {
	root   *os.Root
	before time.Time // no file may have changed since; zero if that does not matter
	known  map[stateKey]string
	left   int64 // bytes that may still be hashed
}

// OpenTree opens the workspace dir.
func OpenTree(dir string) (*Tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Tree{root: root, known: map[stateKey]string{}, left: MaxTreeBytes}, nil
}

// Close ends the use of t.
func (t *Tree) Close() error { return t.root.Close() }

// RefuseChangesSince makes t return ErrChanged for what has changed since start, which is of Now: of a file that
// matters, and of each directory above it. No process can set the time of such a change.
func (t *Tree) RefuseChangesSince(start time.Time) { t.before = start }

// InputsOf returns the Inputs of a set-up that read list, sorted by path. Each directory above a path
// is one.
//
// The repository's own .git counts only as the commit and the references that it names: the rest
// differs from clone to clone.
func (t *Tree) InputsOf(reads []Read) ([]Input, error) {
	wanted := map[string]bool{".": false}
	for _, r := range reads {
		if r.Optional && isLocal(r.Path) && t.isCached(r) {
			continue
		}
		if inGit(r.Path) || r.Path == ".git" && r.Content {
			wanted[".git/HEAD"], wanted[".git/packed-refs"], wanted[gitRefs] = true, true, true
			r.Path = ".git"
		}
		if !isLocal(r.Path) {
			return nil, fmt.Errorf("set-up read %q, which is not a path of the workspace", r.Path)
		}
		wanted[r.Path] = wanted[r.Path] || r.Content
		for dir := path.Dir(r.Path); dir != "."; dir = path.Dir(dir) {
			wanted[dir] = wanted[dir] || false
		}
	}
	inputs := make([]Input, 0, len(wanted))
	for name, content := range wanted {
		state, err := t.stateOf(name, content)
		if name == gitRefs {
			state, err = t.treeState(name)
		}
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, Input{name, state})
	}
	slices.SortFunc(inputs, func(a, b Input) int { return cmp.Compare(a.Path, b.Path) })
	return inputs, nil
}

// AllInputs returns the Inputs of a set-up of which it is not known what it read: all files.
func (t *Tree) AllInputs() ([]Input, error) {
	state, err := t.treeState(".")
	return []Input{{".", state}}, err
}

// HasInputs reports whether the workspace has exactly these Inputs. They are untrusted.
func (t *Tree) HasInputs(inputs []Input) (bool, error) {
	for _, in := range inputs {
		if !isLocal(in.Path) {
			return false, nil
		}
		read := t.stateOf
		if strings.HasPrefix(in.State, stateTree) {
			read = func(name string, _ bool) (string, error) { return t.treeState(name) }
		}
		if state, err := read(in.Path, in.wantsContent()); err != nil || state != in.State {
			return false, err
		}
	}
	return len(inputs) > 0, nil
}

// CoversFile reports whether set-up may have written the file at name, relative to the workspace: in each
// workspace with these Inputs it would be written over the same.
func CoversFile(inputs []Input, name string) bool {
	if name == ".git" || strings.HasPrefix(name, ".git/") || !isLocal(name) {
		return false
	}
	find := func(name string) (Input, bool) {
		i, found := slices.BinarySearchFunc(inputs, name,
			func(in Input, name string) int { return cmp.Compare(in.Path, name) })
		if !found {
			return Input{}, false
		}
		return inputs[i], true
	}
	if all, found := find("."); found && strings.HasPrefix(all.State, stateTree) {
		return true
	}
	if _, found := find(name); found {
		return true
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if in, found := find(dir); found {
			return in.State == stateAbsent
		}
	}
	return false
}

// WaitForClockTick returns a time of the clock that the kernel stamps changes of files with: later than that of
// every change so far, and not later than that of any change from now on. It waits until that clock is past the
// exact time, which the kernel may use, too: about 10 ms. If the clock was set back, changes before it may be
// taken for later ones.
func WaitForClockTick() time.Time {
	began := time.Now()
	for range 1000 {
		if now := coarseTime(); now.After(began) {
			return now
		}
		time.Sleep(time.Millisecond)
	}
	return coarseTime()
}

func coarseTime() time.Time {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &ts) // it cannot fail
	return time.Unix(ts.Unix())
}

// changeTime returns the time of the last change of a file or of its attributes.
func changeTime(info fs.FileInfo) time.Time {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Unix(1<<40, 0) // later than any other
	}
	return time.Unix(st.Ctim.Unix())
}

const gitRefs = ".git/refs"

func inGit(name string) bool { return strings.HasPrefix(name, ".git/") }

// isLocal reports whether name is a clean relative path inside. Unlike fs.ValidPath, it accepts any
// bytes in a name.
func isLocal(name string) bool {
	return name != "" && name[0] != '/' && path.Clean(name) == name && name != ".." && !strings.HasPrefix(name, "../")
}

// stateOf returns the state of name.
func (t *Tree) stateOf(name string, withContent bool) (string, error) {
	key := stateKey{name, withContent}
	if state, ok := t.known[key]; ok {
		return state, nil
	}
	state, err := t.readState(name, withContent)
	if err == nil {
		t.known[key] = state
	}
	return state, err
}

func (t *Tree) readState(name string, withContent bool) (string, error) {
	info, err := t.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		return stateAbsent, nil
	case err != nil:
		return "", err
	}
	mode := info.Mode()
	if name == ".git" && mode.IsDir() { // any use of git writes there
		return fmt.Sprintf("dir %o", chmodBits(mode)), nil
	}
	if err := t.checkUnchanged(name, info); err != nil {
		return "", err
	}
	switch {
	case mode&fs.ModeSymlink != 0:
		target, err := t.root.Readlink(name)
		return fmt.Sprintf("link %q", target), err
	case mode.IsDir() && withContent:
		sum := sha256.New()
		err := t.hashEntries(sum, name, info)
		return fmt.Sprintf(stateList+"%o %x", chmodBits(mode), sum.Sum(nil)), err
	case mode.IsDir():
		return fmt.Sprintf("dir %o", chmodBits(mode)), nil
	case !mode.IsRegular():
		return "", fmt.Errorf("%q is not a regular file", name)
	case withContent:
		sum := sha256.New()
		err := t.hashContent(sum, name, info)
		return fmt.Sprintf(stateContent+"%o %d %x", chmodBits(mode), info.Size(), sum.Sum(nil)), err
	}
	return fmt.Sprintf("file %o %d", chmodBits(mode), info.Size()), nil
}

// chmodBits returns the bits of mode that chmod sets.
func chmodBits(mode fs.FileMode) uint32 {
	bits := uint32(mode.Perm())
	for i, bit := range []fs.FileMode{fs.ModeSticky, fs.ModeSetgid, fs.ModeSetuid} {
		if mode&bit != 0 {
			bits |= 0o1000 << i
		}
	}
	return bits
}

// checkUnchanged returns ErrChanged if the file that info describes has changed since t.before.
func (t *Tree) checkUnchanged(name string, info fs.FileInfo) error {
	if !t.before.IsZero() && !changeTime(info).Before(t.before) {
		return fmt.Errorf("%w: %q", ErrChanged, name)
	}
	return nil
}

// openUnchanged opens the file that info describes.
func (t *Tree) openUnchanged(name string, info fs.FileInfo) (*os.File, error) {
	f, err := t.root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if opened, err := f.Stat(); err != nil || !os.SameFile(opened, info) {
		_ = f.Close()
		return nil, fmt.Errorf("%w: %q", ErrChanged, name)
	}
	return f, nil
}

// hashEntries hashes the names and types of the entries of a directory.
func (t *Tree) hashEntries(sum hash.Hash, name string, info fs.FileInfo) error {
	dir, err := t.openUnchanged(name, info)
	if err != nil {
		return err
	}
	defer dir.Close()
	found, err := dir.ReadDir(MaxTreeFiles + 1)
	if err != nil && err != io.EOF || len(found) > MaxTreeFiles {
		return errors.Join(err, fmt.Errorf("%q has more than %d files", name, MaxTreeFiles))
	}
	slices.SortFunc(found, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	for _, e := range found {
		fmt.Fprintf(sum, "%q %o\n", e.Name(), uint32(e.Type()))
	}
	return nil
}

// hashContent hashes a regular file.
func (t *Tree) hashContent(sum hash.Hash, name string, info fs.FileInfo) error {
	if t.left -= info.Size(); t.left < 0 {
		return fmt.Errorf("the files that set-up reads are larger than %d bytes", int64(MaxTreeBytes))
	}
	f, err := t.openUnchanged(name, info)
	if err != nil {
		return err
	}
	defer f.Close()
	if n, err := io.Copy(sum, io.LimitReader(f, info.Size()+1)); err != nil || n != info.Size() {
		return errors.Join(err, fmt.Errorf("%w: %q", ErrChanged, name))
	}
	return nil
}

// treeState returns the state of all that is below top: paths, modes and contents, of .git only
// what says which commit is checked out.
func (t *Tree) treeState(top string) (string, error) {
	key := stateKey{top + "/", true}
	if state, ok := t.known[key]; ok {
		return state, nil
	}
	sum, files := sha256.New(), 0
	err := fs.WalkDir(t.root.FS(), top, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && name == top && errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case inGit(name) && !isCounted(name):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if files++; files > MaxTreeFiles {
			return fmt.Errorf("the workspace has more than %d files", MaxTreeFiles)
		}
		state, err := t.stateOf(name, true)
		fmt.Fprintf(sum, "%q %s\n", name, state)
		return err
	})
	state := stateTree + hex.EncodeToString(sum.Sum(nil))
	if err == nil {
		t.known[key] = state
	}
	return state, err
}

// isCounted reports whether a file of .git says which commit is checked out.
func isCounted(name string) bool {
	return name == ".git/HEAD" || name == ".git/packed-refs" || name == gitRefs || strings.HasPrefix(name, gitRefs+"/")
}

var exactVersion = pattern.New(`@\d+\.\d+\.\d+`)

// IsPinned reports whether a command of set-up installs the versions that a lock file or the
// command itself chooses, so that it leaves the same on another day. argv is its words, or nil if
// they are not known.
func IsPinned(argv []string) bool {
	line := strings.Join(argv, " ")
	has := func(prefix string) bool { return line == prefix || strings.HasPrefix(line, prefix+" ") }
	switch {
	case has("go mod download"), has("go list -e -export"), has("go test -c -o /dev/null"), has("npm ci"),
		has("python3 -m venv " + Venv),
		has("uv sync --frozen"), has("cargo fetch --locked"):
		return true
	case has("npm install"):
		return exactVersion.MatchString(line)
	case has("pnpm install"), has("yarn install"), has("bun install"):
		return strings.Contains(line, "--frozen-lockfile") || strings.Contains(line, "--immutable")
	}
	return isPinnedByTable(argv)
}
