// SPDX-License-Identifier: Apache-2.0

package snippet

import (
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/shell/snippet/grammar"
)

// A pythonReader reads Python. It tracks names, not values: a name bound anywhere in
// the snippet counts as bound everywhere.
type pythonReader struct {
	*reader
	stars  []string     // modules from which every name was imported
	passed map[int]bool // nodes that were judged as part of an enclosing node
}

func (r *pythonReader) readTree(tree *grammar.Tree) {
	r.passed = map[int]bool{}
	for range 2 { // a name may be bound after the function that uses it
		r.stars = nil
		for n := range tree.All() {
			r.bindNames(n)
		}
	}
	for n := range tree.All() {
		r.judgeNode(n)
	}
	if r.can[canNetwork] {
		r.findHosts(tree)
	}
}

// bindNames records the names that n binds.
func (r *pythonReader) bindNames(n grammar.Node) {
	switch n.Kind() {
	case "import_statement", "future_import_statement":
		r.bindImport(n)
	case "import_from_statement":
		r.bindFrom(n)
	case "assignment", "named_expression":
		left, right := n.ChildIn("left"), n.ChildIn("right")
		if n.Kind() == "named_expression" {
			left, right = n.ChildIn("name"), n.ChildIn("value")
		}
		r.bindName(left, right)
	case "as_pattern":
		if alias := n.ChildIn("alias"); !alias.IsNone() {
			r.bindName(alias.FirstNamedChild(), n.FirstNamedChild())
		}
	}
}

func (r *pythonReader) bindImport(n grammar.Node) {
	if n.Kind() == "future_import_statement" {
		r.recordModule("__future__")
		return
	}
	for child := range n.Children() {
		if child.Field() != "name" {
			continue
		}
		if child.Kind() == "aliased_import" {
			module := child.ChildIn("name").Text()
			r.recordImport(module, child)
			r.names[child.ChildIn("alias").Text()] = module
			continue
		}
		module := removeSpaces(child.Text())
		r.recordImport(module, child)
		first, _, _ := strings.Cut(module, ".")
		r.names[first] = first
	}
}

func (r *pythonReader) bindFrom(n grammar.Node) {
	module := removeSpaces(n.ChildIn("module_name").Text())
	r.recordImport(module, n.ChildIn("module_name"))
	for child := range n.Children() {
		switch {
		case child.Kind() == "wildcard_import":
			r.stars = append(r.stars, module)
		case child.Field() == "name" && child.Kind() == "aliased_import":
			r.names[child.ChildIn("alias").Text()] = module + "." + child.ChildIn("name").Text()
		case child.Field() == "name":
			r.names[child.Text()] = module + "." + child.Text()
		}
	}
}

func removeSpaces(name string) string { return strings.Join(strings.Fields(name), "") }

// bindName records an alias; other values have no path, and keep what was known.
func (r *pythonReader) bindName(left, right grammar.Node) {
	if left.Kind() == "pattern_list" || left.Kind() == "tuple_pattern" {
		var targets []grammar.Node
		for target := range left.Children() {
			targets = append(targets, target)
		}
		i := 0
		for value := range right.Children() {
			if i < len(targets) {
				r.bindName(targets[i], value)
			}
			i++
		}
		return
	}
	if left.Kind() != "identifier" {
		return
	}
	if path := r.pathOf(right, 0); r.isKnownPath(path) && path != left.Text() {
		r.names[left.Text()] = path
	} else if text, ok := r.constantValue(right, 0); ok && len(text) <= maxConstant {
		r.names[left.Text()] = "=" + text
		if r.isBuiltConstant(right) {
			r.put[left.Text()] = true
		}
	}
}

// isKnownPath reports whether path leads to something known.
func (r *pythonReader) isKnownPath(path string) bool {
	first, _, _ := strings.Cut(path, ".")
	first = strings.TrimRight(first, "()[]")
	return path != "" && path[0] != '?' && path[0] != '=' &&
		(libraries["python"].modules[first] || libraries["python"].can[first] != nil || r.imports[first] ||
			internals[first] || first == "get_ipython" || decoders.MatchString(path))
}

// recordImport records an import of module at n.
func (r *pythonReader) recordImport(module string, n grammar.Node) {
	first, _, _ := strings.Cut(module, ".")
	r.recordModule(module)
	if !libraries["python"].modules[first] {
		r.addCapabilities(canProjectCode)
	}
	r.recordUse(module, n)
}

// recordUse records what path can do.
func (r *pythonReader) recordUse(path string, n grammar.Node) {
	can := libraries["python"].capabilitiesOf(path)
	r.addCapabilities(can...)
	for _, word := range can {
		if word == canNativeCode && path != "mmap" {
			r.findAt("native-code", n)
		}
	}
}

// runners take text and run it.
var runners = map[string]bool{
	"eval": true, "exec": true, "compile": true, "execfile": true, "builtins.eval": true, "builtins.exec": true, "builtins.compile": true,
	"code.interact": true, "code.InteractiveInterpreter": true, "code.InteractiveConsole": true, "types.FunctionType": true, "types.CodeType": true,
}

// importers take a module's name.
var importers = map[string]bool{
	"__import__": true, "builtins.__import__": true, "importlib.import_module": true, "importlib.__import__": true, "runpy.run_module": true,
	"imp.load_module": true, "imp.load_source": true, "pkgutil.resolve_name": true, "pydoc.locate": true,
}

// internals are names that give access to every other object of the interpreter.
var internals = map[string]bool{
	"__globals__": true, "__builtins__": true, "f_globals": true, "f_builtins": true, "f_locals": true, "func_globals": true, "gi_frame": true, "cr_frame": true, "ag_frame": true,
	"tb_frame": true, "f_back": true, "__loader__": true, "__getattribute__": true, "__closure__": true, "co_code": true,
}

