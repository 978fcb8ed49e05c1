// SPDX-License-Identifier: Apache-2.0

package pkg

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// relativeLink matches a link of Markdown to a file of the repository, and codeSpan what is no link.
var (
	relativeLink = regexp.MustCompile(`\]\(([^):#\s]+)(#[^)\s]*)?\)`)
	codeSpan     = regexp.MustCompile("`[^`\n]*`")
)

// Links of the pages lead to existing files, and the README and CONTRIBUTING lead to the pages that a
// newcomer needs.
func TestPages(t *testing.T) {
	linked := map[string][]string{}
	for _, page := range trackedFiles(t, "*.md") {
		if strings.Contains(page, "testdata/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", page))
		if err != nil {
			continue // removed and not yet committed
		}
		for _, found := range relativeLink.FindAllStringSubmatch(codeSpan.ReplaceAllString(string(text), ""), -1) {
			target := filepath.Join(filepath.Dir(page), found[1])
			if _, err := os.Stat(filepath.Join("..", target)); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", page, found[1])
			}
			linked[page] = append(linked[page], target)
		}
	}
	for page, targets := range map[string][]string{
		"README.md":               {"SCOPE.md", ".github/CONTRIBUTING.md", "docs/ERRORS.md"},
		".github/CONTRIBUTING.md": {"SCOPE.md"},
	} {
		for _, target := range targets {
			if !strings.Contains(strings.Join(linked[page], "\n"), target) {
				t.Errorf("%s does not link to %s", page, target)
			}
		}
	}
}
