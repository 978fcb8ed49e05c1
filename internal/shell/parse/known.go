// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// knownVariables holds the variables whose value is certain at the walker's position.
//
// A variable is certain if the whole text sets it once, to a literal, in a statement
// that always runs before the later ones of its list: w=-v; go test $w. The first walk
// of a text counts how often each variable is set, in any way. The second learns the
// values in execution order and forgets them at the end of the list. So a use before
// the assignment, after || or in another shell is never certain.
type knownVariables map[string]string

// valueOf returns what part expands to.
func (k knownVariables) valueOf(part syntax.WordPart) (string, bool) {
	exp, ok := part.(*syntax.ParamExp)
	if !ok || len(k) == 0 || exp.Param == nil || !isPlainParam(exp) {
		return "", false
	}
	value, ok := k[exp.Param.Value]
	return value, ok
}

// oneField reports whether an unquoted expansion to value is exactly one word,
// unchanged.
func oneField(value string) bool {
	return value != "" && !strings.ContainsAny(value, " \t\n*?[\\")
}

// fieldsOf returns the words that word becomes if it is one known unquoted variable.
func (k knownVariables) fieldsOf(word *syntax.Word) ([]string, bool) {
	if len(word.Parts) != 1 {
		return nil, false
	}
	value, ok := k.valueOf(word.Parts[0])
	blank := func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' }
	return strings.FieldsFunc(value, blank), ok && !strings.ContainsAny(value, "*?[\\")
}

// learnAssigns records what stmt assigns, if the text sets the variable nowhere else.
func (w *walker) learnAssigns(stmt *syntax.Stmt, s scope) {
	if stmt.Negated || stmt.Background || stmt.Coprocess || stmt.Disown || len(stmt.Redirs) > 0 || s.shell != 0 ||
		s.span != nil || w.posix {
		return
	}
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		if len(cmd.Args) == 0 {
			w.learnAll(cmd.Assigns)
		}
	case *syntax.DeclClause:
		if name := cmd.Variant.Value; name == "export" || name == "readonly" || name == "local" && s.fn {
			w.learnAll(cmd.Args)
		}
	}
}

func (w *walker) learnAll(assigns []*syntax.Assign) {
	for _, assign := range assigns {
		if assign.Name == nil || assign.Naked || assign.Append || assign.Index != nil || assign.Array != nil ||
			assign.Value != nil && hasBrace(assign.Value) {
			return // an option, or export x={a,b}, changes the meaning of the others
		}
	}
	for _, assign := range assigns {
		name := assign.Name.Value
		value, _ := w.known.expandLiteral(assign.Value, readAssign)
		if !value.Static || shellOwn[name] || strings.HasPrefix(value.Value, "(") {
			continue
		}
		w.certain = true
		if w.once[name] == 1 {
			putInMap(&w.known, name, value.Value)
			w.learned = append(w.learned, name)
		}
	}
}

// forgetSince drops everything learned after mark.
func (w *walker) forgetSince(mark int) {
	for _, name := range w.learned[mark:] {
		delete(w.known, name)
	}
	w.learned = w.learned[:mark]
}

// fromEnv adds the variables of the proposal's environment whose value is certain.
func (w *walker) fromEnv(env map[string]string) {
	for name, value := range env {
		if w.once[name] == 1 && !shellOwn[name] && syntax.ValidName(name) {
			putInMap(&w.known, name, value)
		}
	}
}

// knownArgs returns the words of a variable that is known to expand to several, or
// none.
func (w *walker) knownArgs(word *syntax.Word, span proposal.Span) ([]arg, bool) {
	fields, ok := w.known.fieldsOf(word)
	if !ok {
		return nil, false
	}
	args := make([]arg, len(fields))
	for i, field := range fields {
		args[i] = arg{Word: proposal.Word{Value: field, Static: true}, src: word, span: span}
	}
	return args, true
}
