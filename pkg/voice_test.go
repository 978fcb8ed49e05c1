// SPDX-License-Identifier: Apache-2.0

package pkg

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

// unplain matches words that CONTRIBUTING's "Language" section replaces.
var unplain = regexp.MustCompile(`(?i)\b(told|tells? (of|from|the|what|who|whether|that|its|it|them|you|a)|stands? (in|for|below|above|there|here|at|on|as|before|beside|alone|where|after|by)|` +
	`nobody|somebody|whoever|anybody|mend(s|ed|ing)?|of ours|but for|save for|asked of|at a desk|from a desk|comes by the|heed(s|ed)?|lets it be|` +
	`folders?|behaviour|organis(e|es|ed|ation|ations)|recognis(e|es|ed)|dearest|outcries|apologi[sz]e|knocks?|riddle)\b`)

// TestPlainLanguage finds such words in what people read: comments and messages in Go,
// policies, documents, workflows and the action.
func TestPlainLanguage(t *testing.T) {
	lanetest.SkipShort(t)
	files := trackedFiles(t, "*.go", "*.rego", "*.md", "*.yml", "policies/*.txt", "Dockerfile")
	if len(files) < 500 {
		t.Fatalf("only %d files", len(files))
	}
	for _, file := range files {
		if strings.Contains(file, "testdata/") || file == "pkg/voice_test.go" {
			continue
		}
		content, err := os.ReadFile(filepath.Join("..", file))
		if err != nil {
			continue // removed and not yet committed
		}
		if filepath.Ext(file) == ".go" {
			readGo(t, file, content)
			continue
		}
		for i, line := range strings.Split(string(content), "\n") {
			report(t, file, i+1, line)
		}
	}
}

// trackedFiles returns the paths of git's files that match one of the patterns, from the repository's root.
func trackedFiles(t *testing.T, patterns ...string) []string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", "..", "ls-files", "-z"}, patterns...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// keptNames are names in formats that stay.
var keptNames = regexp.MustCompile("\"(input\\.)?organisation\"|\"folder\"|json:\"folder\"|`(input\\.)?organisation`|nobody:x:65534:65534:nobody|-folder:|path\\|folder\\|")

func report(t *testing.T, file string, line int, text string) {
	t.Helper()
	text = keptNames.ReplaceAllString(text, "")
	if found := unplain.FindString(text); found != "" {
		t.Errorf("%s:%d: %q: %s", file, line, found, strings.TrimSpace(text))
	}
}

// readGo reports comments, and messages in files that are not tests.
func readGo(t *testing.T, file string, content []byte) {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, content, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	lines := func(at token.Pos, text string) {
		for i, line := range strings.Split(text, "\n") {
			report(t, file, set.Position(at).Line+i, line)
		}
	}
	for _, group := range f.Comments {
		for _, c := range group.List {
			lines(c.Pos(), c.Text)
		}
	}
	if strings.HasSuffix(file, "_test.go") {
		return
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.BasicLit); ok && s.Kind == token.STRING {
			lines(s.Pos(), s.Value)
		}
		return true
	})
}
