// SPDX-License-Identifier: Apache-2.0

package pkg

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/fumehood/fumehood/internal/kit/golden"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// participle matches names of one word that say what something is after it was done, not what a
// function does: ended, taken.
var participle = regexp.MustCompile(`(?i)^(\w{2,}ed|begun|bound|broken|built|chosen|done|drawn|found|given|gone|held|hidden|kept|known|left|lost|made|said|seen|sent|shown|spent|split|spoken|taken|told|unknown|written)$`)

// Verbs that look like participles, and Go's own name.
var plainVerbs = []string{"embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed", "succeed", "split", "Done"}

// Functions are named by a verb and its object. The share of names of one word, which few can search or
// guess, may only become smaller; testdata/participles.txt has the names that are still participles, and a
// new one needs another name. -update writes that list.
func TestFunctionNames(t *testing.T) {
	const maxOneWord = 0.20
	var participles []string
	all, oneWord := 0, 0
	for _, file := range sourceFiles(t) {
		for _, decl := range file.Decls {
			fn, isFunc := decl.(*ast.FuncDecl)
			if !isFunc {
				continue
			}
			name := fn.Name.Name
			if all++; strings.IndexFunc(name[1:], unicode.IsUpper) < 0 {
				oneWord++
				if participle.MatchString(name) && !slices.Contains(plainVerbs, name) {
					participles = append(participles, file.dir+" "+name)
				}
			}
			if len(name) > 40 {
				t.Errorf("%s: the name %s has %d letters", file.dir, name, len(name))
			}
		}
	}
	share := float64(oneWord) / float64(all)
	t.Logf("%d functions, %.0f %% have a name of one word", all, 100*share)
	if all < 5000 || share > maxOneWord {
		t.Errorf("%d of %d functions have a name of one word, which is more than before: use a verb and its object", oneWord, all)
	}
	slices.Sort(participles)
	golden.Compare(t, "../testdata/participles.txt", []byte(strings.Join(slices.Compact(participles), "\n")+"\n"))
}

// Code that a page names is there: what is written as a call in ARCHITECTURE's path of a command, or as Type.Method
// between backquotes, is a function, a field or a type of the product.
func TestNamesInArchitecture(t *testing.T) {
	declared := map[string]bool{}
	for _, file := range sourceFiles(t) {
		ast.Inspect(file.File, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				declared[n.Name.Name] = true
			case *ast.TypeSpec:
				declared[n.Name.Name] = true
			case *ast.Field:
				for _, name := range n.Names {
					declared[name.Name] = true
				}
			}
			return true
		})
	}
	pages := append(golden.Read(t, "../docs/ARCHITECTURE.md"), golden.Read(t, "../docs/architecture/changes.md")...)
	found := 0
	for _, code := range shownCode.FindAllString(string(pages), -1) {
		for _, name := range qualifiedName.FindAllStringSubmatch(code, -1) {
			if !slices.Contains(fileExtensions, name[1]) {
				if found++; !declared[name[1]] {
					t.Errorf("a page of the architecture names %s, which is not in the code", name[0])
				}
			}
		}
	}
	if found < 40 {
		t.Errorf("the page names %d functions and fields", found)
	}
}

var (
	shownCode      = regexp.MustCompile("(?s)```.*?```|`[^`\n]+`")
	qualifiedName  = regexp.MustCompile(`\b[A-Za-z]+\.([A-Za-z]\w+)\b`)
	fileExtensions = []string{"go", "rego", "json", "md", "txt", "sh", "yml", "yaml"}
)

// A limit is read, lowered, compared and shown by its name in several places; each names every limit.
func TestLimitsAreEverywhere(t *testing.T) {
	for field := range reflect.TypeFor[proposal.Limits]().Fields() {
		name := regexp.MustCompile(`\b` + field.Name + `\b`)
		for _, path := range []string{"internal/author/replay/grant.go", "internal/gate/order/execution.go", "internal/github/action/limits.go",
			"internal/kit/document/values.go", "internal/policy/input.go", "internal/policy/limit.go", "pkg/proposal/decision.go", "internal/evidence/report/web.go"} {
			text, err := os.ReadFile("../" + path)
			if err != nil {
				t.Fatal(err)
			}
			if !name.Match(text) {
				t.Errorf("%s does not name the limit %s", path, field.Name)
			}
		}
	}
}

// A namedFile is a file of the product with its directory.
type namedFile struct {
	dir string
	*ast.File
}

// sourceFiles parses the product's files, without tests.
func sourceFiles(t *testing.T) (files []namedFile) {
	t.Helper()
	for _, path := range trackedFiles(t, "*.go") {
		if strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata/") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), "../"+path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, namedFile{path[:strings.LastIndexByte(path, '/')], parsed})
	}
	return files
}
