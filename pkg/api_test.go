// SPDX-License-Identifier: Apache-2.0

package pkg

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/golden"
)

// promised are the packages whose exported names are the API.
var promised = []string{"pkg/audit", "pkg/audit/journal", "pkg/gate", "pkg/plan", "pkg/proposal", "pkg/report"}

// testdata/api.txt lists the API, a name a line, and the types of other packages of this module in it.
// A change of the file is a change of the API, and needs a line in CHANGELOG.md.
func TestAPI(t *testing.T) {
	var lines []string
	for _, dir := range promised {
		a := &apiReader{dir: dir, set: token.NewFileSet(), uses: map[string]bool{}}
		files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(files), err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				a.read(t, file)
			}
		}
		t.Logf("%s: %d names, %d with fields and methods", dir, a.names, len(a.lines))
		for use := range a.uses {
			a.lines = append(a.lines, "pkg "+path.Base(dir)+", uses "+use)
		}
		slices.Sort(a.lines)
		lines = append(lines, slices.Compact(a.lines)...)
	}
	golden.Compare(t, "../testdata/api.txt", []byte(strings.Join(lines, "\n")+"\n"))
}

// An apiReader lists the exported names of one package.
type apiReader struct {
	dir     string
	set     *token.FileSet
	imports map[string]string // of the file that is read
	lines   []string
	names   int
	uses    map[string]bool
}

func (a *apiReader) read(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := parser.ParseFile(a.set, file, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	a.imports = map[string]string{}
	for _, i := range tree.Imports {
		imported := strings.Trim(i.Path.Value, `"`)
		name := path.Base(imported)
		if i.Name != nil {
			name = i.Name.Name
		}
		a.imports[name] = imported
	}
	for _, d := range tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			a.function(d)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				a.spec(d.Tok, s)
			}
		}
	}
}

// add lists a name; with depth, one of a type.
func (a *apiReader) add(depth bool, format string, args ...any) {
	if !depth {
		a.names++
	}
	a.lines = append(a.lines, "pkg "+path.Base(a.dir)+", "+fmt.Sprintf(format, args...))
}

func (a *apiReader) function(d *ast.FuncDecl) {
	if !d.Name.IsExported() {
		return
	}
	if d.Recv == nil {
		a.add(false, "func %s%s", d.Name.Name, a.signature(d.Type))
		return
	}
	if name := strings.TrimSuffix(receiver(d), "."); ast.IsExported(name) {
		a.add(true, "method (%s) %s%s", a.text(d.Recv.List[0].Type), d.Name.Name, a.signature(d.Type))
	}
}

func (a *apiReader) spec(kind token.Token, s ast.Spec) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		for i, name := range s.Names {
			if !name.IsExported() {
				continue
			}
			line := kind.String() + " " + name.Name
			if s.Type != nil {
				line += " " + a.text(s.Type)
			}
			if kind == token.CONST && i < len(s.Values) {
				line += " = " + a.text(s.Values[i])
			}
			a.add(false, "%s", line)
		}
	case *ast.TypeSpec:
		if s.Name.IsExported() {
			a.typeSpec(s)
		}
	}
}

func (a *apiReader) typeSpec(s *ast.TypeSpec) {
	switch x := s.Type.(type) {
	case *ast.StructType:
		a.add(false, "type %s struct", s.Name.Name)
		for _, f := range x.Fields.List {
			tag := ""
			if f.Tag != nil {
				tag = " " + f.Tag.Value
			}
			if len(f.Names) == 0 {
				a.add(true, "type %s struct, embedded %s%s", s.Name.Name, a.text(f.Type), tag)
			}
			for _, name := range f.Names {
				if name.IsExported() {
					a.add(true, "type %s struct, %s %s%s", s.Name.Name, name.Name, a.text(f.Type), tag)
				}
			}
		}
	case *ast.InterfaceType:
		a.add(false, "type %s interface", s.Name.Name)
		for _, f := range x.Methods.List {
			if method, ok := f.Type.(*ast.FuncType); ok {
				a.add(true, "type %s interface, %s%s", s.Name.Name, f.Names[0].Name, a.signature(method))
			} else {
				a.add(true, "type %s interface, embedded %s", s.Name.Name, a.text(f.Type))
			}
		}
	default:
		assign := ""
		if s.Assign.IsValid() {
			assign = "= "
		}
		a.add(false, "type %s %s%s", s.Name.Name, assign, a.text(s.Type))
	}
}

// signature prints parameters and results without their names.
func (a *apiReader) signature(f *ast.FuncType) string {
	params, results := a.fieldTypes(f.Params), a.fieldTypes(f.Results)
	out := a.typeParams(f) + "(" + strings.Join(params, ", ") + ")"
	switch len(results) {
	case 0:
		return out
	case 1:
		return out + " " + results[0]
	}
	return out + " (" + strings.Join(results, ", ") + ")"
}

func (a *apiReader) typeParams(f *ast.FuncType) string {
	if f.TypeParams == nil {
		return ""
	}
	var all []string
	for _, p := range f.TypeParams.List {
		for _, name := range p.Names {
			all = append(all, name.Name+" "+a.text(p.Type))
		}
	}
	return "[" + strings.Join(all, ", ") + "]"
}

func (a *apiReader) fieldTypes(list *ast.FieldList) (types []string) {
	if list == nil {
		return nil
	}
	for _, f := range list.List {
		for range max(1, len(f.Names)) {
			types = append(types, a.text(f.Type))
		}
	}
	return types
}

// text prints an expression on one line, and notes the types of this module in it.
func (a *apiReader) text(x ast.Node) string {
	ast.Inspect(x, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if dir, ours := strings.CutPrefix(a.imports[lastName(s.X)], module); ours && !slices.Contains(promised, dir) {
				a.uses[dir+"."+s.Sel.Name] = true
			}
		}
		return true
	})
	if f, ok := x.(*ast.FuncType); ok {
		return "func" + a.signature(f)
	}
	var b bytes.Buffer
	if err := printer.Fprint(&b, a.set, x); err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
