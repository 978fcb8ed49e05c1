// SPDX-License-Identifier: Apache-2.0

package pkg

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/THREATS.md names only tests that exist, no number twice, and for each threat at least one
// test that every change must pass: one of the default, the end-to-end or the node lane.
func TestThreats(t *testing.T) {
	page, err := os.ReadFile("../docs/THREATS.md")
	if err != nil {
		t.Fatal(err)
	}
	known := testLanes(t)
	numbers, named := map[string]bool{}, 0
	row := regexp.MustCompile(`^\| (\d+) \|`)
	quoted := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(string(page)) {
		threat := ""
		if m := row.FindStringSubmatch(line); m != nil {
			threat = m[1]
			if numbers[threat] {
				t.Errorf("threat %s has two rows", threat)
			}
			numbers[threat] = true
		}
		everyChange := false
		for _, m := range quoted.FindAllStringSubmatch(line, -1) {
			lanes, isTest := lanesOf(t, known, m[1])
			if !isTest {
				continue
			}
			named++
			if len(lanes) == 0 {
				t.Errorf("%s does not exist", m[1])
			}
			for _, lane := range lanes {
				everyChange = everyChange || lane == "" || lane == "e2e" || lane == "node"
			}
		}
		if threat != "" && !everyChange {
			t.Errorf("threat %s has no test that every change must pass", threat)
		}
	}
	if named < 400 || len(numbers) < 100 {
		t.Errorf("%d tests and %d threats are named", named, len(numbers))
	}
}

// lanesOf returns the lanes in which a name of the page is tested, and whether it names a test.
func lanesOf(t *testing.T, known map[string][]string, name string) (found []string, isTest bool) {
	t.Helper()
	switch {
	case regexp.MustCompile(`^(Test|Fuzz)[A-Z]\w*$`).MatchString(name):
		return known[name], true
	case strings.HasSuffix(name, ".txtar"):
		for _, lane := range []string{"", "e2e", "nightly"} {
			if _, err := os.Stat(filepath.Join("../testdata/script", lane, filepath.Base(name))); err == nil {
				found = append(found, lane)
			}
		}
		return found, true
	case regexp.MustCompile(`^(cmd|internal|k8s|pkg|policies)/`).MatchString(name):
		if paths, _ := filepath.Glob("../" + name); len(paths) == 0 {
			t.Errorf("%s does not exist", name)
		} else if strings.HasSuffix(name, "_test.rego") || strings.HasSuffix(name, "_test.go") {
			return []string{""}, true
		}
	}
	return nil, false
}

// testLanes returns the lanes in which each test and fuzz target is declared.
func testLanes(t *testing.T) map[string][]string {
	t.Helper()
	lanes := map[string][]string{}
	for _, file := range testFiles(t) {
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil {
				lanes[fn.Name.Name] = append(lanes[fn.Name.Name], file.lane)
			}
		}
	}
	return lanes
}
