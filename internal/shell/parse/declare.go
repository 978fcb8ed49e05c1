// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// walkDeclaration walks export, declare, local and similar commands as the parser sees
// them.
func (w *walker) walkDeclaration(
	stmt *syntax.Stmt, decl *syntax.DeclClause, redirects []proposal.Redirect, stdin string, s scope,
) {
	span := w.spanOf(stmt, s)
	variant := arg{Word: proposal.Word{Value: decl.Variant.Value, Static: true}, span: w.spanOf(decl.Variant, s)}
	args := []arg{variant}
	for _, assign := range decl.Args {
		args = append(args, w.declaredWord(assign, s)...)
	}
	w.recordCommand(args, s, call{redirects: redirects, stdin: stdin, span: span})
	for _, assign := range decl.Args {
		w.assignWords(assign, s)
	}
	w.redirectWords(stmt.Redirs, s)
}

// declaredWord converts one operand of a declaration to the word that bash sees.
func (w *walker) declaredWord(assign *syntax.Assign, s scope) []arg {
	if assign.Name == nil {
		return w.argsOf(assign.Value, s)
	}
	span := w.spanOf(assign, s)
	name := assign.Name.Value
	if assign.Naked {
		static := assign.Index == nil
		return []arg{{Word: proposal.Word{Value: name, Static: static}, span: span}}
	}
	value := w.describeAssign(assign, false, false, s).Value
	static := value.Static && assign.Array == nil && assign.Index == nil
	if assign.Value != nil && hasBrace(assign.Value) {
		static = false
	}
	word := proposal.Word{Value: name + "=" + value.Value, Static: static}
	return []arg{{Word: word, src: assign.Value, span: span, compound: assign.Array != nil, assigned: true,
		head: value.Head, tail: value.Tail}}
}

// checkDeclare checks export, declare and similar commands by their words.
func checkDeclare(w *walker, index int, args []arg, s scope, _ call) {
	exported := args[0].Value == "export"
	integer, array, assoc := false, false, false
	operands := false
	for _, a := range args[1:] {
		if !operands && len(a.Value) > 1 && strings.IndexByte("-+", a.Value[0]) >= 0 {
			letters := a.Value[1:]
			switch {
			case !a.Static || strings.Trim(letters, "aAgilruxpt-fF") != "" || letters == "-" && a.Value[0] == '+':
				w.addUnknown(unknownName, a.span)
				return
			case strings.Contains(letters, "f") && (exported || strings.ContainsAny(letters, "xt")):
				w.addUnknown(unknownExportedFunc, a.span)
				return
			}
			exported = exported || strings.Contains(letters, "x")
			integer = integer || strings.Contains(letters, "i")
			array = array || strings.ContainsAny(letters, "aA")
			assoc = assoc || strings.Contains(letters, "A") && a.Value[0] == '-' && s.top && args[0].Value != "local"
			operands = letters == "-"
			continue
		}
		operands = true
		w.recordDeclared(index, a, exported, integer, s)
		w.compoundText(a, array)
		name, _, _ := strings.Cut(a.Value, "=")
		if assoc {
			putInMap(&w.assoc, functionName{s.shell, name}, true)
		} else if args[0].Value != "export" {
			putInMap(&w.undone, name, true)
		}
	}
}

// checkTextual refuses subscripts that were read as text of an associative array if
// the array may have become another variable.
func (w *walker) checkTextual() {
	for _, name := range sortedKeys(w.textual) {
		if w.undone[name] {
			w.addUnknown(unknownArithmetic, w.textual[name])
		}
	}
}

// compoundText refuses NAME='(…)': bash expands such text again if the variable is an
// array.
func (w *walker) compoundText(a arg, array bool) {
	name, value, hasValue := strings.Cut(a.Value, "=")
	if !hasValue || a.compound {
		putInMap(&w.arrays, name, w.arrays[name] || array || a.compound)
		return
	}
	putInMap(&w.arrays, name, w.arrays[name] || array)
	switch {
	case strings.HasPrefix(value, "("):
		w.addUnknown(unknownArithmetic, a.span)
	case !a.Static && value == "":
		w.rewritten = append(w.rewritten, a)
	}
}

