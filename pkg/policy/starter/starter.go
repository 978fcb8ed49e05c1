// SPDX-License-Identifier: Apache-2.0

// Package starter writes a first policy for a repository, by what the repository is:
// a few stricter rules as Rego, their tests, cases for people who write no Rego, and
// a page that says how to go on.
//
// It promises that what it writes passes `fumehood policy check` and `fumehood policy
// test` as it is. It looks at names of files alone, at most two folders deep, and
// follows no link; what a repository says of itself is a hint about which examples
// fit, never a reason to allow anything.
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

// marks are the files by which a kind of repository is known.
var marks = map[string]string{
	"go.mod": "go", "go.work": "go",
	"pyproject.toml": "python", "setup.py": "python", "setup.cfg": "python", "requirements.txt": "python", "tox.ini": "python", "Pipfile": "python",
	"package.json": "node", "deno.json": "node",
	"Cargo.toml": "rust",
	"pom.xml":    "java", "build.gradle": "java", "build.gradle.kts": "java", "gradlew": "java",
	"Makefile": "make", "makefile": "make", "GNUmakefile": "make",
}

// Kinds lists the kinds that there are, sorted.
func Kinds() []string {
	var names []string
	for _, kind := range marks {
		if !slices.Contains(names, kind) {
			names = append(names, kind)
		}
	}
	sort.Strings(names)
	return names
}

// Bounds on what is looked at.
const (
	maxDepth = 2
	maxNames = 10_000
)

// Detect lists the kinds of the repository in fsys, sorted; none is an answer. It reads
// folders two deep and no file, and gives up looking after ten thousand names.
func Detect(fsys fs.FS) []string {
	found, names := map[string]bool{}, 0
	_ = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if names++; names > maxNames {
			return fs.SkipAll
		}
		switch {
		case err != nil:
			return fs.SkipDir // what cannot be read gives no hint
		case d.IsDir() && name != "." && (skipped(d.Name()) || strings.Count(name, "/") >= maxDepth):
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

// skipped are folders of other people's code, and of tools.
func skipped(name string) bool {
	return strings.HasPrefix(name, ".") || slices.Contains([]string{"node_modules", "vendor", "third_party", "target", "testdata", "dist", "build"}, name)
}

// A File is one file of the policy, by its name in the policy's folder.
type File struct {
	Name    string
	Content []byte
}

// Files are the policy for a repository of these kinds. A kind that there is not is an
// error; without any it is the part that fits every repository.
func Files(of []string) ([]File, error) {
	of = slices.Compact(slices.Sorted(slices.Values(of)))
	for _, kind := range of {
		if !slices.Contains(Kinds(), kind) {
			return nil, fmt.Errorf("there is no kind %q: there are %s", kind, strings.Join(Kinds(), ", "))
		}
	}
	var files []File
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
			files = append(files, File{e.Name(), content})
		}
	}
	return append(files, File{"cases.yaml", cases}), nil
}
