// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/internal/pattern"
)

// The limits of Inputs.
const (
	MaxTreeFiles = 300_000
	MaxTreeBytes = 1 << 30 // of the files that are hashed
)

// Inputs are what decides what set-up leaves, as far as the workspace goes.
type Inputs struct {
	// Digest is "sha256:…" of the files that set-up reads: their paths, modes and contents.
	Digest string
	// Whole is why all files of the workspace are among them: what reads more than lock files
	// and manifests, such as an install script. "" if only those are.
	Whole string
	// Pinned means that lock files choose every version, so that set-up of another day leaves
	// the same.
	Pinned bool
}

// Allows reports whether set-up of these Inputs may have changed the file at name, relative to
// the workspace: on another workspace with the same Inputs it would leave the same.
func (in Inputs) Allows(name string) bool {
	parts := strings.Split(name, "/")
	if parts[0] == ".git" {
		return false
	}
	return in.Whole != "" || Reads(name) || slices.ContainsFunc(parts[:len(parts)-1], func(p string) bool { return slices.Contains(dependencies, p) })
}

// dependencies are the directories of a workspace that only package managers write to.
var dependencies = []string{"node_modules", Venv, ".fumehood"}

// ReadInputs returns the Inputs of set-up with these commands, each a list of words, or nil if
// its words are not known. The files are untrusted; an error means that the tree is too large
// or cannot be read, and that nothing may be concluded.
//
// .git counts only as the commit and the references that it names.
func ReadInputs(root fs.FS, commands [][]string) (Inputs, error) {
	t := &inputTree{root: root, left: MaxTreeBytes}
	in := Inputs{Pinned: true}
	if err := fs.WalkDir(root, ".", t.visit); err != nil {
		return in, err
	}
	in.Whole = t.odd
	for _, argv := range commands {
		what, pinned := t.reads(argv)
		in.Pinned = in.Pinned && pinned
		if in.Whole == "" {
			in.Whole = what
		}
	}
	files := t.named
	if in.Whole != "" {
		files = t.all
	}
	var err error
	in.Digest, err = t.digest(files)
	return in, err
}

// An inputTree is a workspace while its Inputs are read.
type inputTree struct {
	root       fs.FS
	all, named []string
	odd        string // why all files count
	left       int64  // bytes that may still be hashed
}

func (t *inputTree) visit(name string, d fs.DirEntry, err error) error {
	switch {
	case err != nil:
		return err
	case len(t.all) >= MaxTreeFiles:
		return fmt.Errorf("the workspace has more than %d files", MaxTreeFiles)
	case strings.HasPrefix(name, ".git/") && !counted(name):
		if d.IsDir() && name != ".git/refs" {
			return fs.SkipDir
		}
		return nil
	case t.odd == "" && slices.Contains(dependencies, path.Base(name)):
		t.odd = fmt.Sprintf("%s is part of the repository", path.Base(name))
	}
	if d.IsDir() {
		return nil
	}
	t.all = append(t.all, name)
	if Reads(name) {
		t.named = append(t.named, name)
		if t.odd == "" && !d.Type().IsRegular() {
			t.odd = "a manifest is not a regular file"
		}
	}
	return nil
}

// counted reports whether a file of .git says which commit is checked out.
func counted(name string) bool {
	return name == ".git/HEAD" || name == ".git/packed-refs" || strings.HasPrefix(name, ".git/refs/")
}

