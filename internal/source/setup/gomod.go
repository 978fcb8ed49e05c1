// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

var (
	goRequires = pattern.New(`(?m)^\s*require\b`)
	goUses     = pattern.New(`(?m)^\s*(?:use\s+)?("?\.{0,2}/?[A-Za-z0-9._/-]+"?)\s*(?://.*)?$`)
)

// detectGo detects modules. Downloading is all that tests need to work without a network.
// Compiling the dependencies, those of tests included, is a step of its own because it
// takes long and later commands share its cache: "go list -export" compiles them without
// linking, vetting or running anything of the repository, and leaves no file behind as "go
// build ./..." does for a single main package. With -e a package that does not compile is
// not a failure of set-up.
func (s *setupScan) detectGo(dir string) (covered []string) {
	work, inWorkspace := s.readText(dir, "go.work")
	mod, isModule := s.readText(dir, "go.mod")
	file := "go.mod"
	switch {
	case inWorkspace:
		file, covered = "go.work", goWorkUses(work)
	case !isModule:
		return nil
	}
	if !s.requireTool(dir, file, "go") {
		return covered
	}
	first := ""
	switch {
	case s.hasFile(dir, "vendor/modules.txt"):
		s.addNote(dirFile(dir, "vendor/modules.txt"), "modules are vendored, so that none is downloaded")
	case inWorkspace || goRequires.MatchString(mod):
		first = s.addStep(dir, step{id: "go", file: file, why: "download the modules",
			argv: []string{"go", "mod", "download"}, registry: "go"})
		if first == "" {
			return covered
		}
	default:
		return covered // nothing but the standard library
	}
	s.addStep(dir, step{
		id: "go-build", file: file, why: "compile dependencies and packages into the build cache", needs: first,
		optional: true, argv: slices.Concat(goCompile, packagePatterns(covered)),
	})
	if programs := s.listPrograms(dir, covered); len(programs) > 0 {
		s.addStep(dir, step{
			id: "go-vet", file: file, why: "vet dependencies, as go test does, into the build cache", needs: first,
			optional: true, argv: slices.Concat(goVet, programs),
		})
	}
	return covered
}

// listPrograms returns the packages that import most of the others, as patterns: those at the top of modules, and
// below cmd.
func (s *setupScan) listPrograms(dir string, uses []string) (patterns []string) {
	for _, module := range append([]string{"."}, uses[:min(len(uses), maxVetted)]...) {
		if module = path.Clean(module); !fs.ValidPath(module) {
			continue
		}
		for _, e := range s.listDirectory(path.Join(dir, module)) {
			switch name := "./" + path.Join(module, "cmd", "..."); {
			case strings.HasSuffix(e.Name(), ".go") && !slices.Contains(patterns, "./"+module):
				patterns = append(patterns, "./"+module)
			case e.Name() == "cmd" && e.IsDir():
				patterns = append(patterns, name)
			}
		}
	}
	for i, pattern := range patterns {
		if pattern == "./." {
			patterns[i] = "."
		}
	}
	return patterns
}

// goVet vets packages and all their dependencies in the way of go test, whose results no other command makes. It
// runs no test; a package with tests is linked, too.
var goVet = []string{"go", "test", "-c", "-o", "/dev/null"}

func isVetStep(step Step) bool {
	return len(step.Argv) > len(goVet) && slices.Equal(step.Argv[:len(goVet)], goVet)
}

// goCompile compiles the packages whose patterns follow, and their dependencies.
var goCompile = []string{"go", "list", "-e", "-export", "-test", "-deps", "-f", `{{""}}`}

// packagePatterns returns the patterns of all packages: "./..." does not match the other modules
// of a workspace.
func packagePatterns(uses []string) []string {
	var patterns []string
	for _, dir := range uses {
		if dir = path.Clean(dir); fs.ValidPath(dir) && len(dir) <= maxPattern {
			patterns = append(patterns, "./"+path.Join(dir, "..."))
		}
	}
	if len(patterns) == 0 {
		return []string{"./..."}
	}
	return patterns
}

// goWorkUses returns the directories of a go.work.
func goWorkUses(work string) []string {
	var dirs []string
	for _, m := range goUses.FindAllStringSubmatch(work, 64) {
		dirs = append(dirs, strings.Trim(m[1], `"`))
	}
	return dirs
}

func dirFile(dir, file string) string {
	if dir == "." {
		return file
	}
	return dir + "/" + file
}
