// SPDX-License-Identifier: Apache-2.0

package pkg

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

// lanes are the build tags of tests. A file's name ends with its tag, and its tests begin with
// the prefix, if there is one, so that one pattern of go test's option -run selects a lane. Files without a tag
// are the default lane.
var lanes = []struct{ tag, suffix, prefix string }{
	{"nightly", "_nightly_test.go", "TestNightly"},
	{"e2e", "_e2e_test.go", "TestE2E"},
	// Those of the module in k8s run whole packages.
	{"cluster", "_cluster_test.go", ""},
	{"limits", "_limits_test.go", ""},
	{"node", "_node_test.go", ""},
}

// A testFile is a parsed test file with its lane: a build tag, or "" for the default lane.
type testFile struct {
	path, lane string
	*ast.File
}

// testFiles returns all test files of the repository.
func testFiles(t *testing.T) []testFile {
	t.Helper()
	files, err := parseTestFiles()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 300 {
		t.Fatalf("found %d test files", len(files))
	}
	return files
}

var parseTestFiles = sync.OnceValues(func() (files []testFile, err error) {
	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git") {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		lane, err := laneOf(parsed)
		files = append(files, testFile{path, lane, parsed})
		return err
	})
	return files, err
})

// laneOf returns the first tag of lanes without which a file is not compiled.
func laneOf(file *ast.File) (string, error) {
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if !constraint.IsGoBuild(comment.Text) || comment.Pos() > file.Package {
				continue
			}
			expr, err := constraint.Parse(comment.Text)
			if err != nil {
				return "", err
			}
			for _, lane := range lanes {
				with := func(tag string) bool { return tag != "race" }
				without := func(tag string) bool { return with(tag) && tag != lane.tag }
				if expr.Eval(with) && !expr.Eval(without) {
					return lane.tag, nil
				}
			}
		}
	}
	return "", nil
}

// testNames returns the tests, benchmarks excluded, that a file declares.
func (f testFile) testNames() (names []string) {
	for _, decl := range f.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") && fn.Name.Name != "TestMain" {
			names = append(names, fn.Name.Name)
		}
	}
	return names
}

// The name of a file and those of its tests say in which lane they are, and the other way around.
func TestLanesAreNamed(t *testing.T) {
	lanetest.SkipShort(t)
	for _, file := range testFiles(t) {
		for _, lane := range lanes {
			if is, named := file.lane == lane.tag, strings.HasSuffix(file.path, lane.suffix); is != named {
				t.Errorf("%s: has the tag %s: %v; is named so: %v", file.path, lane.tag, is, named)
			}
			for _, name := range file.testNames() {
				if is, named := file.lane == lane.tag, strings.HasPrefix(name, lane.prefix); is != named && lane.prefix != "" {
					t.Errorf("%s: %s: has the tag %s: %v; is named so: %v", file.path, name, lane.tag, is, named)
				}
			}
		}
	}
	entries, err := os.ReadDir("../testdata/script")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.IsDir() && entry.Name() != "e2e" && entry.Name() != "nightly" {
			t.Errorf("testdata/script/%s is not a lane", entry.Name())
		}
	}
}

