// SPDX-License-Identifier: Apache-2.0

package pkg

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// anchorOf returns the anchor that GitHub gives to a heading.
func anchorOf(heading string) string {
	return strings.ReplaceAll(strings.ToLower(unlinked.ReplaceAllString(heading, "")), " ", "-")
}

// hasHeading reports whether a page has a heading with an anchor.
func hasHeading(page []byte, anchor string) bool {
	for _, found := range heading.FindAllSubmatch(page, -1) {
		if anchorOf(string(found[1])) == anchor {
			return true
		}
	}
	return false
}

// generatedPages are reference that tests write: only a reader with a word to look for opens them.
var generatedPages = []string{"docs/COMMANDS.md", "docs/ERRORS.md", "docs/INPUTS.md"}

const maxWords = 1500 // of a page that people read from its beginning

// Links of the pages lead to existing files and headings. The README and CONTRIBUTING lead to the pages that a
// newcomer needs, and docs/README.md to every page of docs, in three clicks. None of these is longer than maxWords.
func TestPages(t *testing.T) {
	linked := map[string][]string{}
	pages := trackedFiles(t, "*.md")
	for _, page := range pages {
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
		inDocs := strings.HasPrefix(page, "docs/")
		if words := len(strings.Fields(string(text))); inDocs && words > maxWords && !slices.Contains(generatedPages, page) {
			t.Errorf("%s has %d words: move a part that few readers need to a page of its own", page, words)
		}
	}
	reached := []string{"docs/README.md"}
	for range 3 {
		for _, page := range reached {
			reached = append(reached, linked[page]...)
		}
	}
	for _, page := range pages {
		if strings.HasPrefix(page, "docs/") && !slices.Contains(reached, page) {
			t.Errorf("docs/README.md does not lead to %s in three clicks", page)
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
