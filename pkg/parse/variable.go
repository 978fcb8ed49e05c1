// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/pkg/proposal"
)

func checkMapfile(w *walker, index int, args []arg, s scope, _ call) {
	found, rest, ok := w.options(args[1:], "t", "dnOsuCc")
	if _, callback := found['C']; callback || !ok {
		w.unknown(unknownCallback, args[0].span)
		return
	}
	w.setsUnknown(index, rest, "MAPFILE", s)
}

func checkRead(w *walker, index int, args []arg, s scope, _ call) {
	found, rest, ok := w.options(args[1:], "ers", "adinNptu")
	if !ok {
		w.unknown(unknownName, args[0].span)
		return
	}
	if array, has := found['a']; has {
		put(&w.arrays, array.Value, true)
		put(&w.undone, array.Value, true)
		rest = append(rest[:len(rest):len(rest)], array)
	}
	w.setsUnknown(index, rest, "REPLY", s)
}

// setsUnknown notes that a builtin sets the variables names to anything.
func (w *walker) setsUnknown(index int, names []arg, otherwise string, s scope) {
	if len(names) == 0 {
		w.origin(otherwise).unknown = true
	}
	for _, a := range names {
		if w.variableName(a, s) {
			w.origin(a.Value).unknown = true
			if otherwise == "MAPFILE" {
				put(&w.arrays, a.Value, true)
				put(&w.undone, a.Value, true)
			}
			w.commands[index].Assigns = append(w.commands[index].Assigns, proposal.Assign{Name: a.Value})
		}
	}
}

// variableName checks a word that names a variable: anything but a plain name may
// hold a subscript, which bash evaluates.
func (w *walker) variableName(a arg, s scope) bool {
	if !a.Static || !syntax.ValidName(a.Value) {
		w.unknown(unknownName, a.span)
		return false
	}
	w.assigned(a.Value, a.span, s)
	return true
}

func checkPrintf(w *walker, index int, args []arg, s scope, _ call) {
	if len(args) < 2 {
		return
	}
	first := args[1]
	if !first.Static && first.Value == "" && first.split {
		w.unknown(unknownName, first.span)
		return
	}
	if !strings.HasPrefix(first.Value, "-") || first.Value == "--" {
		if !first.Static && first.Value == "" {
			w.dynamicOption(first, unknownName)
		}
		return
	}
	found, _, ok := w.options(args[1:], "", "v")
	if !ok {
		w.unknown(unknownName, first.span)
		return
	}
	if name, has := found['v']; has {
		w.setsUnknown(index, []arg{name}, "", s)
	}
}

// dynamicOption refuses an expansion where an option would be dangerous, unless
// nothing in the text can make it one.
func (w *walker) dynamicOption(a arg, kind unknownKind) {
	if a.src == nil {
		w.unknown(kind, a.span)
		return
	}
	name := nextName(a.span)
	w.origin(name).addWord(w, a.src)
	put(&w.operands, name, operandUse{kind, a.span})
}

func checkUnset(w *walker, _ int, args []arg, s scope, _ call) {
	found, rest, ok := w.options(args[1:], "vfn", "")
	if !ok {
		w.unknown(unknownName, args[0].span)
		return
	}
	if _, function := found['f']; function {
		w.unknown(unknownExportedFunc, args[0].span)
		return
	}
	for _, a := range rest {
		if a.Static && w.functions[functionName{s.shell, a.Value}] != nil {
			w.unknown(unknownExportedFunc, a.span)
		}
		if w.variableName(a, s) {
			w.assignedOddly(a.Value, a.span, s)
		}
		put(&w.undone, a.Value, true)
	}
}

func checkLet(w *walker, _ int, args []arg, s scope, _ call) {
	for _, a := range args[1:] {
		if !a.Static {
			w.unknown(unknownArithmetic, a.span)
			continue
		}
		w.expression(a.Value, true, a.span)
	}
}

func checkGetopts(w *walker, index int, args []arg, s scope, _ call) {
	if len(args) < 3 {
		return
	}
	w.origin("OPTARG").unknown = true
	w.setsUnknown(index, args[2:3], "", s)
	if !args[1].Static {
		w.unknown(unknownName, args[1].span)
	}
}

func checkWait(w *walker, index int, args []arg, s scope, _ call) {
	for _, a := range args[1:] {
		if strings.HasPrefix(a.Value, "-p") || (!a.Static && a.split && a.Value == "") {
			w.dynamicWait(a)
		}
	}
}

func (w *walker) dynamicWait(a arg) {
	if a.Static {
		w.unknown(unknownName, a.span)
		return
	}
	w.dynamicOption(a, unknownName)
}
