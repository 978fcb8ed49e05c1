// SPDX-License-Identifier: Apache-2.0

package pkg

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/THREATS.md names only tests that exist, and no number twice.
func TestThreats(t *testing.T) {
	page, err := os.ReadFile("../docs/THREATS.md")
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllStringSubmatch(string(page), -1) {
		if numbers[m[1]] {
			t.Errorf("threat %s has two rows", m[1])
		}
		numbers[m[1]] = true
	}
	code := testCode(t)
	named := 0
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(string(page), -1) {
		switch name := m[1]; {
		case regexp.MustCompile(`^(Test|Fuzz)[A-Z]\w*$`).MatchString(name):
			named++
			if !strings.Contains(code, "\nfunc "+name+"(") {
				t.Errorf("test %s does not exist", name)
			}
		case strings.HasSuffix(name, ".txtar"):
			named++
			found, _ := filepath.Glob("../testdata/script/" + filepath.Base(name))
			long, _ := filepath.Glob("../testdata/script/e2e/" + filepath.Base(name))
			if len(found)+len(long) != 1 {
				t.Errorf("script %s does not exist", name)
			}
		case strings.HasPrefix(name, "pkg/") || strings.HasPrefix(name, "policies/"):
			if found, _ := filepath.Glob("../" + name); len(found) == 0 {
				t.Errorf("%s does not exist", name)
			}
		}
	}
	if named < 10 || len(numbers) < 50 {
		t.Errorf("%d tests and %d threats are named", named, len(numbers))
	}
}

// testCode returns the text of all tests.
func testCode(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		all.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
