// SPDX-License-Identifier: Apache-2.0

package snippet

import (
	"strings"

	"github.com/fumehood/fumehood/internal/shell/snippet/grammar"
)

// pathOf returns the path of n: "os.path.join", "open()", "?" if it is not known. A
// path that begins with "=" is a constant string.
func (r *pythonReader) pathOf(n grammar.Node, depth int) string {
	if depth > maxFollow {
		return "?"
	}
	switch n.Kind() {
	case "identifier", "dotted_name":
		return r.nameOf(n.Text())
	case "attribute":
		return joinPath(r.pathOf(n.ChildIn("object"), depth+1), n.ChildIn("attribute").Text())
	case "call":
		return r.pathOfCall(n, depth)
	case "subscript":
		return r.pathOfSubscript(n, depth)
	case "parenthesized_expression", "await", "as_pattern_target":
		return r.pathOf(n.FirstNamedChild(), depth+1)
	case "named_expression":
		return r.pathOf(n.ChildIn("value"), depth+1)
	case "assignment":
		return r.pathOf(n.ChildIn("right"), depth+1)
	case "string", "concatenated_string", "binary_operator":
		if text, ok := r.constantValue(n, depth+1); ok {
			return "=" + text
		}
	}
	return "?"
}

func (r *pythonReader) nameOf(name string) string {
	if path, ok := r.names[name]; ok {
		return canonicalPath(path)
	}
	for _, module := range r.stars {
		if path := module + "." + name; libraries["python"].can[path] != nil {
			return path
		}
	}
	return name
}

func joinPath(path, name string) string {
	switch {
	case strings.HasPrefix(path, "="):
		path = "str"
	case len(path) > maxName:
		path = "?"
	case path == "builtins" || path == "__builtins__":
		path = "builtins"
	}
	return canonicalPath(path + "." + name)
}

// canonicalPath returns the path of a notebook's shell by which it is judged, whichever module path names.
func canonicalPath(path string) string {
	switch path {
	case "builtins.get_ipython", "IPython.get_ipython", "IPython.core.getipython.get_ipython":
		return "get_ipython"
	}
	return path
}

func (r *pythonReader) pathOfCall(n grammar.Node, depth int) string {
	function := r.pathOf(n.ChildIn("function"), depth+1)
	args := argumentsOf(n)
	switch {
	case importers[function] && len(args) > 0:
		if name, ok := r.constantValue(args[0], depth+1); ok {
			if strings.HasSuffix(function, "__import__") {
				name, _, _ = strings.Cut(name, ".")
			}
			return name
		}
	case function == "getattr" && len(args) > 1:
		if name, ok := r.constantValue(args[1], depth+1); ok {
			return joinPath(r.pathOf(args[0], depth+1), name)
		}
	case function == "vars" && len(args) == 1:
		return r.pathOf(args[0], depth+1) + ".__dict__"
	case function == "type" && len(args) == 1:
		return "type()"
	}
	if function == "?" || len(function) > maxName {
		return "?"
	}
	return function + "()"
}

func (r *pythonReader) pathOfSubscript(n grammar.Node, depth int) string {
	table := r.pathOf(n.ChildIn("value"), depth+1)
	name, ok := r.constantValue(n.ChildIn("subscript"), depth+1)
	module, isDict := strings.CutSuffix(table, ".__dict__")
	switch {
	case ok && table == "sys.modules":
		return name
	case ok && isDict:
		return joinPath(module, name)
	case ok && tables[table]:
		return joinPath("builtins", name)
	case table == "?" || len(table) > maxName:
		return "?"
	}
	return table + "[]"
}

// constantValue returns the value of a string that is a literal or assembled from
// literals.
func (r *pythonReader) constantValue(n grammar.Node, depth int) (string, bool) {
	if depth > maxFollow {
		return "", false
	}
	switch n.Kind() {
	case "string":
		return pythonString(n)
	case "concatenated_string":
		return r.joinedValue(n, depth)
	case "parenthesized_expression":
		return r.constantValue(n.FirstNamedChild(), depth+1)
	case "binary_operator":
		return addedStrings(n, depth, r.constantValue)
	case "identifier":
		text, ok := strings.CutPrefix(r.names[n.Text()], "=")
		return text, ok
	}
	return "", false
}

func (r *pythonReader) joinedValue(n grammar.Node, depth int) (string, bool) {
	var text strings.Builder
	for part := range n.Children() {
		value, ok := r.constantValue(part, depth+1)
		if !ok {
			return "", false
		}
		text.WriteString(value)
	}
	return text.String(), true
}

// pythonString reads a literal without interpolation.
func pythonString(n grammar.Node) (string, bool) {
	var text strings.Builder
	for part := range n.Children() {
		switch part.Kind() {
		case "string_content":
			text.WriteString(unescapeText(part.Text()))
		case "interpolation":
			return "", false
		}
	}
	return text.String(), true
}

// isBuiltConstant reports whether n is a constant that could be written as one plain literal.
func (r *pythonReader) isBuiltConstant(n grammar.Node) bool {
	for inner := range n.WithDescendants() {
		switch inner.Kind() {
		case "binary_operator", "concatenated_string":
			return true
		case "identifier":
			if r.put[inner.Text()] {
				return true
			}
		case "escape_sequence":
			if strings.ContainsAny(inner.Text()[1:2], "xuUN01234567") {
				return true
			}
		}
	}
	return false
}
