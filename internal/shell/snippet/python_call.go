// SPDX-License-Identifier: Apache-2.0

package snippet

import (
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/shell/snippet/grammar"
)

// judgeCall judges the calls that turn their arguments into a name or code.
func (r *pythonReader) judgeCall(n grammar.Node) {
	function, args := n.ChildIn("function"), argumentsOf(n)
	path := r.pathOf(function, 0)
	switch {
	case runners[path]:
		r.markJudged(function)
		r.addCapabilities(canDynamicCode)
		r.judgeRun(n, args)
	case importers[path]:
		r.importCall(n, args)
	case path == "getattr" || path == "setattr" || path == "delattr" || path == "builtins.getattr" ||
		path == "operator.attrgetter" || path == "hasattr":
		r.attributeCall(n, path, args)
	case path == "open" || path == "io.open" || path == "builtins.open" || path == "pathlib.Path().open" ||
		path == "codecs.open":
		r.openCall(path, args)
	case path == notebookShell+"run_cell_magic" || path == notebookShell+"run_line_magic":
		r.magicCall(n, valuesOf(args))
	case path == notebookShell+"system" || path == notebookShell+"getoutput":
		r.judgeExpanded(n, valuesOf(args))
	case path == "marshal.loads" || path == "marshal.load":
		r.findAt("decoded-code", n)
	case strings.HasPrefix(path, "ctypes.") || strings.HasPrefix(path, "cffi."):
		r.findAt("native-code", n)
	}
}

// markJudged marks the names in n as judged.
func (r *pythonReader) markJudged(n grammar.Node) {
	for inner := range n.WithDescendants() {
		r.passed[inner.ID()] = true
	}
}

func argumentsOf(n grammar.Node) []grammar.Node {
	var args []grammar.Node
	for child := range n.ChildIn("arguments").Children() {
		if child.Kind() != "comment" {
			args = append(args, child)
		}
	}
	return args
}

// valuesOf returns args, with the values of those that have names.
func valuesOf(args []grammar.Node) []grammar.Node {
	values := slices.Clone(args)
	for i, arg := range args {
		if arg.Kind() == "keyword_argument" {
			values[i] = arg.ChildIn("value")
		}
	}
	return values
}

// judgeRun judges a node that is run as code: a string literal is itself read as code.
func (r *pythonReader) judgeRun(n grammar.Node, args []grammar.Node) {
	if len(args) == 0 {
		return
	}
	if inner := args[0]; inner.Kind() == "call" && runners[r.pathOf(inner.ChildIn("function"), 0)] {
		return // exec(compile(…)): the inner call is judged separately
	}
	if text, ok := r.constantValue(args[0], 0); ok {
		if r.isBuiltConstant(args[0]) {
			r.findAt("built-name", n)
		}
		r.readNested("python", text, n)
		return
	}
	r.findAt(r.sourceOf(args[0]), n)
}

// sourceOf returns where code that is not a constant comes from.
func (r *pythonReader) sourceOf(n grammar.Node) string {
	code := "dynamic-code"
	for inner := range n.WithDescendants() {
		if inner.Kind() != "identifier" && inner.Kind() != "attribute" && inner.Kind() != "call" &&
			inner.Kind() != "slice" {
			continue
		}
		path := r.pathOf(inner, 0)
		switch {
		case fetchers.MatchString(path):
			return "fetched-code"
		case decoders.MatchString(path) && !plainDecode(path),
			inner.Kind() == "slice" && strings.HasSuffix(inner.Text(), ":-1"):
			code = "decoded-code"
		}
	}
	return code
}

// plainDecode matches a plain conversion of bytes to text: subprocess output, a
// file's bytes.
func plainDecode(path string) bool { return strings.HasSuffix(path, ".read().decode()") }

// notebookShell begins the paths of the methods that package notebook translates to.
const notebookShell = "get_ipython()."

// notebookMethods are those that a cell may use: others run text that is not judged.
var notebookMethods = map[string]bool{"run_cell_magic": true, "run_line_magic": true, "system": true, "getoutput": true,
	"user_ns": true, "config": true}

