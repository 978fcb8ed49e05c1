// SPDX-License-Identifier: Apache-2.0

package snippet

import (
	"strings"

	"github.com/fumehood/fumehood/internal/shell/snippet/grammar"
)

// pathOf returns the path of n: "fs.promises.readFile", "require('x')()" as "x()", "?"
// if it is not known. A path that begins with "=" is a constant string.
func (r *scriptReader) pathOf(n grammar.Node, depth int) string {
	if depth > maxFollow {
		return "?"
	}
	switch n.Kind() {
	case "identifier", "shorthand_property_identifier", "import", "this":
		if path, ok := r.names[n.Text()]; ok {
			return path
		}
		return n.Text()
	case "member_expression":
		return joinScript(r.pathOf(n.ChildIn("object"), depth+1), n.ChildIn("property").Text())
	case "subscript_expression":
		if name, ok := r.constantValue(n.ChildIn("index"), depth+1); ok {
			return joinScript(r.pathOf(n.ChildIn("object"), depth+1), name)
		}
		return limitPath(r.pathOf(n.ChildIn("object"), depth+1) + "[]")
	case "call_expression", "new_expression":
		return r.pathOfCall(n, depth)
	case "parenthesized_expression", "await_expression", "as_expression", "satisfies_expression", "non_null_expression":
		return r.pathOf(n.FirstNamedChild(), depth+1)
	case "type_assertion":
		return r.pathOf(lastNamedChild(n), depth+1)
	case "sequence_expression":
		return r.pathOf(lastNamedChild(n), depth+1)
	case "assignment_expression":
		return r.pathOf(n.ChildIn("right"), depth+1)
	case "string", "template_string", "binary_expression":
		if text, ok := r.constantValue(n, depth+1); ok {
			return "=" + text
		}
	case "array":
		return "[]"
	}
	return "?"
}

func lastNamedChild(n grammar.Node) (found grammar.Node) {
	for child := range n.Children() {
		if child.IsNamed() {
			found = child
		}
	}
	return found
}

func limitPath(path string) string {
	if len(path) > maxName {
		return "?"
	}
	return path
}

// joinScript appends name to path, except for names that lead back to the same
// object.
func joinScript(path, name string) string {
	switch {
	case strings.HasPrefix(path, "="):
		path = "str"
	case name == "default" && path != "?":
		return path
	case path == "globalThis" || path == "global" || path == "window" || path == "self":
		return name
	case path == "module" && name == "require":
		return "require"
	case path == "Function" && name == "prototype":
		return "Function.prototype"
	case (name == "call" || name == "apply" || name == "bind") && scriptRunners[path]:
		return path
	}
	return limitPath(path + "." + name)
}

func (r *scriptReader) pathOfCall(n grammar.Node, depth int) string {
	function, args := r.pathOf(calleeOf(n), depth+1), argumentsOf(n)
	switch function {
	case "require", "import", "process.getBuiltinModule", "module.createRequire()":
		if len(args) > 0 {
			if name, ok := r.constantValue(args[0], depth+1); ok {
				return plainModule(name)
			}
		}
	case "Reflect.get":
		if len(args) > 1 {
			if name, ok := r.constantValue(args[1], depth+1); ok {
				return joinScript(r.pathOf(args[0], depth+1), name)
			}
		}
	}
	if function == "?" {
		return "?"
	}
	return limitPath(function + "()")
}

// constantValue returns the value of a string that is a literal or assembled from
// literals.
func (r *scriptReader) constantValue(n grammar.Node, depth int) (string, bool) {
	if depth > maxFollow {
		return "", false
	}
	switch n.Kind() {
	case "string", "template_string":
		return r.literalValue(n, depth)
	case "parenthesized_expression":
		return r.constantValue(n.FirstNamedChild(), depth+1)
	case "binary_expression":
		return addedStrings(n, depth, r.constantValue)
	case "identifier":
		text, ok := strings.CutPrefix(r.names[n.Text()], "=")
		return text, ok
	case "call_expression":
		return r.assembledValue(n, depth)
	}
	return "", false
}

func (r *scriptReader) literalValue(n grammar.Node, depth int) (string, bool) {
	var text strings.Builder
	for part := range n.Children() {
		switch part.Kind() {
		case "string_fragment":
			text.WriteString(part.Text())
		case "escape_sequence":
			text.WriteString(unescapeText(part.Text()))
		case "template_substitution":
			value, ok := r.constantValue(part.FirstNamedChild(), depth+1)
			if !ok {
				return "", false
			}
			text.WriteString(value)
		}
	}
	return text.String(), true
}

// assembledValue reads ['a', 'b'].join(”) and 'a'.concat('b').
func (r *scriptReader) assembledValue(n grammar.Node, depth int) (string, bool) {
	function := n.ChildIn("function")
	object, args := function.ChildIn("object"), argumentsOf(n)
	switch function.ChildIn("property").Text() {
	case "join":
		return r.joinedValue(object, args, depth)
	case "concat":
		text, ok := r.constantValue(object, depth+1)
		for _, a := range args {
			part, known := r.constantValue(a, depth+1)
			text, ok = text+part, ok && known
		}
		return text, ok
	}
	return "", false
}

func (r *scriptReader) joinedValue(list grammar.Node, args []grammar.Node, depth int) (string, bool) {
	if list.Kind() != "array" || len(args) != 1 {
		return "", false
	}
	with, ok := r.constantValue(args[0], depth+1)
	var parts []string
	for part := range list.Children() {
		text, known := r.constantValue(part, depth+1)
		parts, ok = append(parts, text), ok && known
	}
	return strings.Join(parts, with), ok
}

// isBuiltConstant reports whether n is a constant that could be written as one plain literal.
func (r *scriptReader) isBuiltConstant(n grammar.Node) bool {
	for inner := range n.WithDescendants() {
		switch inner.Kind() {
		case "binary_expression", "template_substitution", "call_expression":
			return true
		case "identifier":
			if r.put[inner.Text()] {
				return true
			}
		case "escape_sequence":
			if strings.ContainsAny(inner.Text()[1:2], "xu01234567") {
				return true
			}
		}
	}
	return false
}
