// SPDX-License-Identifier: Apache-2.0

package snippet

import (
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/shell/snippet/grammar"
)

// A scriptReader reads JavaScript and TypeScript. Like a pythonReader it tracks
// names, not values.
type scriptReader struct {
	*reader
	passed map[int]bool
}

func (r *scriptReader) readTree(tree *grammar.Tree) {
	r.passed = map[int]bool{}
	for range 2 {
		for n := range tree.All() {
			r.bindNames(n)
		}
	}
	for n := range tree.All() {
		r.judgeNode(n)
	}
	if r.can[canNetwork] {
		for n := range tree.All() {
			if text, ok := r.constantValue(n, 0); ok && n.Kind() != "identifier" &&
				(remoteURL(text) || n.Field() == "value" && isRemoteHost(text) && address.MatchString(text)) {
				r.findAt("remote-host", n)
			}
		}
	}
}

var address = pattern.New(`^[0-9.]+$|^[a-z0-9.-]+\.[a-z]{2,}$`)

// bindNames records the names that n binds.
func (r *scriptReader) bindNames(n grammar.Node) {
	switch n.Kind() {
	case "import_statement", "export_statement":
		if module, ok := r.constantValue(n.ChildIn("source"), 0); ok {
			r.recordImport(module, n)
			r.bindImport(n, plainModule(module))
		}
	case "import_require_clause":
		if module, ok := r.constantValue(n.ChildIn("source"), 0); ok {
			r.recordImport(module, n)
			r.names[n.FirstNamedChild().Text()] = plainModule(module)
		}
	case "variable_declarator":
		r.bindPattern(n.ChildIn("name"), n.ChildIn("value"))
	case "assignment_expression":
		r.bindPattern(n.ChildIn("left"), n.ChildIn("right"))
	}
}

func (r *scriptReader) bindImport(n grammar.Node, module string) {
	for inner := range n.WithDescendants() {
		switch inner.Kind() {
		case "import_clause":
			if first := inner.FirstNamedChild(); first.Kind() == "identifier" {
				r.names[first.Text()] = module
			}
		case "namespace_import":
			r.names[inner.FirstNamedChild().Text()] = module
		case "import_specifier":
			name, alias := inner.ChildIn("name").Text(), inner.ChildIn("alias").Text()
			if alias == "" {
				alias = name
			}
			r.names[alias] = joinScript(module, name)
		}
	}
}

// plainModule returns the module's name without the prefix that marks Node's own
// modules.
func plainModule(name string) string { return strings.TrimPrefix(name, "node:") }

func (r *scriptReader) bindPattern(left, right grammar.Node) {
	switch left.Kind() {
	case "identifier":
		if path := r.pathOf(right, 0); r.isKnownPath(path) && path != left.Text() {
			r.names[left.Text()] = path
		} else if text, ok := r.constantValue(right, 0); ok && len(text) <= maxConstant {
			r.names[left.Text()] = "=" + text
			if r.isBuiltConstant(right) {
				r.put[left.Text()] = true
			}
		}
	case "object_pattern":
		r.bindObject(left, r.pathOf(right, 0))
	}
}

func (r *scriptReader) bindObject(pattern grammar.Node, from string) {
	if !r.isKnownPath(from) {
		return
	}
	for part := range pattern.Children() {
		switch part.Kind() {
		case "shorthand_property_identifier_pattern":
			r.names[part.Text()] = joinScript(from, part.Text())
		case "pair_pattern":
			if value := part.ChildIn("value"); value.Kind() == "identifier" {
				r.names[value.Text()] = joinScript(from, strings.Trim(part.ChildIn("key").Text(), `"'`))
			}
		}
	}
}

func (r *scriptReader) isKnownPath(path string) bool {
	first, _, _ := strings.Cut(path, ".")
	first = strings.TrimRight(first, "()[]")
	known := libraries["javascript"]
	return path != "" && path[0] != '?' && path[0] != '=' &&
		(known.modules[first] || known.can[first] != nil || r.imports[first] || scriptRoots[first] ||
			scriptDecoders.MatchString(path))
}

// scriptRoots are objects that give access to everything.
var scriptRoots = map[string]bool{"globalThis": true, "global": true, "window": true, "self": true, "process": true,
	"module": true, "require": true, "Reflect": true, "eval": true, "Function": true}

