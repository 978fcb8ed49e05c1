// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

// No code of fumehood can approve a pull request, request changes, merge, or submit, dismiss or
// change a review: it names no such event, and none of go-github's methods that do that. Only one
// place creates a review, with a constant event. The only mutations of the GraphQL API resolve a
// thread or unresolve it.
func TestOnlyComments(t *testing.T) {
	lanetest.SkipShort(t)
	events := map[string]bool{"APPROVE": true, "REQUEST_CHANGES": true}
	methods := map[string]bool{"SubmitReview": true, "DismissReview": true, "UpdateReview": true, "Merge": true, "UpdateBranch": true, "EnableAutoMerge": true}
	files, constant, mutations := 0, 0, 0
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == "githubtest" {
			return errOrSkip(err)
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		files++
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				if s, err := strconv.Unquote(n.Value); err == nil && events[s] {
					t.Errorf("%s names the event %s", path, s)
				} else if strings.HasPrefix(strings.TrimSpace(s), "mutation(") {
					mutations++
					if !threadMutation.MatchString(s) {
						t.Errorf("%s has the mutation %s", path, s)
					}
				}
			case *ast.SelectorExpr:
				if of, ok := n.X.(*ast.SelectorExpr); ok && of.Sel.Name == "PullRequests" && (methods[n.Sel.Name] || n.Sel.Name == "CreateReview") {
					t.Errorf("%s calls %s", path, n.Sel.Name)
				}
			case *ast.Ident:
				if n.Name == "reviewEvent" {
					constant++
				}
			}
			return true
		})
		return nil
	})
	if err != nil || files < 300 || constant != 2 || mutations != 2 {
		t.Errorf("%d files, %d uses of the event, %d mutations: %v", files, constant, mutations, err)
	}
}

var threadMutation = regexp.MustCompile(`^mutation\(\$id: ID!\) \{ result: (un)?resolveReviewThread\(input: \{threadId: \$id\}\) \{ thread \{ isResolved \} \} \}$`)

func errOrSkip(err error) error {
	if err != nil {
		return err
	}
	return filepath.SkipDir
}
