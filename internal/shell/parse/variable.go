// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func checkMapfile(w *walker, index int, args []arg, s scope, _ call) {
	found, rest, ok := w.splitOptions(args[1:], "t", "dnOsuCc")
	if _, callback := found['C']; callback || !ok {
		w.addUnknown(unknownCallback, args[0].span)
		return
	}
	w.setsUnknown(index, rest, "MAPFILE")
}

func checkRead(w *walker, index int, args []arg, s scope, _ call) {
	found, rest, ok := w.splitOptions(args[1:], "rs", "adnNptu")
	if !ok {
		w.addUnknown(unknownName, args[0].span)
		return
	}
	if array, has := found['a']; has {
		putInMap(&w.arrays, array.Value, true)
		putInMap(&w.undone, array.Value, true)
		rest = append(rest[:len(rest):len(rest)], array)
	}
	w.setsUnknown(index, rest, "REPLY")
}

// setsUnknown records that a builtin sets the variables names to anything.
func (w *walker) setsUnknown(index int, names []arg, otherwise string) {
	if len(names) == 0 {
		w.originOf(otherwise).markOutside()
	}
	for _, a := range names {
		if w.variableName(a) {
			w.originOf(a.Value).markOutside()
			if otherwise == "MAPFILE" {
				putInMap(&w.arrays, a.Value, true)
				putInMap(&w.undone, a.Value, true)
			}
			w.commands[index].Assigns = append(w.commands[index].Assigns, proposal.Assign{Name: a.Value})
		}
	}
}

// variableName checks a word that names a variable: anything but a plain name may
// contain a subscript, which bash evaluates.
func (w *walker) variableName(a arg) bool {
	if !a.Static || !syntax.ValidName(a.Value) {
		w.addUnknown(unknownName, a.span)
		return false
	}
	w.checkAssignedName(a.Value, a.span)
	return true
}

// checkPrintf refuses a format that may become -v, and one that may contain %n, which
// sets the variable that an operand names.
func checkPrintf(w *walker, index int, args []arg, s scope, _ call) {
	if len(args) < 2 {
		return
	}
	first := args[1]
	switch {
	case first.Static && first.Value == "--":
		checkPrintf(w, index, args[1:], s, call{})
	case first.Static && len(first.Value) > 1 && first.Value[0] == '-':
		found, rest, ok := w.splitOptions(args[1:], "", "v")
		if !ok {
			w.addUnknown(unknownName, first.span)
			return
		}
		if name, has := found['v']; has {
			w.setsUnknown(index, []arg{name}, "")
		}
		if len(rest) > 0 {
			w.checkFormat(rest[0], len(rest) > 1)
		}
	default:
		w.checkFormat(first, len(args) > 2)
	}
}

// setsCount matches %n, and directives that adjacent text may complete to it.
var setsCount = pattern.New(`%[-+ #0-9.*'hlLjzqtw]*(n|\x00|$)`)

func (w *walker) checkFormat(a arg, operands bool) {
	if a.Static {
		if setsCount.MatchString(a.Value) && operands {
			w.addUnknown(unknownName, a.span)
		}
		return
	}
	w.addDoubt(unknownName, a.span, func() bool { return w.plainFormat(a, operands) })
}

// plainFormat reports whether a dynamic format is not an option and, if there are
// operands, sets none of them.
func (w *walker) plainFormat(a arg, operands bool) bool {
	if a.src == nil || a.Glob {
		return false
	}
	if w.onlyNumbers(a.src) || a.Value != "" && a.Value[0] != '-' && !operands && !a.split {
		return true
	}
	parts := a.src.Parts
	if quoted, ok := onlyPart[*syntax.DblQuoted](parts); ok && !quoted.Dollar {
		parts = quoted.Parts
	}
	text, begun := "", false // begun: the next part does not begin the word
	for _, part := range parts {
		value, _ := w.known.expandLiteral(&syntax.Word{Parts: []syntax.WordPart{part}}, readAssign)
		if !value.Static {
			if !w.plainPiece(part, !begun) {
				return false
			}
			value.Value = "\x00"
		} else if begun = begun || value.Value != ""; strings.HasPrefix(strings.TrimLeft(text, "\x00")+value.Value,
			"-") {
			return false // an option, if everything before it is empty
		}
		text += value.Value
	}
	return !setsCount.MatchString(text)
}

// plainPiece reports whether all values of one expansion in a format are known, and
// none begins an option or a directive.
func (w *walker) plainPiece(part syntax.WordPart, first bool) bool {
	values, ok := w.literalValues([]syntax.WordPart{part}, map[string]bool{})
	for _, value := range values {
		if setsCount.MatchString(value) || first && strings.HasPrefix(value, "-") {
			return false
		}
	}
	return ok
}

// dynamicOption refuses an expansion where an option would be dangerous, unless
// nothing in the text can make it one.
func (w *walker) dynamicOption(a arg, kind unknownKind) {
	w.addDoubt(kind, a.span, func() bool { return w.onlyNumbers(a.src) })
}

// neverSet are variables that the sandbox does not set: without them, nothing is searched elsewhere.
var neverSet = nameSet("NODE_OPTIONS NODE_PATH PYTHONPATH LD_PRELOAD LD_LIBRARY_PATH")

func checkUnset(w *walker, _ int, args []arg, s scope, _ call) {
	found, rest, ok := w.splitOptions(args[1:], "vfn", "")
	if !ok {
		w.addUnknown(unknownName, args[0].span)
		return
	}
	if _, function := found['f']; function {
		w.addUnknown(unknownExportedFunc, args[0].span)
		return
	}
	for _, a := range rest {
		if a.Static && w.functions[functionName{s.shell, a.Value}] != nil {
			w.addUnknown(unknownExportedFunc, a.span)
		}
		if w.variableName(a) && !neverSet[a.Value] {
			w.assignedOddly(a.Value, a.span)
		}
		putInMap(&w.undone, a.Value, true)
	}
}

func checkLet(w *walker, _ int, args []arg, _ scope, _ call) {
	for _, a := range args[1:] {
		if !a.Static {
			w.addUnknown(unknownArithmetic, a.span)
			continue
		}
		w.checkExpression(a.Value, true, a.span)
	}
}

func checkGetopts(w *walker, index int, args []arg, _ scope, _ call) {
	if len(args) < 3 {
		return
	}
	w.originOf("OPTARG").markOutside()
	w.setsUnknown(index, args[2:3], "")
	if !args[1].Static {
		w.addUnknown(unknownName, args[1].span)
	}
}

// checkWait allows -n, -f, job numbers and words that can only be numbers: -p sets a
// variable and evaluates its subscript.
func checkWait(w *walker, _ int, args []arg, _ scope, _ call) {
	for _, a := range args[1:] {
		switch {
		case !a.Static:
			w.dynamicOption(a, unknownName)
		case a.Value != "-n" && a.Value != "-f" && !isJobSpec(a.Value):
			w.addUnknown(unknownName, a.span)
		}
	}
}

func isJobSpec(text string) bool {
	return text != "" && strings.Trim(strings.TrimPrefix(text, "%"), "0123456789+-%") == "" && text[0] != '-'
}

// checkJobs allows options that list jobs: -x runs a command.
func checkJobs(w *walker, _ int, args []arg, _ scope, _ call) {
	for _, a := range args[1:] {
		if !a.Static || !isJobSpec(a.Value) &&
			(!strings.HasPrefix(a.Value, "-") || strings.Trim(a.Value, "-lnprs") != "") {
			w.addUnknown(unknownCallback, a.span)
		}
	}
}
