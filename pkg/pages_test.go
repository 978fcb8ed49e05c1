// SPDX-License-Identifier: Apache-2.0

package pkg

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// relativeLink matches a link of Markdown to a file of the repository or a heading, and codeSpan what is no link.
var (
	relativeLink = regexp.MustCompile(`\]\(([^):#\s]*)(?:#([^)\s]*))?\)`)
	codeSpan     = regexp.MustCompile("`[^`\n]*`")
	heading      = regexp.MustCompile(`(?m)^#+ (.*)$`)
	unlinked     = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// hasHeading reports whether a page has a heading to which GitHub gives an anchor.
func hasHeading(page []byte, anchor string) bool {
	for _, found := range heading.FindAllSubmatch(page, -1) {
		if strings.ReplaceAll(strings.ToLower(unlinked.ReplaceAllString(string(found[1]), "")), " ", "-") == anchor {
			return true
		}
	}
	return false
}

// Links of the pages lead to existing files and headings, and the README and CONTRIBUTING lead to the pages that a
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
			target := page
			if found[1] != "" {
				target = filepath.Join(filepath.Dir(page), found[1])
			}
			if _, err := os.Stat(filepath.Join("..", target)); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", page, found[1])
			} else if found[2] != "" {
				text, err := os.ReadFile(filepath.Join("..", target))
				if err != nil || !hasHeading(text, found[2]) {
					t.Errorf("%s: %s has no heading #%s", page, target, found[2])
				}
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
