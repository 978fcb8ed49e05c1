// SPDX-License-Identifier: Apache-2.0

package pkg

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

// A dependency is one row of CONTRIBUTING's table: modules, or packages of one, and
// which of this module's packages may import them, in their code and in their tests.
type dependency struct {
	modules, code, tests []string
	anyTests             bool
}

var quoted = regexp.MustCompile("`([^`]+)`")

// dependencies reads the table. "tests" without names means the tests of every package.
func dependencies(t *testing.T) []dependency {
	t.Helper()
	page, err := os.ReadFile("../.github/CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| module | may be imported by |\n| --- | --- |\n")
	var rows []dependency
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 {
			break
		}
		code, tests, tested := strings.Cut(cells[2], "tests")
		rows = append(rows, dependency{names(cells[1]), names(code), names(tests), tested && len(names(tests)) == 0})
	}
	if len(rows) == 0 {
		t.Fatal("CONTRIBUTING.md has no table of dependencies")
	}
	return rows
}

func names(cell string) (found []string) {
	for _, match := range quoted.FindAllStringSubmatch(cell, -1) {
		found = append(found, match[1])
	}
	return found
}

// within reports whether a path is one of the prefixes or below one.
func within(path string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") })
}

// CONTRIBUTING's table lists every imported module, and each package that may import it.
func TestDependencies(t *testing.T) {
	lanetest.SkipShort(t)
	rows := dependencies(t)
	used := map[string]bool{}
	for _, p := range packages(t) {
		from := strings.TrimPrefix(p.ImportPath, module)
		for _, path := range p.Imports {
			if !imports(rows, used, path, func(d dependency) bool { return within(from, d.code) }) {
				t.Errorf("%s imports %s, which CONTRIBUTING's table does not say", from, path)
			}
		}
		for _, path := range slices.Concat(p.TestImports, p.XTestImports) {
			if !imports(rows, used, path, func(d dependency) bool { return d.anyTests || within(from, d.code) || within(from, d.tests) }) {
				t.Errorf("a test of %s imports %s, which CONTRIBUTING's table does not say", from, path)
			}
		}
	}
	for _, row := range rows {
		for _, name := range row.modules {
			if !used[name] {
				t.Errorf("CONTRIBUTING's table names %s, which nothing imports", name)
			}
		}
	}
}

// imports finds the row of a path that belongs neither to this module nor to the
// standard library.
func imports(rows []dependency, used map[string]bool, path string, may func(dependency) bool) bool {
	if strings.HasPrefix(path, module) || !strings.Contains(strings.Split(path, "/")[0], ".") {
		return true
	}
	for _, row := range rows {
		at := slices.IndexFunc(row.modules, func(name string) bool { return within(path, []string{name}) })
		if at >= 0 && may(row) {
			used[row.modules[at]] = true
			return true
		}
	}
	return false
}

// Every direct requirement of go.mod has a row.
func TestDirectDependencies(t *testing.T) {
	lanetest.SkipShort(t)
	out, err := exec.Command("go", "list", "-m", "-f", "{{if not (or .Main .Indirect)}}{{.Path}}{{end}}", "all").Output()
	if err != nil {
		t.Fatal(err)
	}
	rows := dependencies(t)
	for _, path := range strings.Fields(string(out)) {
		if !slices.ContainsFunc(rows, func(d dependency) bool {
			return slices.ContainsFunc(d.modules, func(name string) bool { return within(name, []string{path}) })
		}) {
			t.Errorf("go.mod requires %s, which CONTRIBUTING's table does not name", path)
		}
	}
}
