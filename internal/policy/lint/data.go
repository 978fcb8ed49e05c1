// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
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
	for _, r := range m.Rules {
		ast.WalkRefs(r, func(ref ast.Ref) bool {
			full := ref
			if head, ok := ref[0].Value.(ast.Var); ok {
				if imported := module.ImportOf(m, head); imported != nil &&
					!slices.ContainsFunc(r.Head.Args, func(t *ast.Term) bool { return t.Equal(ref[0]) }) {
					full = append(imported[:len(imported):len(imported)], ref[1:]...)
				}
			}
			if full[0].Equal(ast.DefaultRootDocument) {
				c.checkReference(m, ref[0].Location, full, false)
			}
			return false
		})
	}
}

// checkReference checks one path below data.
func (c *checker) checkReference(m *ast.Module, at *ast.Location, ref ast.Ref, imported bool) {
	own, path := module.PackageOf(m), constantPath(ref)
	first, _, _ := strings.Cut(path, ".")
	pkg, rest := c.packageIn(path)
	switch {
	case slices.Contains(c.Data, first):
	case pkg == "" && imported && c.packagesBelow(path): // import data.fumehood
		c.addProblem(at, module.CodeCompile, "import "+ref.String()+" reaches outside the library",
			"import data."+module.PackageLib)
	case pkg == "" && (module.InLib(path) || path == own):
		// the layer's library has no such package; uses of its names are reported below
		c.addProblem(at, module.CodeCompile, fmt.Sprintf("%s is not in this layer", ref),
			module.SuggestName(path, c.packagePaths()))
	case pkg == "" || pkg != own && !module.InLib(pkg):
		hint := "use the layer's own package, data." + module.PackageLib + ", or its data files"
		if near := spelling.NearestName(path, append(c.packagePaths(), c.Data...)); near != "" {
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
