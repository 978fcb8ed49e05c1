// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/kit/spelling"
	"github.com/fumehood/fumehood/internal/policy/module"
)

// checkReferences refuses data that is not the layer's, and names that its library does not
// have: for OPA both are undefined, and a rule that depends on them never holds.
func (c *checker) checkReferences(m *ast.Module) {
	for _, i := range m.Imports {
		if ref, ok := i.Path.Value.(ast.Ref); ok && ref[0].Value.Compare(ast.DefaultRootDocument.Value) == 0 {
			c.checkReference(m, i.Location, ref, true)
		}
	}
	eachReference(m, func(at *ast.Location, ref ast.Ref) { c.checkReference(m, at, ref, false) })
}

// eachReference calls do with each path below data that the rules of m read, imports resolved.
func eachReference(m *ast.Module, do func(*ast.Location, ast.Ref)) {
	for _, r := range m.Rules {
		read := func(at *ast.Location, ref ast.Ref) {
			full := ref
			if head, ok := ref[0].Value.(ast.Var); ok {
				if imported := module.ImportOf(m, head); imported != nil &&
					!slices.ContainsFunc(r.Head.Args, func(t *ast.Term) bool { return t.Equal(ref[0]) }) {
					full = append(imported[:len(imported):len(imported)], ref[1:]...)
				}
			}
			if full[0].Equal(ast.DefaultRootDocument) {
				do(at, full)
			}
		}
		var look func(*ast.Term) bool
		look = func(t *ast.Term) bool {
			switch v := t.Value.(type) {
			case ast.Ref:
				read(v[0].Location, v)
				for _, part := range v[1:] {
					ast.WalkTerms(part, look)
				}
				return true
			case ast.Var:
				read(t.Location, ast.Ref{t}) // an import's name alone
			}
			return false
		}
		ast.WalkTerms(r, look)
	}
}

// findDataProblems finds paths that the layer's data does not have, and data that nothing uses. For OPA a
// missing path is undefined, and a rule that depends on it never holds.
func (x *linter) findDataProblems() {
	if x.Shipped || x.Unread || len(x.Data) == 0 {
		return
	}
	used := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(x.Modules)) {
		eachReference(x.Modules[name], func(at *ast.Location, ref ast.Ref) {
			path := constantPath(ref)
			if first, _, _ := strings.Cut(path, "."); x.Data[first] == nil && path != "" {
				return
			}
			used[path] = true
			if missing, known := missingIn(x.Data, ref); missing != "" {
				x.addProblem(at, Wrong, lintData, fmt.Sprintf("the layer's data has no %s", missing),
					cmp.Or(module.SuggestName(missing[strings.LastIndexByte(missing, '.')+1:], known),
						"add it to the data file"))
			}
		})
	}
	passed := map[string]bool{}
	for path := range used {
		for at := strings.LastIndexByte(path, '.'); at > 0; at = strings.LastIndexByte(path[:at], '.') {
			passed[path[:at]] = true
		}
	}
	if !used[""] {
		x.findUnusedData("", x.Data, used, passed)
	}
}

// missingIn is the beginning of ref that data does not have, or "", and the names that are there.
func missingIn(data any, ref ast.Ref) (missing string, known []string) {
	path := "data"
	for _, t := range ref[1:] {
		object, isObject := data.(map[string]any)
		name, isName := t.Value.(ast.String)
		if !isObject || !isName {
			return "", nil
		}
		path += "." + string(name)
		next, found := object[string(name)]
		if !found {
			return path, slices.Sorted(maps.Keys(object))
		}
		data = next
	}
	return "", nil
}

// findUnusedData reports the objects and values of data that no used path reaches or passes.
func (x *linter) findUnusedData(prefix string, data map[string]any, used, passed map[string]bool) {
	for _, name := range slices.Sorted(maps.Keys(data)) {
		path := prefix + name
		below, isObject := data[name].(map[string]any)
		switch {
		case used[path]:
		case !passed[path]:
			x.addProblem(nil, Doubtful, lintData, fmt.Sprintf("nothing uses data.%s", path),
				"remove it, or use it in a rule")
		case isObject:
			x.findUnusedData(path+".", below, used, passed)
		}
	}
}

// checkReference checks one path below data.
func (c *checker) checkReference(m *ast.Module, at *ast.Location, ref ast.Ref, imported bool) {
	own, path := module.PackageOf(m), constantPath(ref)
	first, _, _ := strings.Cut(path, ".")
	pkg, rest := c.packageIn(path)
	switch {
	case c.Data[first] != nil:
	case pkg == "" && imported && c.packagesBelow(path): // import data.fumehood
		c.addProblem(at, module.CodeCompile, "import "+ref.String()+" reaches outside the library",
			"import data."+module.PackageLib)
	case pkg == "" && (module.InLib(path) || path == own):
		// the layer's library has no such package; uses of its names are reported below
		c.addProblem(at, module.CodeCompile, fmt.Sprintf("%s is not in this layer", ref),
			module.SuggestName(path, c.packagePaths()))
	case pkg == "" || pkg != own && !module.InLib(pkg):
		hint := "use the layer's own package, data." + module.PackageLib + ", or its data files"
		if near := spelling.NearestName(path, slices.AppendSeq(c.packagePaths(), maps.Keys(c.Data))); near != "" {
			hint = "did you mean data." + near + "?"
		}
		what := ref.String()
		if imported {
			what = "import " + what
		}
		c.addProblem(at, module.CodeCompile, what+" is outside the layer's library and data", hint)
	case rest != "":
		c.inPackage(at, pkg, rest)
	}
}

// inPackage refuses a name without a rule in pkg.
func (c *checker) inPackage(at *ast.Location, pkg, rest string) {
	name, _, _ := strings.Cut(rest, ".")
	var known []string
	for path := range c.graph.Rules {
		if in, found := strings.CutPrefix(path, "data."+pkg+"."); found {
			in, _, _ = strings.Cut(in, ".")
			known = append(known, in)
		}
	}
	if !slices.Contains(known, name) {
		slices.Sort(known)
		c.addProblem(at, module.CodeCompile, fmt.Sprintf("package %s has no rule %q", pkg, name),
			module.SuggestName(name, slices.Compact(known)))
	}
}

// packageIn is the longest package of the layer that is a prefix of path, and the rest.
func (c *checker) packageIn(path string) (pkg, rest string) {
	for _, p := range c.packagePaths() {
		if path == p {
			return p, ""
		}
		if in, ok := strings.CutPrefix(path, p+"."); ok && len(p) > len(pkg) {
			pkg, rest = p, in
		}
	}
	return pkg, rest
}

func (c *checker) packagesBelow(path string) bool {
	return slices.ContainsFunc(c.packagePaths(), func(p string) bool { return strings.HasPrefix(p, path) })
}

func (c *checker) packagePaths() []string {
	var paths []string
	for _, m := range c.Modules {
		paths = append(paths, module.PackageOf(m))
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// constantPath is the constant beginning of a path below data.
func constantPath(ref ast.Ref) string {
	var parts []string
	for _, t := range ref[1:] {
		name, ok := t.Value.(ast.String)
		if !ok {
			break
		}
		parts = append(parts, string(name))
	}
	return strings.Join(parts, ".")
}