// recordImport records an import at n.
func (r *scriptReader) recordImport(name string, n grammar.Node) {
	r.recordModule(name)
	plain := plainModule(name)
	if !libraries["javascript"].modules[plain] {
		r.addCapabilities(canProjectCode)
	}
	if strings.HasSuffix(plain, ".node") {
		r.addCapabilities(canNativeCode)
		r.findAt("native-code", n)
	}
	r.recordUse(plain, n)
}

func (r *scriptReader) recordUse(path string, n grammar.Node) {
	can := libraries["javascript"].capabilitiesOf(path)
	r.addCapabilities(can...)
	for _, word := range can {
		if word == canNativeCode && !strings.HasPrefix(path, "WebAssembly") {
			r.findAt("native-code", n)
		}
	}
	if scriptInternals.MatchString(path) {
		r.addCapabilities(canInspect)
		r.findAt("interpreter-internals", n)
	}
}

// scriptInternals are ways around require and out of the snippet's own scope.
var scriptInternals = pattern.New(`^process\.(binding|_linkedBinding|dlopen|mainModule|_debugProcess|_rawDebug)|^module\.(_load|constructor|Module\._load)|^module\(\)\._load|^require\.main\.(require|constructor)|\.constructor\.constructor|\.constructor\._load|\.__proto__\.constructor|arguments\.callee\.caller|prepareStackTrace`)

// scriptRunners take text and run it.
var scriptRunners = map[string]bool{
	"eval": true, "Function": true, "vm.runInThisContext": true, "vm.runInNewContext": true, "vm.runInContext": true, "vm.compileFunction": true, "vm.Script": true, "vm.SourceTextModule": true,
	"AsyncFunction": true, "GeneratorFunction": true, "execScript": true,
}

var scriptTimers = map[string]bool{"setTimeout": true, "setInterval": true, "setImmediate": true}

var scriptDecoders = pattern.New(`^(atob|unescape|decodeURI|decodeURIComponent|String\.fromCharCode|String\.fromCodePoint|zlib\.|crypto\.createDecipher|Buffer\.from|TextDecoder)`)

var scriptFetchers = pattern.New(`^(fetch|https?\.(get|request)|axios|got|undici|node-fetch|request|net\.|child_process\.|process\.env)`)

// judgeNode finds what n can do.
func (r *scriptReader) judgeNode(n grammar.Node) {
	switch n.Kind() {
	case "call_expression", "new_expression":
		r.judgeCall(n)
	case "identifier", "shorthand_property_identifier":
		r.judgeName(n)
	case "member_expression":
		r.recordUse(r.pathOf(n, 0), n)
	case "subscript_expression":
		r.judgeSubscript(n)
	case "binary_expression":
		if n.ChildIn("operator").Text() == "instanceof" {
			r.markJudged(n.ChildIn("right"))
		}
	}
}

func (r *scriptReader) markJudged(n grammar.Node) {
	for inner := range n.WithDescendants() {
		r.passed[inner.ID()] = true
	}
}

func (r *scriptReader) judgeName(n grammar.Node) {
	if r.passed[n.ID()] || n.Field() == "name" || n.Field() == "alias" {
		return
	}
	path := r.pathOf(n, 0)
	if path == "eval" || path == "Function" && n.Field() != "object" ||
		strings.HasPrefix(path, "vm.") && scriptRunners[path] {
		r.findAt("dynamic-code", n)
	}
	r.recordUse(path, n)
}

// judgeSubscript judges names that are looked up in the root objects.
func (r *scriptReader) judgeSubscript(n grammar.Node) {
	object := r.pathOf(n.ChildIn("object"), 0)
	name, ok := r.constantValue(n.ChildIn("index"), 0)
	path := r.pathOf(n, 0)
	switch {
	case ok && r.isBuiltConstant(n.ChildIn("index")) &&
		(r.isKnownPath(object) || name == "constructor" || scriptRunners[path]):
		r.findAt("built-name", n)
	case !ok && r.hidesName(n.ChildIn("index")) && r.isKnownPath(object):
		r.findAt("built-name", n)
	case !ok && (scriptRoots[object] || libraries["javascript"].capabilitiesOf(object) != nil) &&
		object != "process.env" && !strings.HasPrefix(object, "require.cache"):
		if n.ChildIn("index").Kind() != "number" {
			r.findAt("dynamic-attribute", n)
		}
	case scriptRunners[path] && !r.passed[n.ID()]:
		r.findAt("dynamic-code", n)
	}
	r.recordUse(path, n)
}
