// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strings"
)

//go:embed kinds
var kinds embed.FS

// marks are the files that identify a kind of repository.
var marks = map[string]string{
	"go.mod": "go", "go.work": "go",
	"pyproject.toml": "python", "setup.py": "python", "setup.cfg": "python", "requirements.txt": "python", "tox.ini": "python", "Pipfile": "python",
	"package.json": "node", "deno.json": "node",
	"Cargo.toml": "rust",
	"pom.xml":    "java", "build.gradle": "java", "build.gradle.kts": "java", "gradlew": "java",
	"Makefile": "make", "makefile": "make", "GNUmakefile": "make",
}

// PolicyKinds lists the known kinds, sorted.
func PolicyKinds() []string {
	var names []string
	for _, kind := range marks {
		if !slices.Contains(names, kind) {
			names = append(names, kind)
		}
	}
	sort.Strings(names)
	return names
}

// Bounds of what is read.
const (
	maxDepth = 2
	maxNames = 10_000
)

// DetectKinds lists the kinds of the repository in fsys, sorted; there may be none. It reads
// directories two deep and no file, and stops after ten thousand names.
func DetectKinds(fsys fs.FS) []string {
	found, names := map[string]bool{}, 0
	_ = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if names++; names > maxNames {
			return fs.SkipAll
		}
		switch {
		case err != nil:
			return fs.SkipDir // unreadable directories are ignored
		case d.IsDir() && name != "." && (isSkippedDir(d.Name()) || strings.Count(name, "/") >= maxDepth):
			return fs.SkipDir
		case d.Type().IsRegular() && marks[d.Name()] != "":
			found[marks[d.Name()]] = true
		}
		return nil
	})
	var list []string
	for kind := range found {
		list = append(list, kind)
	}
	sort.Strings(list)
	return list
}

// isSkippedDir are directories of third-party code and of tools.
func isSkippedDir(name string) bool {
	return strings.HasPrefix(name, ".") ||
		slices.Contains([]string{"node_modules", "vendor", "third_party", "target", "testdata", "dist", "build"}, name)
}

// A PolicyFile is one file of the policy, by its name in the policy directory.
type PolicyFile struct {
	Name    string
	Content []byte
}

// PolicyFiles are the policy for a repository of these kinds. An unknown kind is an error;
// without any kind it is the part for every repository.
func PolicyFiles(of []string) ([]PolicyFile, error) {
	of = slices.Compact(slices.Sorted(slices.Values(of)))
	for _, kind := range of {
		if !slices.Contains(PolicyKinds(), kind) {
			return nil, fmt.Errorf("unknown kind %q: use one of %s", kind, strings.Join(PolicyKinds(), ", "))
		}
	}
	var files []PolicyFile
	cases := []byte(nil)
	for _, kind := range append([]string{"every"}, of...) {
		entries, err := fs.ReadDir(kinds, path.Join("kinds", kind))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			content, err := kinds.ReadFile(path.Join("kinds", kind, e.Name()))
			if err != nil {
				return nil, err
			}
			if e.Name() == "cases.yaml" {
				cases = append(cases, content...)
				continue
			}
			files = append(files, PolicyFile{e.Name(), content})
		}
	}
	return append(files, PolicyFile{"cases.yaml", cases}), nil
}