// climbs are the attributes that lead from a plain value to all classes.
var climbs = map[string]bool{"__class__": true, "__base__": true, "__bases__": true, "__mro__": true, "mro()": true,
	"__subclasses__": true}

// decoders turn text into other text that this reader does not see.
var decoders = pattern.New(`^(base64\.|binascii\.|zlib\.decompress|gzip\.decompress|bz2\.decompress|lzma\.decompress|codecs\.(decode|getdecoder|lookup)|marshal\.loads?|bytes\.fromhex|bytearray\.fromhex|chr$|chr\(|bytes\(|bytes$|bytearray|struct\.pack|urllib\.parse\.unquote|html\.unescape|quopri\.|cryptography|Crypto)|\.decode\(`)

// fetchers fetch text from elsewhere.
var fetchers = pattern.New(`^(urllib\.request\.|requests\.|httpx\.|http\.client\.|urllib3\.|aiohttp\.|socket\.|os\.popen|subprocess\.|os\.environ|os\.getenv)`)

// judgeNode finds what n can do.
func (r *pythonReader) judgeNode(n grammar.Node) {
	switch n.Kind() {
	case "call":
		r.judgeCall(n)
	case "identifier":
		r.judgeName(n)
	case "attribute":
		r.judgeAttribute(n, n.ChildIn("attribute").Text())
		r.recordUse(r.pathOf(n, 0), n)
	case "subscript":
		r.judgeSubscript(n)
	case "keyword_argument":
		r.passed[n.ChildIn("name").ID()] = true
	}
}

// judgeName judges a bare name, which may be a built-in function.
func (r *pythonReader) judgeName(n grammar.Node) {
	name := n.Text()
	if r.passed[n.ID()] || n.Field() == "attribute" || n.Field() == "name" {
		return // part of a path, or the name of a new binding
	}
	path := r.pathOf(n, 0)
	if runners[path] {
		r.findAt("dynamic-code", n)
	}
	if internals[name] {
		r.findAt("interpreter-internals", n)
	}
	r.recordUse(path, n)
}

func (r *pythonReader) judgeAttribute(n grammar.Node, name string) {
	r.passed[n.ChildIn("attribute").ID()] = true
	switch {
	case internals[name], r.isHiddenMethod(r.pathOf(n, 0)):
		r.findAt("interpreter-internals", n)
	case name == "__subclasses__" && r.isClimbedClass(n.ChildIn("object")):
		r.findAt("interpreter-internals", n)
	case pathMethods[name] && (r.imports["pathlib"] || r.imports["os"]):
		r.addCapabilities(canWriteFiles)
	}
}

// isHiddenMethod reports whether path is one of a notebook's shell that a cell need not use.
func (r *pythonReader) isHiddenMethod(path string) bool {
	method, ok := strings.CutPrefix(path, notebookShell)
	return ok && !strings.ContainsAny(method, ".([") && !notebookMethods[method]
}

var pathMethods = map[string]bool{"write_text": true, "write_bytes": true, "unlink": true, "touch": true, "mkdir": true,
	"rmdir": true, "symlink_to": true, "hardlink_to": true, "chmod": true}

// isClimbedClass reports whether n is a class that was reached from a value, or object
// itself.
func (r *pythonReader) isClimbedClass(n grammar.Node) bool {
	path := r.pathOf(n, 0)
	if path == "object" || path == "type" || path == "builtins.object" || strings.HasPrefix(path, "type(") {
		return true
	}
	for step := range strings.SplitSeq(path, ".") {
		if climbs[strings.TrimSuffix(step, "[]")] {
			return true
		}
	}
	return false
}

// judgeSubscript follows names that are looked up in a module's dictionary.
func (r *pythonReader) judgeSubscript(n grammar.Node) {
	table := r.pathOf(n.ChildIn("value"), 0)
	if !tables[table] && !strings.HasSuffix(table, ".__dict__") {
		return
	}
	name, ok := r.constantValue(n.ChildIn("subscript"), 0)
	path := r.pathOf(n, 0)
	switch {
	case runners[path], importers[path], !ok && table == "__builtins__":
		r.findAt("interpreter-internals", n)
	case ok && r.isBuiltConstant(n.ChildIn("subscript")):
		r.findAt("built-name", n)
	case ok && internals[name]:
		r.findAt("interpreter-internals", n)
	}
	r.recordUse(path, n)
}

// tables map names to objects: a subscript of one is a use of that name.
var tables = map[string]bool{"__builtins__": true, "builtins.__dict__": true, "globals()": true, "locals()": true,
	"get_ipython().user_ns": true, "vars()": true, "vars(builtins)": true, "sys.modules": true, "__builtins__.__dict__": true}

// findHosts finds addresses of remote hosts.
func (r *pythonReader) findHosts(tree *grammar.Tree) {
	for n := range tree.All() {
		switch n.Kind() {
		case "string":
			if text, ok := r.constantValue(n, 0); ok && remoteURL(text) {
				r.findAt("remote-host", n)
			}
		case "tuple":
			if host, ok := r.constantValue(n.FirstNamedChild(), 0); ok && pairOfAddress(n) && isRemoteHost(host) {
				r.findAt("remote-host", n)
			}
		}
	}
}

// pairOfAddress reports whether n is ("host", port).
func pairOfAddress(n grammar.Node) bool {
	i := 0
	for child := range n.Children() {
		if i == 1 && child.Kind() != "integer" {
			return false
		}
		i++
	}
	return i == 2
}
