// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// The test builtin evaluates the subscript of a name after -v and -R, and nothing
// else. So these operators require a plain name here, and a word that may become one
// of them must not precede a word that may contain a subscript.

var binaryTests = strings.Fields("= == != < > -eq -ne -lt -le -gt -ge -nt -ot -ef -a -o")

func checkTest(w *walker, _ int, args []arg, s scope, _ call) {
	operands := args[1:]
	if args[0].Value == "[" && len(operands) > 0 && operands[len(operands)-1].Value == "]" {
		operands = operands[:len(operands)-1]
	}
	for i, a := range operands {
		if a.Static {
			w.nameTest(operands, i)
			continue
		}
		followed := i+1 < len(operands) && mayHoldSubscript(operands[i+1])
		if a.split || a.Glob || followed {
			w.addDoubt(unknownTest, a.span, func() bool { return w.noOperator(a) })
		}
	}
}

// nameTest checks the operand of -v and -R.
func (w *walker) nameTest(operands []arg, i int) {
	if (operands[i].Value != "-v" && operands[i].Value != "-R") || i+1 == len(operands) {
		return
	}
	next := operands[i+1]
	if !next.Static || !(syntax.ValidName(next.Value) || slices.Contains(binaryTests, next.Value)) {
		w.addUnknown(unknownName, next.span)
	}
}

func mayHoldSubscript(a arg) bool { return !a.Static || strings.Contains(a.Value, "[") }

// noOperator reports whether a cannot become -v or -R, and cannot add them or a
// subscript if it expands to several words.
func (w *walker) noOperator(a arg) bool {
	switch {
	case a.src == nil:
		return false
	case a.Glob:
		return a.Value != "" && a.Value[0] != '-' || literalEnd(a.src)
	case !a.split:
		return a.Value != "" && a.Value[0] != '-' || w.onlyNumbers(a.src) || w.harmlessFields(a.src)
	}
	return w.onlyNumbers(a.src) || w.harmlessFields(a.src)
}

// harmlessFields reports whether all values of word are known, and none is or
// contains an operator or a subscript.
func (w *walker) harmlessFields(word *syntax.Word) bool {
	values, ok := w.literalValues(word.Parts, map[string]bool{})
	for _, value := range values {
		for field := range strings.FieldsSeq(value) {
			ok = ok && field != "-v" && field != "-R" && !strings.ContainsAny(field, "[*?\\")
		}
	}
	return ok
}

// literalEnd reports whether a pattern ends in text that cannot end an operator.
func literalEnd(word *syntax.Word) bool {
	lit, ok := word.Parts[len(word.Parts)-1].(*syntax.Lit)
	if !ok {
		return false
	}
	end := lit.Value[strings.LastIndexAny(lit.Value, `*?[]\`)+1:]
	return end != "" && !strings.HasSuffix("-v", end) && !strings.HasSuffix("-R", end)
}