// magicCall judges a magic of a notebook: some run their last argument as code, or start programs with it.
func (r *pythonReader) magicCall(n grammar.Node, args []grammar.Node) {
	name, ok := "", len(args) > 1
	if ok {
		name, ok = r.constantValue(args[0], 0)
	}
	switch {
	case !ok:
		r.findAt("dynamic-code", n)
	case runsPython[name]:
		r.judgeMagicCode(n, name, args[len(args)-1])
	case startsProgram[name]:
		r.addCapabilities(canStart)
		r.judgeExpanded(n, args[1:])
	case name == "cd":
		r.judgeExpanded(n, args[1:])
	case name == "writefile":
		r.addCapabilities(canWriteFiles)
	}
}

// What the magics of the interpreter run; the others run nothing.
var (
	runsPython    = map[string]bool{"time": true, "timeit": true, "capture": true}
	startsProgram = map[string]bool{"bash": true, "sh": true, "!": true, "ls": true, "pip": true}
)

// timeitOptions are the options before the code of %timeit, exactly as the interpreter reads them.
var timeitOptions = pattern.New(`^(-([nr] *[0-9]+|[qotc]) +)*`)

// judgeMagicCode judges the Python that a magic runs. Code with a syntax that is not understood makes the
// whole cell one: it may not be a SyntaxError for the interpreter, which runs what this reader skipped.
func (r *pythonReader) judgeMagicCode(n grammar.Node, name string, code grammar.Node) {
	text, ok := r.constantValue(code, 0)
	if !ok {
		r.judgeRun(n, []grammar.Node{code})
		return
	}
	if name == "timeit" {
		text = text[len(timeitOptions.FindString(text)):]
	}
	if !r.readNested("python", text, n) {
		start, end := n.Span()
		r.addDoubt("not-understood", start, end)
	}
}

var expanded = pattern.New(`\{([^{}]+)\}`)

// judgeExpanded judges the expressions in braces that the interpreter evaluates in the text of a command.
func (r *pythonReader) judgeExpanded(n grammar.Node, args []grammar.Node) {
	for _, arg := range args {
		text, ok := r.constantValue(arg, 0)
		if !ok {
			r.findAt(r.sourceOf(arg), n)
			continue
		}
		for _, found := range expanded.FindAllStringSubmatch(text, -1) {
			r.readNested("python", found[1], n)
		}
	}
}

func (r *pythonReader) importCall(n grammar.Node, args []grammar.Node) {
	r.addCapabilities(canDynamicCode)
	if len(args) == 0 {
		return
	}
	name, ok := r.constantValue(args[0], 0)
	switch {
	case !ok && r.sourceOf(args[0]) == "decoded-code":
		r.findAt("built-name", n)
	case !ok:
		r.findAt("dynamic-import", n)
	default:
		if r.isBuiltConstant(args[0]) {
			r.findAt("built-name", n)
		}
		r.recordImport(name, n)
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
	name, ok := r.constantValue(args[at], 0)
	switch {
	case ok:
		r.judgeAttributeName(n, args, name, at)
	case r.sourceOf(args[at]) == "decoded-code":
		r.findAt("built-name", n)
	case at == 1 && r.isKnownPath(r.pathOf(args[0], 0)):
		r.findAt("dynamic-attribute", n)
	}
}

func (r *pythonReader) judgeAttributeName(n grammar.Node, args []grammar.Node, name string, at int) {
	if r.isBuiltConstant(args[at]) {
		r.findAt("built-name", n)
	}
	for step := range strings.SplitSeq(name, ".") {
		if internals[step] || step == "__subclasses__" {
			r.findAt("interpreter-internals", n)
		}
	}
	if at == 1 {
		found := r.pathOf(n, 0)
		if runners[found] {
			r.findAt("dynamic-code", n)
		}
		if r.isHiddenMethod(found) {
			r.findAt("interpreter-internals", n)
		}
		r.recordUse(found, n)
	}
}

func (r *pythonReader) openCall(path string, args []grammar.Node) {
	r.addCapabilities(canReadFiles)
	at := 1
	if path == "pathlib.Path().open" {
		at = 0
	}
	for i, a := range args {
		value := a
		if a.Kind() == "keyword_argument" {
			if a.ChildIn("name").Text() != "mode" {
				continue
			}
			value = a.ChildIn("value")
		} else if i != at {
			continue
		}
		if mode, ok := r.constantValue(value, 0); !ok || strings.ContainsAny(mode, "wax+") {
			r.addCapabilities(canWriteFiles)
		}
	}
}
