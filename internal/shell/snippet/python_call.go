// SPDX-License-Identifier: Apache-2.0

package snippet

import (
	"strings"

	"github.com/fumehood/fumehood/internal/shell/snippet/grammar"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// judgeCall judges the calls that turn their arguments into a name or code.
func (r *pythonReader) judgeCall(n grammar.Node) {
	function, args := n.In("function"), arguments(n)
	path := r.path(function, 0)
	switch {
	case runners[path]:
		r.pass(function)
		r.able(proposal.CanDynamicCode)
		r.run(n, args)
	case importers[path]:
		r.importCall(n, args)
	case path == "getattr" || path == "setattr" || path == "delattr" || path == "builtins.getattr" || path == "operator.attrgetter" || path == "hasattr":
		r.attributeCall(n, path, args)
	case path == "open" || path == "io.open" || path == "builtins.open" || path == "pathlib.Path().open" || path == "codecs.open":
		r.openCall(path, args)
	case path == "marshal.loads" || path == "marshal.load":
		r.findAt("decoded-code", n)
	case strings.HasPrefix(path, "ctypes.") || strings.HasPrefix(path, "cffi."):
		r.findAt("native-code", n)
	}
}

// pass marks the names in n as judged.
func (r *pythonReader) pass(n grammar.Node) {
	for inner := range n.Within() {
		r.passed[inner.ID()] = true
	}
}

func arguments(n grammar.Node) []grammar.Node {
	var args []grammar.Node
	for child := range n.In("arguments").Children() {
		if child.Kind() != "comment" {
			args = append(args, child)
		}
	}
	return args
}

// run judges a node that is run as code: a string literal is itself read as code.
func (r *pythonReader) run(n grammar.Node, args []grammar.Node) {
	if len(args) == 0 {
		return
	}
	if inner := args[0]; inner.Kind() == "call" && runners[r.path(inner.In("function"), 0)] {
		return // exec(compile(…)): the inner call is judged separately
	}
	if text, ok := r.constant(args[0], 0); ok {
		if r.built(args[0]) {
			r.findAt("built-name", n)
		}
		r.nested("python", text, n)
		return
	}
	r.findAt(r.sourceOf(args[0]), n)
}

// sourceOf returns where code that is not a constant comes from.
func (r *pythonReader) sourceOf(n grammar.Node) string {
	code := "dynamic-code"
	for inner := range n.Within() {
		if inner.Kind() != "identifier" && inner.Kind() != "attribute" && inner.Kind() != "call" && inner.Kind() != "slice" {
			continue
		}
		path := r.path(inner, 0)
		switch {
		case fetchers.MatchString(path):
			return "fetched-code"
		case decoders.MatchString(path) && !plainDecode(path), inner.Kind() == "slice" && strings.HasSuffix(inner.Text(), ":-1"):
			code = "decoded-code"
		}
	}
	return code
}

// plainDecode matches a plain conversion of bytes to text: subprocess output, a
// file's bytes.
func plainDecode(path string) bool { return strings.HasSuffix(path, ".read().decode()") }

func (r *pythonReader) importCall(n grammar.Node, args []grammar.Node) {
	r.able(proposal.CanDynamicCode)
	if len(args) == 0 {
		return
	}
	name, ok := r.constant(args[0], 0)
	switch {
	case !ok && r.sourceOf(args[0]) == "decoded-code":
		r.findAt("built-name", n)
	case !ok:
		r.findAt("dynamic-import", n)
	default:
		if r.built(args[0]) {
			r.findAt("built-name", n)
		}
		r.module(name, n)
	}
}

func (r *pythonReader) attributeCall(n grammar.Node, path string, args []grammar.Node) {
	at := 1
	if path == "operator.attrgetter" {
		at = 0
	}
	if len(args) <= at {
		return
	}
	name, ok := r.constant(args[at], 0)
	switch {
	case ok:
		r.judgeAttributeName(n, args, name, at)
	case r.sourceOf(args[at]) == "decoded-code":
		r.findAt("built-name", n)
	case at == 1 && r.meant(r.path(args[0], 0)):
		r.findAt("dynamic-attribute", n)
	}
}

func (r *pythonReader) judgeAttributeName(n grammar.Node, args []grammar.Node, name string, at int) {
	if r.built(args[at]) {
		r.findAt("built-name", n)
	}
	for step := range strings.SplitSeq(name, ".") {
		if internals[step] || step == "__subclasses__" {
			r.findAt("interpreter-internals", n)
		}
	}
	if at == 1 {
		found := r.path(n, 0)
		if runners[found] {
			r.findAt("dynamic-code", n)
		}
		r.use(found, n)
	}
}

func (r *pythonReader) openCall(path string, args []grammar.Node) {
	r.able(proposal.CanReadFiles)
	at := 1
	if path == "pathlib.Path().open" {
		at = 0
	}
	for i, a := range args {
		value := a
		if a.Kind() == "keyword_argument" {
			if a.In("name").Text() != "mode" {
				continue
			}
			value = a.In("value")
		} else if i != at {
			continue
		}
		if mode, ok := r.constant(value, 0); !ok || strings.ContainsAny(mode, "wax+") {
			r.able(proposal.CanWriteFiles)
		}
	}
}
