// SPDX-License-Identifier: Apache-2.0

package pkg

import (
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/golden"
)

const threatsPage = "../docs/THREATS.md"

// The pages of docs/threats name only tests that exist, no number twice, and for each threat at least one
// test that every change must pass: one of the default, the end-to-end or the node lane. THREATS.md has a row for each
// threat of the page that its heading links to.
func TestThreats(t *testing.T) {
	known := testLanes(t)
	numbers, named := map[string]bool{}, 0
	sections := strings.Split(string(golden.Read(t, threatsPage)), "\n## ")
	index := sections[0]
	for _, section := range sections[1:] {
		head, _, _ := strings.Cut(section, "\n")
		link := relativeLink.FindStringSubmatch(head)
		if link == nil {
			t.Fatalf("the heading %q links to no page", head)
		}
		index += "\n## " + head + "\n\n| # | threat |\n| --- | --- |\n"
		for _, threat := range strings.Split(string(golden.Read(t, filepath.Join("../docs", link[1]))), "\n## ")[1:] {
			title, text, _ := strings.Cut(threat, "\n")
			number, name, _ := strings.Cut(title, ". ")
			if numbers[number] {
				t.Errorf("%s: threat %s is there twice", link[1], number)
			}
			numbers[number] = true
			index += fmt.Sprintf("| [%s](%s#%s) | %s |\n", number, link[1], anchorOf(title), name)
			named += checkTestsOfThreat(t, known, number, text)
		}
	}
	if named < 400 || len(numbers) < 100 {
		t.Errorf("%d tests and %d threats are named", named, len(numbers))
	}
	golden.Compare(t, threatsPage, []byte(index))
}

// checkTestsOfThreat checks the tests that a threat's text names, and returns their number.
func checkTestsOfThreat(t *testing.T, known map[string][]string, threat, text string) (named int) {
	t.Helper()
	everyChange := false
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text, -1) {
		lanes, isTest := lanesOf(t, known, m[1])
		if !isTest {
			continue
		}
		named++
		if len(lanes) == 0 {
			t.Errorf("threat %s: %s does not exist", threat, m[1])
		}
		for _, lane := range lanes {
			everyChange = everyChange || lane == "" || lane == "e2e" || lane == "node"
		}
	}
	if !everyChange {
		t.Errorf("threat %s has no test that every change must pass", threat)
	}
	return named
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
