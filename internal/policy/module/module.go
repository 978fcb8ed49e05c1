// SPDX-License-Identifier: Apache-2.0

// Package module is Rego as policies use it: the decision points and their sets, the
// built-ins and their limits, and the parsing and compiling of files.
//
// The files are untrusted. Nesting is limited before the parser and the compiler see a
// file, and a panic of either is an error. The caller must limit time and memory: see
// package bounds.
package module

import (
	"errors"
	"fmt"
	"maps"
	"reflect"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// Parse parses a file of Rego within the bounds of policies. It reads METADATA only on
// request: that is half of the work. layer is for errors.
func Parse(layer, name string, content []byte, annotations bool) (m *ast.Module, err error) {
	defer RecoverPanic(layer, &err)
	if err := tooDeep(name, content); err != nil {
		return nil, err
	}
	o := ast.ParserOptions{RegoVersion: ast.RegoV1, Capabilities: capabilities(), ProcessAnnotation: annotations}
	if m, err = ast.ParseModuleWithOpts(name, string(content), o); err != nil {
		return nil, err
	}
	if err := deepTerms(m); err != nil {
		return m, err
	}
	return m, joinLiterals(m, content)
}

// RecoverPanic turns a panic of the compiler into an error: in a goroutine it would end the
// process.
func RecoverPanic(layer string, err *error) {
	if r := recover(); r != nil {
		*err = Stop(CodeCompile, fmt.Sprintf("the policy layer %q makes the compiler panic: %v", layer, r),
			"report this as a defect", nil)
	}
}

// Compile compiles the modules of a point, whose input is document, without the spared
// stages. The caller checks whether the compiler Failed.
func Compile(
	point string, document reflect.Type, modules map[string]*ast.Module, strict bool, spared ...ast.StageID,
) *ast.Compiler {
	compiler, _ := newCompiler(point, document, strict, spared...)
	compiler.Compile(modules)
	return compiler
}

func newCompiler(point string, document reflect.Type, strict bool, spared ...ast.StageID) (*ast.Compiler, *indexer) {
	return addIndexing(ast.NewCompiler().
		WithSkipStages(spared...).
		WithCapabilities(CapabilitiesAt(point)).
		WithStrict(strict).
		WithDefaultRegoVersion(ast.RegoV1).
		WithSchemas(schemaSet(document)), document)
}

// CopyModules are for code that changes modules; a compiler makes its own copies.
func CopyModules(modules map[string]*ast.Module) map[string]*ast.Module {
	c := maps.Clone(modules)
	for file, m := range c {
		c[file] = m.Copy()
	}
	return c
}

// ForPoint are the point's modules, and those of the library that they reach: the library
// is larger than the rules of a small point.
func ForPoint(point string, modules map[string]*ast.Module, all *Graph) map[string]*ast.Module {
	own, reached, left := map[string]*ast.Module{}, []*ast.Module{}, map[*ast.Module]string{}
	for file, m := range modules {
		switch {
		case PackageOf(m) == point:
			own[file], reached = m, append(reached, m)
		case InLib(PackageOf(m)):
			left[m] = file
		}
	}
	reach := func(m *ast.Module) {
		if file, ok := left[m]; ok {
			delete(left, m)
			own[file], reached = m, append(reached, m)
		}
	}
	for len(reached) > 0 && len(left) > 0 {
		m := reached[0]
		reached = reached[1:]
		for _, r := range m.Rules { // imports alone do not count
			all.Walk(m, r, func(t Target) {
				for _, found := range all.Rules[t.Rule] {
					reach(found.Module)
				}
				for other := range left {
					if t.All {
						reach(other)
					}
				}
			})
		}
	}
	return own
}

var undefinedFunction = pattern.New(`undefined function ([a-z0-9_.]+)`)

// UndefinedFunctions are the undefined functions that err, an error of the compiler, names.
func UndefinedFunctions(err error) []string {
	var all ast.Errors
	texts := []string{err.Error()}
	if errors.As(err, &all) {
		for _, e := range all {
			texts = append(texts, e.Message)
		}
	}
	var names []string
	for _, text := range texts {
		for _, m := range undefinedFunction.FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
	}
	return names
}
