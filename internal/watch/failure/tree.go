// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// workspace is the path of the repository in the sandbox.
const workspace = "/workspace/"

// A Tree holds the known files of a workspace. It is safe for concurrent use.
type Tree struct {
	files map[string]bool
	bases map[string][]string // by the last element of their paths
	open  bool
}

// NewTree returns the tree of files, which are paths in the workspace; invalid ones are
// ignored. An open tree also resolves names that look like that of a file but are not
// known, for places that are only shown.
func NewTree(files []string, open bool) *Tree {
	t := &Tree{files: map[string]bool{}, bases: map[string][]string{}, open: open}
	for _, f := range files {
		if !fs.ValidPath(f) || t.files[f] {
			continue
		}
		t.files[f] = true
		t.bases[path.Base(f)] = append(t.bases[path.Base(f)], f)
	}
	return t
}

// anyFile is the tree of which nothing is known.
var anyFile = NewTree(nil, true)

// Has reports whether a path is a known file.
func (t *Tree) Has(name string) bool { return t.files[name] }

// shownName is the grammar of the names that an open tree resolves.
var shownName = pattern.New(`^\.?[A-Za-z0-9_@][A-Za-z0-9_@./+$()\[\]~-]{0,200}$`)

// Names without a dot that are files.
var plainNames = map[string]bool{"Makefile": true, "GNUmakefile": true, "makefile": true, "Rakefile": true,
	"Gemfile": true, "Dockerfile": true, "Justfile": true, "justfile": true, "Jenkinsfile": true, "Vagrantfile": true}

// installed lists directories of files that are not the repository's own.
var installed = []string{"node_modules/", "site-packages/", "dist-packages/", ".venv/", "vendor/bundle/",
	"vendor/phpunit/", "vendor/bin/", "vendor/composer/", ".cargo/registry/", "/rustc/", "/gems/", ".pnpm/", ".yarn/"}

// isInstalled reports whether a path is in a directory of installed packages.
func isInstalled(name string) bool {
	for _, dir := range installed {
		if strings.Contains("/"+name, "/"+strings.TrimPrefix(dir, "/")) {
			return true
		}
	}
	return false
}

// served are the addresses of files in browsers: of webpack, and of servers of tests.
var served = pattern.New(`^(?:webpack://[^/]{0,100}/(?:\./)?|https?://(?:localhost|127\.0\.0\.1):\d{1,5}/(?:base/|@fs/workspace/)?)([^?]{1,400})(?:\?.{0,200})?$`)

// Resolve returns the file that a tool run in cwd calls name, or "".
func (t *Tree) Resolve(cwd, name string) string {
	name = strings.TrimPrefix(name, "webpack-internal:///")
	if m := matchContaining(served, "://", name); m != nil {
		name = m[1]
	}
	if rest, isURL := strings.CutPrefix(name, "file://"); isURL {
		name = strings.ReplaceAll(rest, "%20", " ")
		name, _, _ = strings.Cut(name, "?")
	}
	if rest, inside := strings.CutPrefix(name, workspace); inside {
		name, cwd = rest, ""
	}
	if name == "" || path.IsAbs(name) || strings.Contains(name, "://") || len(name) > 400 {
		return ""
	}
	for _, f := range []string{path.Join(cwd, name), path.Clean(name)} {
		if t.files[f] {
			return f
		}
	}
	name = path.Join(cwd, name)
	if t.open && shownName.MatchString(name) && isFileName(name) && !isInstalled(name) {
		return name
	}
	return ""
}

// isFileName reports whether a path looks like that of a file: it has an extension, or is
// one of the names that have none.
func isFileName(name string) bool {
	base := path.Base(name)
	if plainNames[base] {
		return true
	}
	ext := strings.TrimPrefix(path.Ext(base), ".")
	return len(ext) > 0 && len(ext) <= 10 && isWord(ext) && !isNumber(ext) && len(ext) < len(base)-1
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func isWord(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return s != ""
}

// inPackage returns the file that a tool calls by a bare name in a package: the only known
// one of that name whose directory is a suffix of the package's path, given with slashes. If
// one such directory is a suffix of another, it is the deepest one. Without a package, the
// name must be unique.
func (t *Tree) inPackage(name, importPath string) string {
	best, depth, equals := "", -1, 0
	for _, f := range t.bases[name] {
		dir := path.Dir(f)
		d := strings.Count(dir, "/") + 1
		switch {
		case dir == ".":
			d = 0
		case importPath != "" && !strings.HasSuffix("/"+importPath, "/"+dir):
			// The directory of a module below the top is not a part of its packages' paths.
			if d = commonEnd(importPath, dir); d == 0 || !t.open {
				continue
			}
		case importPath == "":
			d = 0
		}
		if d == depth {
			equals++
		}
		if d > depth {
			best, depth, equals = f, d, 0
		}
	}
	if equals > 0 {
		return ""
	}
	if best == "" && len(t.bases[name]) == 0 && t.open && shownName.MatchString(name) {
		return path.Join(packageDir(importPath), name)
	}
	return best
}

// commonEnd returns the number of last elements that two paths share.
func commonEnd(a, b string) (n int) {
	for a != "" && path.Base(a) == path.Base(b) {
		n++
		a, b = strings.TrimSuffix(path.Dir(a), "."), path.Dir(b)
	}
	return n
}

// goFile returns the file that go test calls by a bare name in a package: in the directory of the
// package, if it is in one of modules, and otherwise that of inPackage.
func (t *Tree) goFile(name, importPath string, modules []proposal.GoModule) string {
	longest := -1
	for i, m := range modules {
		if (importPath == m.Path || strings.HasPrefix(importPath, m.Path+"/")) &&
			(longest < 0 || len(m.Path) > len(modules[longest].Path)) {
			longest = i
		}
	}
	if longest < 0 {
		return t.inPackage(name, importPath)
	}
	m := modules[longest]
	file := path.Join(m.Dir, strings.TrimPrefix(importPath, m.Path+"/"), name)
	if importPath == m.Path {
		file = path.Join(m.Dir, name)
	}
	if t.files[file] || t.open && fs.ValidPath(file) && shownName.MatchString(file) {
		return file
	}
	return ""
}

// majorVersion is the last element of the path of a module from version 2 on, which is not a directory
// in most repositories.
var majorVersion = pattern.New(`^v(?:[2-9]|[1-9][0-9]{1,3})$`)

// packageDir returns the directory of a package whose path begins with that of a repository,
// as github.com/owner/name does, or "".
func packageDir(importPath string) string {
	parts := strings.Split(importPath, "/")
	if len(parts) > 3 && majorVersion.MatchString(parts[3]) {
		parts = slices.Delete(parts, 3, 4)
	}
	if len(parts) > 3 && (parts[0] == "github.com" || parts[0] == "gitlab.com" || parts[0] == "bitbucket.org") &&
		fs.ValidPath(importPath) {
		return path.Join(parts[3:]...)
	}
	return ""
}

// maxAlike is the maximum number of files of one name that withSuffix compares.
const maxAlike = 200

// withSuffix returns the only known file whose path ends in suffix, or "".
func (t *Tree) withSuffix(suffix string) string {
	found := ""
	if len(t.bases[path.Base(suffix)]) > maxAlike {
		return "" // each frame would visit all
	}
	for _, f := range t.bases[path.Base(suffix)] {
		if f == suffix || strings.HasSuffix(f, "/"+suffix) {
			if found != "" {
				return ""
			}
			found = f
		}
	}
	return found
}
