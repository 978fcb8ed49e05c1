// SPDX-License-Identifier: Apache-2.0

package snippet

import (
	"strings"

	"github.com/fumehood/fumehood/internal/shell/snippet/grammar"
)

func calleeOf(n grammar.Node) grammar.Node {
	if n.Kind() == "new_expression" {
		return n.ChildIn("constructor")
	}
	return n.ChildIn("function")
}

// judgeCall judges the calls that turn their arguments into a module or code.
func (r *scriptReader) judgeCall(n grammar.Node) {
	function, args := calleeOf(n), argumentsOf(n)
	path := r.pathOf(function, 0)
	switch {
	case scriptRunners[path]:
		r.markJudged(function)
		r.addCapabilities(canDynamicCode)
		r.judgeRun(n, path, args)
	case strings.HasSuffix(path, ".constructor") && len(args) > 0:
		r.byConstructor(n, function, args)
	case scriptTimers[path] && len(args) > 0:
		if _, ok := r.constantValue(args[0], 0); ok && args[0].Kind() != "identifier" {
			r.judgeRun(n, path, args[:1])
		}
	case path == "require" || path == "import" || path == "module.createRequire()" ||
		path == "process.getBuiltinModule" || path == "require.resolve":
		r.importCall(n, path, args)
	}
}

// byConstructor judges x.constructor("code"): if x is a function, the constructor is
// Function.
func (r *scriptReader) byConstructor(n, function grammar.Node, args []grammar.Node) {
	_, ok := r.constantValue(args[len(args)-1], 0)
	inner := function.ChildIn("object").Kind()
	if ok || strings.Contains(inner, "function") || inner == "parenthesized_expression" || inner == "array" ||
		inner == "string" {
		r.addCapabilities(canDynamicCode)
		r.findAt("interpreter-internals", n)
	}
}

func (r *scriptReader) judgeRun(n grammar.Node, path string, args []grammar.Node) {
	if len(args) == 0 {
		return
	}
	code := args[0]
	if strings.HasSuffix(path, "Function") {
		code = args[len(args)-1]
	}
	if text, ok := r.constantValue(code, 0); ok {
		if r.isBuiltConstant(code) {
			r.findAt("built-name", n)
		}
		if strings.HasSuffix(path, "Function") {
			text = "async () => {" + text + "\n}"
		}
		r.readNested(r.language, text, n)
		return
	}
	if function := code.Kind(); function == "arrow_function" || function == "function_expression" {
		return
	}
	r.findAt(r.sourceOf(code), n)
}

// sourceOf returns where code that is not a constant comes from.
func (r *scriptReader) sourceOf(n grammar.Node) string {
	code := "dynamic-code"
	for inner := range n.WithDescendants() {
		switch inner.Kind() {
		case "identifier", "call_expression", "member_expression", "new_expression":
		default:
			continue
		}
		path := r.pathOf(inner, 0)
		if scriptFetchers.MatchString(path) {
			return "fetched-code"
		}
		if scriptDecoders.MatchString(path) || strings.HasSuffix(path, ".reverse()") {
			code = "decoded-code"
		}
	}
	return code
}

// hidesName reports whether n decodes or assembles a name so that the reader cannot see
// it.
func (r *scriptReader) hidesName(n grammar.Node) bool { return r.sourceOf(n) == "decoded-code" }

func (r *scriptReader) importCall(n grammar.Node, path string, args []grammar.Node) {
	if len(args) == 0 {
		return
	}
	name, ok := r.constantValue(args[0], 0)
	switch {
	case !ok && r.hidesName(args[0]):
		r.findAt("built-name", n)
		r.addCapabilities(canProjectCode)
	case !ok:
		r.findAt("dynamic-import", n)
		r.addCapabilities(canProjectCode)
	default:
		if r.isBuiltConstant(args[0]) && args[0].Kind() != "identifier" {
			r.findAt("built-name", n)
		}
		if path != "require.resolve" {
			r.recordImport(name, n)
		}
	}
	if path == "process.getBuiltinModule" {
		r.findAt("interpreter-internals", n)
	}
}