// A test that tries a part of its cases tries all of them in the nightly lane: a test there calls it.
func TestSampledTestsRunWhole(t *testing.T) {
	lanetest.SkipShort(t)
	packages := map[string][]testFile{}
	for _, file := range testFiles(t) {
		if file.Name.Name == "sample" {
			continue // what selects the cases
		}
		packages[filepath.Dir(file.path)] = append(packages[filepath.Dir(file.path)], file)
	}
	sampled := 0
	for dir, files := range packages {
		calls, samples, whole := map[string][]string{}, map[string]bool{}, map[string]bool{}
		var tests []string
		for _, file := range files {
			for _, decl := range file.Decls {
				fn, ok := decl.(*ast.FuncDecl)
				if !ok || fn.Body == nil {
					continue
				}
				name := fn.Name.Name
				calls[name] = append(calls[name], namesIn(fn.Body)...)
				samples[name] = samples[name] || isSampling(fn.Body)
				if file.lane == "nightly" && strings.HasPrefix(name, "TestNightly") {
					for _, called := range namesIn(fn.Body) {
						whole[called] = true
					}
				} else if strings.HasPrefix(name, "Test") && name != "TestMain" && fn.Recv == nil {
					tests = append(tests, name)
				}
			}
		}
		for _, name := range tests {
			if !reaches(calls, name, samples, map[string]bool{}) {
				continue
			}
			sampled++
			if !whole[name] {
				t.Errorf("%s: %s tries a part of its cases, and no TestNightly calls it", dir, name)
			}
		}
	}
	if sampled < 30 {
		t.Errorf("only %d tests try a part of their cases", sampled)
	}
}

// reaches reports whether a function, or one that it calls, is in the set.
func reaches(calls map[string][]string, name string, set, seen map[string]bool) bool {
	if set[name] {
		return true
	}
	seen[name] = true
	return slices.ContainsFunc(calls[name], func(called string) bool {
		return !seen[called] && reaches(calls, called, set, seen)
	})
}

// namesIn returns the identifiers in a body.
func namesIn(body *ast.BlockStmt) []string {
	names := map[string]bool{}
	ast.Inspect(body, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			names[id.Name] = true
		}
		return true
	})
	return slices.Collect(maps.Keys(names))
}

// samplers are the functions that select cases, and which of their arguments says one in how many
// the default lane tries.
var samplers = map[string]int{"Of": 2, "Keys": 2, "Rounds": 2, "oneIn": 1, "keysOneIn": 1}

// isSampling reports whether a body selects a part of its cases itself.
func isSampling(body *ast.BlockStmt) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		name := ""
		switch fn := call.Fun.(type) {
		case *ast.Ident:
			name = fn.Name
		case *ast.SelectorExpr:
			if from, ok := fn.X.(*ast.Ident); ok && from.Name == "sample" {
				name = fn.Sel.Name
			}
		}
		at, is := samplers[name]
		if is && at < len(call.Args) {
			one, literal := call.Args[at].(*ast.BasicLit)
			found = found || !literal || one.Value != "1"
		}
		return true
	})
	return found
}

// Each line of .ci/budgets names a package that has tests, once.
func TestBudgetsNamePackages(t *testing.T) {
	data, err := os.ReadFile("../.ci/budgets")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		name := fields[0]
		if found, _ := filepath.Glob(filepath.Join("..", name, "*_test.go")); len(found) == 0 || seen[name] {
			t.Errorf("%s has no tests, or has two lines", name)
		}
		seen[name] = true
	}
	if len(seen) == 0 {
		t.Error("there are no budgets")
	}
}

// A lane of .ci/run fails if a test or its summary does, also where the caller looks at its status:
// there the shell goes on after a command that fails.
func TestFailedLaneFails(t *testing.T) {
	script, err := os.ReadFile("../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(script), "\nlane() {\n")
	body, _, found := strings.Cut(rest, "\n}\n")
	if !found {
		t.Fatal("the script has no function lane")
	}
	for _, test := range []struct{ tests, summary, want int }{{0, 0, 0}, {1, 0, 1}, {0, 1, 1}, {2, 1, 1}} {
		text := fmt.Sprintf("tools=/\npackages_of() { echo ./x; }\ngo() { return %d; }\ntestexec() { return %d; }\nlane() {\n%s\n}\nlane e2e e2e TestE2E || exit 1",
			test.tests, test.summary, body)
		c := exec.Command("bash", "-euo", "pipefail", "-c", text)
		out, _ := c.CombinedOutput()
		if c.ProcessState == nil || c.ProcessState.ExitCode() != test.want {
			t.Errorf("tests end with %d, the summary with %d: %v, want exit code %d; %s", test.tests, test.summary, c.ProcessState, test.want, out)
		}
	}
}