// checkRewritten refuses arrays to which a declaration assigns a dynamic value.
func (w *walker) checkRewritten() {
	for _, a := range w.rewritten {
		if name, _, _ := strings.Cut(a.Value, "="); w.arrays[strings.TrimSuffix(name, "+")] {
			w.addUnknown(unknownArithmetic, a.span)
		}
	}
}

// recordDeclared records one NAME or NAME=value of a declaration.
func (w *walker) recordDeclared(index int, a arg, exported, integer bool, s scope) {
	name, value, hasValue := strings.Cut(a.Value, "=")
	name = strings.TrimSuffix(name, "+")
	if !a.Static && !hasValue && a.Value == "" {
		w.addUnknown(unknownDeclared, a.span)
		return
	}
	if !syntax.ValidName(name) || (!a.Static && !hasValue) {
		w.addUnknown(unknownName, a.span)
		return
	}
	if integer {
		w.recordNumber(name, a.span)
	}
	if !a.assigned {
		w.assignedValue(name, proposal.Word{Value: value, Static: a.Static}, a.span)
	}
	if !hasValue {
		putInMap(&w.exported, name, w.exported[name] || exported)
		if !exported {
			return
		}
	} else if !a.assigned {
		w.originOf(name).addArg(a, value)
		w.localeValue(name, proposal.Word{Value: value, Static: a.Static}, a.span)
	}
	putInMap(&w.exported, name, w.exported[name] || exported)
	assign := proposal.Assign{Name: name, Exported: exported,
		Value: proposal.Word{Value: value, Static: a.Static && hasValue, Head: a.head, Tail: a.tail}}
	w.commands[index].Assigns = append(w.commands[index].Assigns, assign)
}

// searchVariables control where programs and files are found. Policy judges the
// values that the text assigns; assignments without a value that policy can judge are
// refused here.
var searchVariables = map[string]bool{
	"PATH": true, "HOME": true, "CDPATH": true, "TMPDIR": true, "GLOBIGNORE": true, "FIGNORE": true, "SHELL": true, "TERM": true, "LD_PRELOAD": true,
	"LD_LIBRARY_PATH": true, "PYTHONPATH": true, "NODE_OPTIONS": true, "NODE_PATH": true, "HISTFILE": true, "INPUTRC": true, "MAILCHECK": true,
}

// assignedOddly checks a variable that is unset, or set to a value that bash
// generates.
func (w *walker) assignedOddly(name string, span proposal.Span) {
	if w.checkAssignedName(name, span); searchVariables[name] {
		w.addUnknown(unknownVariable, span)
	}
}

// localeValue refuses locales in which a backslash or quote may be part of a
// multibyte character.
func (w *walker) localeValue(name string, value proposal.Word, span proposal.Span) {
	if name != "LANG" && name != "LANGUAGE" && !strings.HasPrefix(name, "LC_") {
		return
	}
	if value.Static && plainLocale(value.Value) {
		return
	}
	if variable, ok := strings.CutPrefix(value.Head, "$"); ok && value.Tail == "" && syntax.ValidName(variable) {
		w.locales = append(w.locales, namedAt{variable, span})
		return
	}
	w.addUnknown(unknownVariable, span)
}

// checkLocales refuses locales from variables, except for one that a single loop over
// plain locales sets.
func (w *walker) checkLocales() {
	for _, used := range w.locales {
		if !w.plainLocales[used.name] || w.sets[used.name] != 1 {
			w.addUnknown(unknownVariable, used.span)
		}
	}
}

func plainLocale(name string) bool {
	text := strings.ToLower(strings.ReplaceAll(name, "-", ""))
	return text == "" || text == "c" || text == "posix" ||
		strings.HasSuffix(text, ".utf8") && !strings.Contains(text, "/") || text == "en_us"
}
