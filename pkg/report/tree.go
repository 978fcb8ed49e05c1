// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io/fs"
	"path"
	"strings"

	"github.com/fumehood/fumehood/pkg/internal/pattern"
)

// workspace is the path of the repository in the sandbox.
const workspace = "/workspace/"

// A tree holds the files of a pull request.
type tree struct {
	files map[string]bool
	bases map[string][]string // by the last element of their paths
	open  bool                // a name that looks like that of a file is accepted, too
}

// openTree is for places that are only shown.
func openTree(files []string) *tree {
	t := newTree(files)
	t.open = true
	return t
}

// shownName is the grammar of the names that an open tree accepts.
var shownName = pattern.New(`^[A-Za-z0-9_@][A-Za-z0-9_@./+-]{0,200}\.[A-Za-z0-9]{1,8}$`)

func newTree(files []string) *tree {
	t := &tree{files: map[string]bool{}, bases: map[string][]string{}}
	for _, f := range files {
		if !fs.ValidPath(f) || t.files[f] {
			continue
		}
		t.files[f] = true
		t.bases[path.Base(f)] = append(t.bases[path.Base(f)], f)
	}
	return t
}

// resolve returns the file that a tool run in cwd calls name, or "".
func (t *tree) resolve(cwd, name string) string {
	name = strings.TrimPrefix(name, "file://")
	if rest, inside := strings.CutPrefix(name, workspace); inside {
		name, cwd = rest, ""
	}
	if name == "" || path.IsAbs(name) {
		return ""
	}
	for _, f := range []string{path.Join(cwd, name), path.Clean(name)} {
		if t.files[f] {
			return f
		}
	}
	if name = path.Join(cwd, name); t.open && shownName.MatchString(name) {
		return name
	}
	return ""
}

// inPackage returns the file that go test calls by a bare name in the package with
// the given import path: the only one of that name whose directory is a suffix of
// the path. If one such directory is a suffix of another, it is the deepest one.
// Without an import path, the name must be unique.
func (t *tree) inPackage(name, importPath string) string {
	best, depth, equals := "", -1, 0
	if t.open && len(t.bases[name]) == 0 && shownName.MatchString(name) {
		return name
	}
	for _, f := range t.bases[name] {
		dir := path.Dir(f)
		d := strings.Count(dir, "/") + 1
		switch {
		case dir == ".":
			d = 0
		case importPath != "" && !strings.HasSuffix("/"+importPath, "/"+dir):
			continue
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
	return best
}