// digest hashes files, which are sorted.
func (t *inputTree) digest(files []string) (string, error) {
	sum := sha256.New()
	for _, name := range files {
		if err := t.hash(sum, name); err != nil {
			return "", err
		}
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// hash writes one file with lengths before its parts, so that no two lists give the same bytes.
func (t *inputTree) hash(sum hash.Hash, name string) error {
	info, err := fs.Lstat(t.root, name)
	if err != nil {
		return err
	}
	fmt.Fprintf(sum, "%q %o ", name, uint32(info.Mode()))
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := fs.ReadLink(t.root, name)
		fmt.Fprintf(sum, "%q\n", target)
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%q is not a regular file", name)
	}
	if t.left -= info.Size(); t.left < 0 {
		return fmt.Errorf("the files that set-up reads are larger than %d bytes", int64(MaxTreeBytes))
	}
	f, err := t.root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	fmt.Fprintf(sum, "%d\n", info.Size())
	if n, err := io.Copy(sum, io.LimitReader(f, info.Size()+1)); err != nil || n != info.Size() {
		return fmt.Errorf("%q changed while it was read", name)
	}
	return nil
}

var exactVersion = pattern.New(`@\d+\.\d+\.\d+`)

// reads returns why a command reads more than lock files and manifests, "" if it does not, and
// whether lock files choose what it installs.
func (t *inputTree) reads(argv []string) (what string, pinned bool) {
	line := strings.Join(argv, " ")
	has := func(prefix string) bool { return line == prefix || strings.HasPrefix(line, prefix+" ") }
	switch {
	case has("go mod download"), has("go list -e -export"):
		return "", true
	case has("npm ci"):
		return t.nodeCode(), true
	case has("npm install --prefix " + Tools), has("npm install"):
		return t.nodeCode(), exactVersion.MatchString(line)
	case has("pnpm install"), has("yarn install"):
		return t.nodeCode(), strings.Contains(line, "--frozen-lockfile") || strings.Contains(line, "--immutable")
	case has("python3 -m venv " + Venv):
		return "", true
	case has(Venv + "/bin/python -m pip install"):
		return t.pipCode(argv[4:]), false
	case has("uv sync --frozen"):
		return t.match("pyproject.toml", pythonBuilds, "a Python project is built"), true
	case has("cargo fetch"):
		return t.cargoConfig(), t.contains("Cargo.lock")
	}
	return "what a command of set-up reads is not known", false
}

// lifecycle are the scripts of package.json that installing runs, and dependencies that are
// files of the repository.
var lifecycle = pattern.New(`"(?:pre|post)?(?:install|prepare|prepublish)"\s*:|"dependencies"\s*:\s*"|"(?:file|link|portal|patch):|patchedDependencies`)

// nodeCode returns why installing Node packages may run or read files of the repository.
func (t *inputTree) nodeCode() string {
	for _, name := range t.all {
		switch base := path.Base(name); {
		case base == "binding.gyp", base == ".pnpmfile.cjs", base == ".pnpmfile.mjs", base == "pnpmfile.js", strings.HasPrefix(name, ".yarn/"), base == ".yarnrc.yml":
			return name + " may run code of the repository"
		}
	}
	return t.match("package.json", lifecycle, "package.json has install scripts or local packages")
}

var (
	pipLocal     = pattern.New(`(?m)^\s*(?:-e|--editable|-c|--constraint|-r|--requirement|\.|/)|file:|^\s*-[rce]\S`)
	pythonBuilds = pattern.New(`(?m)^\s*\[build-system\]|path\s*=|workspace\s*=`)
)

// pipCode is nodeCode for the arguments of pip install.
func (t *inputTree) pipCode(args []string) string {
	for i := 0; i+1 < len(args); i += 2 {
		if args[i] != "-r" || !Reads(args[i+1]) {
			return "a Python project is built"
		}
	}
	if len(args)%2 == 1 && !strings.HasPrefix(args[0], "pip>=") {
		return "a Python project is built"
	}
	return t.match(".txt", pipLocal, "requirements name files of the repository")
}

// match returns reason if a manifest whose name ends in suffix has text that pattern matches, or
// cannot be read.
func (t *inputTree) match(suffix string, pattern *pattern.Pattern, reason string) string {
	s := &scan{root: t.root}
	for _, name := range t.named {
		if !strings.HasSuffix(name, suffix) {
			continue
		}
		text, ok := s.read(path.Dir(name), path.Base(name))
		if !ok || pattern.MatchString(text) || suffix == "package.json" && !json.Valid([]byte(text)) {
			return reason
		}
	}
	return ""
}

// cargoConfig is nodeCode for cargo, whose configuration names registries.
func (t *inputTree) cargoConfig() string {
	if i := slices.IndexFunc(t.all, func(name string) bool { return path.Base(path.Dir(name)) == ".cargo" }); i >= 0 {
		return t.all[i] + " configures cargo"
	}
	return ""
}

func (t *inputTree) contains(base string) bool {
	return slices.ContainsFunc(t.named, func(name string) bool { return path.Base(name) == base })
}
