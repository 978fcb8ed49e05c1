// SPDX-License-Identifier: Apache-2.0

package order

import (
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/policy/facts"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/internal/source/setup"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A toolScope is what a tool uses of a repository.
type toolScope struct {
	language string   // of package setup; "" for any
	below    bool     // also the projects below the directory that it runs in
	names    bool     // also those of the paths that its words name
	dir      []string // its options that name the directory to run in, or a file in it
	// installed means that set-up installs it: without that, another of its name may run.
	installed bool
}

// scopes are those of tools of which it is known. Any other program, such as make, an interpreter or
// a script, may use everything in and below its directory.
var scopes = map[string]toolScope{}

func init() {
	for _, s := range []struct {
		tools string
		scope toolScope
	}{
		{"go", toolScope{language: setup.Go, names: true, dir: []string{"-C"}}},
		{"dlv golangci-lint gotestsum govulncheck staticcheck", toolScope{language: setup.Go, names: true}},
		{"cargo", toolScope{language: setup.Rust, names: true, dir: []string{"-C", "--manifest-path"}}},
		{"clippy-driver rustc rustdoc rustfmt", toolScope{language: setup.Rust, names: true}},
		{"bun npm pnpm yarn", toolScope{language: setup.Node, below: true, dir: []string{"-C", "--prefix", "--dir", "--cwd"}}},
		{"lerna nx turbo", toolScope{language: setup.Node, below: true, dir: []string{"--cwd"}}},
		{"npx pnpx bunx", toolScope{language: setup.Node, names: true, dir: []string{"-C", "--prefix"}}},
		{"ava biome eslint jest mocha prettier tsc tsx vitest", toolScope{language: setup.Node, names: true, dir: []string{"--cwd", "--prefix", "--root", "--rootDir", "-p", "--project"}, installed: true}},
		{"black coverage flake8 mypy pylint pyright pytest ruff", toolScope{language: setup.Python, names: true, dir: []string{"--rootdir"}, installed: true}},
		{"pdm pip pip3 pipenv poetry uv", toolScope{language: setup.Python, names: true, dir: []string{"-C", "--directory", "--project"}}},
		{"bundle", toolScope{language: setup.Ruby, dir: []string{"--gemfile"}}},
		{"rake rspec rubocop", toolScope{language: setup.Ruby, installed: true}},
		{"mvn mvnw", toolScope{language: setup.Java, dir: []string{"-f", "--file"}}},
		{"gradle gradlew", toolScope{language: setup.Java, dir: []string{"-p", "--project-dir"}}},
		{"dotnet", toolScope{language: "dotnet", names: true, dir: []string{"--project"}}},
		{"composer", toolScope{language: "php", dir: []string{"-d", "--working-dir"}}},
		{"pest phpcs phpstan phpunit psalm", toolScope{language: "php", names: true, dir: []string{"-c", "--configuration"}, installed: true}},
		{"iex mix", toolScope{language: "elixir"}},
		{"dart flutter", toolScope{language: "dart", names: true, dir: []string{"-C", "--directory"}}},
		{"melos", toolScope{language: "dart", below: true}},
		{"deno", toolScope{names: true, below: true, dir: []string{"-c", "--config"}}}, // Node's projects, too
		{"conda mamba micromamba pixi", toolScope{below: true, dir: []string{"--manifest-path"}}},
		{"swift swift-format swiftc swiftlint xcrun", toolScope{language: "swift", dir: []string{"--package-path"}}},
		{"gmake just make ninja task", toolScope{below: true, dir: []string{"-C", "--directory", "-d", "--dir", "--working-directory"}}},
	} {
		for tool := range splitWords(s.tools) {
			scopes[tool] = s.scope
		}
	}
}

// findTouches returns what c may use of the repository, in any of cwds.
func findTouches(grammars facts.Grammars, c proposal.Command, cwds []string) (touches []setup.Touch) {
	tool := facts.ToolName(path.Base(c.Program))
	if module := findPythonModule(tool, c.Args); module != "" {
		tool = module
	}
	scope, known := scopes[tool]
	if tool == "python3" && len(c.Args) == 2 && isVersionWord(c.Args[1].Value) {
		scope, known = toolScope{language: setup.Python}, true
	}
	if !known || !isInstalled(c) || tool == "go" && slices.ContainsFunc(c.Args, isGenerate) {
		scope, known = toolScope{below: true}, false
	}
	into, static := readOptionValues(c.Args, scope.dir)
	if !static {
		return []setup.Touch{{Dir: ".", Below: true}}
	}
	for _, cwd := range cwds {
		at := cwd
		for _, dir := range into {
			at = joinDir(at, dir)
		}
		touch := makeTouch(at, scope)
		if tool == "go" {
			touch.Packages, touch.Builds = findGoPackages(grammars, c)
		}
		touches = append(touches, touch)
		if known && !scope.names || touch.Packages != nil {
			continue
		}
		for _, w := range c.Args[min(1, len(c.Args)):] { // an assignment has none
			named := readNamedPath(w)
			if !known && !strings.HasPrefix(named, "/") && !strings.Contains(named, "..") {
				continue // it is below
			}
			if named != "" && !strings.HasPrefix(named, "-") {
				dir := cleanDir(cutWorkspace(joinDir(at, named)))
				touches = append(touches, setup.Touch{Dir: dir, Language: scope.language})
			}
		}
	}
	return touches
}

// isGenerate reports whether a word is go's subcommand that runs the commands in files.
func isGenerate(w proposal.Word) bool { return w.Value == "generate" }

// maxPackages is how many patterns of packages of one command are compiled by name.
const maxPackages = 32

var goPattern = pattern.New(`^\.(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*(/\.\.\.)?/?$`)

// findGoPackages returns the patterns of the packages that a go command compiles, nil if they are not
// known, and whether it vets none of them.
func findGoPackages(grammars facts.Grammars, c proposal.Command) (patterns []string, builds bool) {
	read := grammars.Read(facts.ProgramOf(c, insideSandbox), c.Args[1:])
	builds = read.Sub != "test" && read.Sub != "generate"
	if !slices.Contains([]string{"build", "list", "test", "vet"}, read.Sub) || len(read.Unknown) > 0 || read.Loose {
		return nil, builds
	}
	patterns = []string{}
	for _, w := range read.Operands {
		if !w.Static || !goPattern.MatchString(w.Value) {
			return nil, builds
		}
		patterns = append(patterns, path.Clean(w.Value))
	}
	switch {
	case len(patterns) > maxPackages:
		return nil, builds
	case len(patterns) == 0:
		return []string{"."}, builds
	}
	return patterns, builds
}

// makeTouch returns the touch of a tool that runs in dir, which is absolute, or "" if it is not known.
func makeTouch(dir string, scope toolScope) setup.Touch {
	rel := cutWorkspace(dir)
	if rel == "" {
		return setup.Touch{Dir: ".", Below: true}
	}
	return setup.Touch{Dir: rel, Below: scope.below, Language: scope.language}
}

// cutWorkspace returns dir relative to the workspace, or "" if it is not known or elsewhere.
func cutWorkspace(dir string) string {
	if dir == sandbox.Workspace {
		return "."
	}
	rel, inside := strings.CutPrefix(dir, sandbox.Workspace+"/")
	if !inside {
		return ""
	}
	return rel
}

// joinDir returns name in dir, "" if dir is not known.
func joinDir(dir, name string) string {
	switch {
	case path.IsAbs(name):
		return path.Clean(name)
	case dir == "":
		return ""
	}
	return path.Join(dir, name)
}

// readNamedPath returns the path in a word: of ./x/..., x/test_a.py::TestB, and x/*.py the part that
// says which directory.
func readNamedPath(w proposal.Word) string {
	name, _, _ := strings.Cut(w.Value, "::")
	name = strings.TrimSuffix(strings.TrimSuffix(name, "..."), "/")
	if !w.Static {
		if !strings.Contains(name, "/") {
			return ""
		}
		name = path.Dir(name)
	}
	return name
}

// isInstalled reports whether c runs a program that the system or set-up has installed, or the wrapper of a
// build tool, and not a file of the repository that only has the name of one.
func isInstalled(c proposal.Command) bool {
	place := facts.ProgramOf(c, insideSandbox).Place
	return place == "lookup" || place == "system" ||
		isMade.MatchString(c.Program) || isVendored.MatchString(c.Program) ||
		slices.Contains([]string{"gradlew", "mvnw"}, path.Base(c.Program))
}

// readOptionValues returns the values of options among args, up to "--". static is false if one is known only at
// run time, and if there are several: tools differ in what that means.
func readOptionValues(args []proposal.Word, options []string) (values []string, static bool) {
	for i, w := range args {
		name, value, attached := strings.Cut(w.Value, "=")
		short := slices.IndexFunc(options,
			func(o string) bool { return len(o) == 2 && len(w.Value) > 2 && strings.HasPrefix(w.Value, o) })
		switch {
		case i == 0:
			continue
		case w.Value == "--":
			return values, len(values) <= 1
		case slices.Contains(options, name) && !attached:
			if i+1 == len(args) {
				continue
			}
			w, value = args[i+1], args[i+1].Value
		case short >= 0 && !strings.HasPrefix(w.Value, "--"): // make -Cweb
			value = w.Value[2:]
		case !slices.Contains(options, name):
			continue
		}
		if !w.Static {
			return nil, false
		}
		values = append(values, value)
	}
	return values, len(values) <= 1
}

// findPythonModule returns the tool of scopes that python3 -m runs, or "".
func findPythonModule(tool string, args []proposal.Word) string {
	for i, w := range args {
		if tool == "python3" && w.Value == "-m" && i+1 < len(args) {
			if _, known := scopes[args[i+1].Value]; known {
				return args[i+1].Value
			}
			if args[i+1].Value == "unittest" {
				return "pytest" // it has the same words
			}
		}
	}
	return ""
}
