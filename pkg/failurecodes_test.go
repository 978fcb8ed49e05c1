// SPDX-License-Identifier: Apache-2.0

package pkg

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// codeTypes are the types whose field Code is a stable code.
var codeTypes = []string{"StopError", "VerifyError", "Problem", "Failure"}

// A codeReader collects the codes of failures in the source: those of literals of codeTypes, and the
// arguments that functions put there.
type codeReader struct {
	files  []*sourceFile
	values map[string][]valueOf    // constants and variables of packages, by directory and name
	sinks  map[string]map[int]bool // parameters that become a code, by directory and function
	found  map[string]map[string]bool
	doubts map[string]bool // expressions that it cannot read
	set    *token.FileSet
}

type sourceFile struct {
	dir     string
	imports map[string]string // directories, or paths of other modules, by the name in the file
	tree    *ast.File
}

type valueOf struct {
	in   scope
	expr ast.Expr
}

// A scope is where an expression is: a file, a declaration in it, and the functions around it.
type scope struct {
	*sourceFile
	declaration *ast.FuncDecl
	around      []function
}

// A function is a declared one or a literal that a variable of a declaration has.
type function struct {
	key  string // directory and name
	kind *ast.FuncType
}

// readFailureCodes returns the directories in which each code is made, by code, and what it cannot read.
func readFailureCodes(t *testing.T) (codes map[string][]string, doubts []string) {
	t.Helper()
	r := &codeReader{values: map[string][]valueOf{}, sinks: map[string]map[int]bool{}, set: token.NewFileSet()}
	r.parse(t)
	for before := -1; before != r.countSinks(); {
		before = r.countSinks()
		r.found, r.doubts = map[string]map[string]bool{}, map[string]bool{}
		for _, f := range r.files {
			for _, d := range f.tree.Decls {
				r.walk(d, scope{sourceFile: f})
			}
		}
	}
	codes = map[string][]string{}
	for code, dirs := range r.found {
		for dir := range dirs {
			codes[code] = append(codes[code], dir)
		}
		slices.Sort(codes[code])
	}
	for doubt := range r.doubts {
		doubts = append(doubts, doubt)
	}
	slices.Sort(doubts)
	return codes, doubts
}

func (r *codeReader) countSinks() (n int) {
	for _, s := range r.sinks {
		n += len(s)
	}
	return n
}

func (r *codeReader) parse(t *testing.T) {
	t.Helper()
	for _, name := range trackedFiles(t, "*.go") {
		if strings.Contains(name, "testdata/") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			continue // removed and not yet committed
		}
		tree, err := parser.ParseFile(r.set, name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		f := &sourceFile{dir: path.Dir(name), imports: map[string]string{}, tree: tree}
		for _, i := range tree.Imports {
			imported := strings.Trim(i.Path.Value, `"`)
			local := path.Base(imported)
			if i.Name != nil {
				local = i.Name.Name
			}
			f.imports[local] = strings.TrimPrefix(imported, module)
		}
		r.files = append(r.files, f)
		r.declare(f)
	}
}

// declare records the constants and variables of a file's package.
func (r *codeReader) declare(f *sourceFile) {
	for _, d := range f.tree.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range g.Specs {
			v, ok := s.(*ast.ValueSpec)
			for i := 0; ok && i < len(v.Values); i++ {
				key := f.dir + "." + v.Names[i].Name
				r.values[key] = append(r.values[key], valueOf{scope{sourceFile: f}, v.Values[i]})
			}
		}
	}
}

// walk reads a node with all below it.
func (r *codeReader) walk(n ast.Node, in scope) {
	if d, ok := n.(*ast.FuncDecl); ok {
		in.declaration = d
		in.around = []function{{in.dir + "." + receiver(d) + d.Name.Name, d.Type}}
	}
	names := map[*ast.FuncLit]string{}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, x := range n.Rhs {
				literal, isFunc := x.(*ast.FuncLit)
				if name, isName := n.Lhs[min(i, len(n.Lhs)-1)].(*ast.Ident); isFunc && isName {
					names[literal] = name.Name
				}
			}
		case *ast.FuncLit:
			inner := in
			inner.around = append(slices.Clip(in.around), function{in.closure(names[n]), n.Type})
			r.walk(n.Body, inner)
			return false
		case *ast.CompositeLit:
			if slices.Contains(codeTypes, lastName(n.Type)) {
				for _, e := range n.Elts {
					if pair, ok := e.(*ast.KeyValueExpr); ok && lastName(pair.Key) == "Code" {
						r.read(pair.Value, in)
					}
				}
			}
		case *ast.CallExpr:
			for i := range r.sinksOf(n.Fun, in) {
				if i < len(n.Args) {
					r.read(n.Args[i], in)
				}
			}
		}
		return true
	})
}

