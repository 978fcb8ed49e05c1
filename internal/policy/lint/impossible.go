// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/policy/facts"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/policies"
)

// An inputPart is a part of the input: its type, and the field that says which values it has.
type inputPart struct {
	typ   reflect.Type
	field reflect.StructField
}

// findImpossible finds comparisons of the input with values that it never has.
func (x *linter) findImpossible(m *ast.Module, r *ast.Rule) {
	document := x.Document(module.PackageOf(m))
	if document == nil {
		return
	}
	parts := partsByVar(document, r)
	ast.WalkExprs(r, func(e *ast.Expr) bool {
		if !e.IsCall() || len(e.Operands()) != 2 {
			return false
		}
		left, right := e.Operand(0), e.Operand(1)
		switch e.Operator().String() {
		case ast.Equal.Name, ast.Equality.Name, ast.NotEqual.Name:
			x.compareWith(m, e, left, partOf(document, parts, right))
			x.compareWith(m, e, right, partOf(document, parts, left))
		case ast.Member.Name:
			x.compareWith(m, e, right, partOf(document, parts, left))
			if list := partOf(document, parts, right); list.typ != nil && list.typ.Kind() == reflect.Slice {
				x.compareWith(m, e, left, inputPart{list.typ.Elem(), list.field})
			}
		}
		return false
	})
}

// compareWith checks the constants of t, with which e compares a part of the input.
func (x *linter) compareWith(m *ast.Module, e *ast.Expr, t *ast.Term, part inputPart) {
	if part.typ == nil || part.typ.Kind() != reflect.String {
		return
	}
	var texts []string
	eachText(x.graph, m, t, func(text string) { texts = append(texts, text) })
	for _, text := range texts {
		why, meant, hint := neverHas(part.field, text)
		if why != "" && !slices.Contains(texts, meant) { // beside the right value it is harmless
			x.addProblem(e.Location, Wrong, lintNever,
				fmt.Sprintf("%s is never %q: %s", module.FieldName(part.field), text, why), hint)
		}
	}
}

// neverHas says why a field never has a value, or "", which one is meant, if that is known, and what to
// write.
func neverHas(f reflect.StructField, text string) (why, meant, hint string) {
	values, form := module.Vocabulary(f), formOf[f.Tag.Get("form")]
	switch {
	case text == "" || slices.Contains(values, text):
	case values != nil:
		return "it is one of " + strings.Join(values, ", "), "", module.SuggestName(text, values)
	case form != nil:
		if why, meant = form(text); meant != "" {
			hint = fmt.Sprintf("write %q", meant)
		}
	}
	return why, meant, hint
}

// formOf says what is wrong with a value of each form of a field, by its tag form, and which one is meant.
var formOf = map[string]func(text string) (why, meant string){
	"program": func(text string) (string, string) { return plainNameProblem(text, facts.ToolName) },
	"name":    func(text string) (string, string) { return plainNameProblem(text, facts.FileName) },
	"host":    hostProblem,
	"method": func(text string) (string, string) {
		return explainUnless(text == strings.ToUpper(text), "methods are in capitals", strings.ToUpper(text))
	},
	"path": func(text string) (string, string) {
		return explainUnless(strings.HasPrefix(text, "/") || strings.HasPrefix(text, "memfd:"),
			"it is an absolute path; name is its last part", "")
	},
	"digest": func(text string) (string, string) {
		return explainUnless(strings.HasPrefix(text, "sha256:"), "it begins with sha256:", "sha256:"+text)
	},
	"ending": func(text string) (string, string) {
		return explainUnless(strings.HasPrefix(text, "."), "it begins with a dot", "."+text)
	},
	"address": func(text string) (string, string) {
		a, err := netip.ParseAddr(text)
		meant := ""
		if err == nil {
			meant = a.Unmap().WithZone("").String()
		}
		return explainUnless(meant == text, "it is an IP address as Go writes it, without port", meant)
	},
}

// explainUnless returns why a text is not what it has to be, and what is meant, unless it is.
func explainUnless(ok bool, why, meant string) (string, string) {
	if ok {
		return "", ""
	}
	return why, meant
}