func (s scope) closure(name string) string {
	if s.declaration != nil {
		name = receiver(s.declaration) + s.declaration.Name.Name + "." + name
	}
	return s.dir + "." + name
}

// receiver is the type of a method, with a dot.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	of := d.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	return lastName(of) + "."
}

// sinksOf returns the parameters of a called function that become codes. A method is known only where it
// is called by another one of its type.
func (r *codeReader) sinksOf(called ast.Expr, in scope) map[int]bool {
	switch f := called.(type) {
	case *ast.Ident:
		if s := r.sinks[in.closure(f.Name)]; s != nil {
			return s
		}
		return r.sinks[in.dir+"."+f.Name]
	case *ast.SelectorExpr:
		if imported := in.imports[lastName(f.X)]; imported != "" {
			return r.sinks[imported+"."+f.Sel.Name]
		}
		if d := in.declaration; d != nil && receiver(d) != "" && len(d.Recv.List[0].Names) > 0 && lastName(f.X) == d.Recv.List[0].Names[0].Name {
			return r.sinks[in.dir+"."+receiver(d)+f.Sel.Name]
		}
	}
	return nil
}

// read records the codes that an expression can have.
func (r *codeReader) read(x ast.Expr, in scope) {
	switch x := x.(type) {
	case *ast.BasicLit:
		if code, err := strconv.Unquote(x.Value); err == nil && code != "" {
			if r.found[code] == nil {
				r.found[code] = map[string]bool{}
			}
			r.found[code][in.dir] = true
		}
		return
	case *ast.Ident:
		if r.readName(x, in) {
			return
		}
	case *ast.SelectorExpr:
		imported := in.imports[lastName(x.X)]
		values := r.values[imported+"."+x.Sel.Name]
		for _, v := range values { // the code is made where the constant is used
			r.read(v.expr, scope{sourceFile: &sourceFile{in.dir, v.in.imports, v.in.tree}})
		}
		if len(values) > 0 || imported == "" && strings.EqualFold(x.Sel.Name, "code") { // or that of another failure
			return
		}
	case *ast.IndexExpr:
		r.read(x.X, in)
		return
	case *ast.CompositeLit:
		for _, e := range x.Elts {
			if pair, ok := e.(*ast.KeyValueExpr); ok {
				r.read(pair.Value, in)
			}
		}
		return
	}
	r.doubts[r.set.Position(x.Pos()).String()] = true
}

// readName reads a parameter, a local variable or constant, or a constant of the package.
func (r *codeReader) readName(x *ast.Ident, in scope) bool {
	for _, f := range slices.Backward(in.around) {
		position := 0
		for _, field := range f.kind.Params.List {
			for _, name := range field.Names {
				if name.Name == x.Name {
					r.readAssigned(x.Name, in)
					if r.sinks[f.key] == nil {
						r.sinks[f.key] = map[int]bool{}
					}
					r.sinks[f.key][position] = true
					return true
				}
				position++
			}
		}
	}
	if r.readAssigned(x.Name, in) {
		return true
	}
	values := r.values[in.dir+"."+x.Name]
	for _, v := range values {
		r.read(v.expr, v.in)
	}
	return len(values) > 0
}

// readAssigned reads what a declaration assigns to a name.
func (r *codeReader) readAssigned(name string, in scope) (assigned bool) {
	if in.declaration == nil {
		return false
	}
	ast.Inspect(in.declaration, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if local, ok := left.(*ast.Ident); ok && local.Name == name && len(n.Rhs) == len(n.Lhs) {
					r.read(n.Rhs[i], in)
					assigned = true
				}
			}
		case *ast.ValueSpec:
			for i, local := range n.Names {
				if local.Name == name && i < len(n.Values) {
					r.read(n.Values[i], in)
					assigned = true
				}
			}
		}
		return true
	})
	return assigned
}

// lastName is the last name of a type or an expression, or empty.
func lastName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		if x != nil {
			return x.Name
		}
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return ""
}