// knownTools are the words that the shipped policy's lists of programs contain.
var knownTools = sync.OnceValue(func() map[string]bool {
	known := map[string]bool{}
	for _, name := range []string{"lib/programs.rego", "lib/refused.rego"} {
		content, err := policies.FS.ReadFile(name)
		if err != nil {
			panic("lint: internal error: " + err.Error())
		}
		for i, word := range strings.Split(string(content), `"`) {
			if i%2 == 1 {
				known[word] = true
			}
		}
	}
	return known
})

// plainNameProblem says what is wrong with the name of a tool, which plain makes of the name of a file.
func plainNameProblem(text string, plain func(string) string) (why, meant string) {
	base := text[strings.LastIndexByte(text, '/')+1:]
	switch lower := strings.ToLower(text); {
	case base == "":
	case strings.HasPrefix(text, "/usr/bin/") || strings.HasPrefix(text, "/bin/"):
		return "it is the plain name of a tool, without directory", plain(base)
	case base == text && plain(text) != text:
		return "it is the plain name of a tool", plain(text)
	case !knownTools()[text] && knownTools()[lower]:
		return "the tool is " + lower, lower
	}
	return "", ""
}

// hostProblem says what is wrong with a name as the gateway sees it.
func hostProblem(text string) (why, meant string) {
	if _, err := netip.ParseAddr(text); err == nil {
		return "it is empty for a raw address, which address has", ""
	}
	name := strings.ToLower(text)
	if _, after, found := strings.Cut(name, "://"); found {
		name = after
	}
	name, _, _ = strings.Cut(name, "/")
	name, _, _ = strings.Cut(name, ":")
	if name = strings.TrimSuffix(name, "."); strings.HasPrefix(name, "*.") {
		return "it is the name of one host; use endswith", ""
	}
	return explainUnless(name == text, "it is a name in lower case, without scheme, port and path", name)
}

// partsByVar are the variables of r that are parts of the input: some x in REF, x := REF and every x in
// REF. A name with two meanings is left out.
func partsByVar(document reflect.Type, r *ast.Rule) map[ast.Var]inputPart {
	parts, meanings := map[ast.Var]inputPart{}, map[ast.Var]int{}
	declare := func(name *ast.Term, part inputPart) {
		if v, ok := name.Value.(ast.Var); ok {
			meanings[v]++
			parts[v] = part
		}
	}
	elementOf := func(list *ast.Term) inputPart {
		part := partOf(document, parts, list)
		if part.typ == nil || part.typ.Kind() != reflect.Slice {
			return inputPart{}
		}
		return inputPart{part.typ.Elem(), part.field}
	}
	ast.WalkNodes(r, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SomeDecl:
			for _, s := range n.Symbols {
				if call, ok := s.Value.(ast.Call); ok {
					declare(call[len(call)-2], elementOf(call[len(call)-1]))
				}
			}
		case *ast.Every:
			declare(n.Value, elementOf(n.Domain))
		case *ast.Expr:
			if n.IsAssignment() {
				declare(n.Operand(0), partOf(document, parts, n.Operand(1)))
			}
		}
		return false
	})
	for _, t := range r.Head.Args {
		declare(t, inputPart{})
	}
	for v, n := range meanings {
		if n > 1 {
			delete(parts, v)
		}
	}
	return parts
}

// partOf is the part of the input that t is, or nothing.
func partOf(document reflect.Type, parts map[ast.Var]inputPart, t *ast.Term) inputPart {
	var at inputPart
	path, isRef := t.Value.(ast.Ref)
	switch v, isVar := t.Value.(ast.Var); {
	case isVar:
		return parts[v]
	case !isRef:
		return at
	case path[0].Equal(ast.InputRootDocument):
		at.typ = document
	default:
		v, _ := path[0].Value.(ast.Var)
		at = parts[v]
	}
	for _, step := range path[1:] {
		name, isName := step.Value.(ast.String)
		switch {
		case at.typ == nil:
			return inputPart{}
		case at.typ.Kind() == reflect.Slice:
			at.typ = at.typ.Elem()
		case at.typ.Kind() == reflect.Struct && isName:
			at = fieldPart(at.typ, string(name))
		default:
			return inputPart{}
		}
	}
	return at
}

func fieldPart(t reflect.Type, name string) inputPart {
	for f := range t.Fields() {
		if module.FieldName(f) == name {
			return inputPart{f.Type, f}
		}
	}
	return inputPart{}
}
