// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// The test builtin evaluates the subscript after -v and -R. So these operators
// take a plain name here, and no expansion may become one of them.

var binaryTests = strings.Fields("= == != < > -eq -ne -lt -le -gt -ge -nt -ot -ef -a -o")
var unaryTests = strings.Fields("-a -b -c -d -e -f -g -h -k -p -r -s -t -u -w -x -G -L -N -O -S -o -z -n")

func checkTest(w *walker, _ int, args []arg, s scope, _ call) {
	operands := args[1:]
	if args[0].Value == "[" && len(operands) > 0 && operands[len(operands)-1].Value == "]" {
		operands = operands[:len(operands)-1]
	}
	for i, a := range operands {
		switch {
		case a.Static:
			w.nameTest(operands, i, s)
		case a.split || a.Glob:
			w.dynamicOption(a, unknownTest)
		case !isOperand(operands, i):
			w.dynamicOption(a, unknownTest)
		}
	}
}

// nameTest checks what follows -v and -R.
func (w *walker) nameTest(operands []arg, i int, _ scope) {
	if (operands[i].Value != "-v" && operands[i].Value != "-R") || i+1 == len(operands) {
		return
	}
	next := operands[i+1]
	if !next.Static || !(syntax.ValidName(next.Value) || slices.Contains(binaryTests, next.Value)) {
		w.unknown(unknownName, next.span)
	}
}

// isOperand reports whether operands[i] stands beside a literal operator, so that
// it cannot be read as one itself.
func isOperand(operands []arg, i int) bool {
	is := func(j int, names []string) bool {
		return j >= 0 && j < len(operands) && operands[j].Static && slices.Contains(names, operands[j].Value)
	}
	switch {
	case len(operands) == 1, len(operands) == 2 && i == 1 && operands[0].Static && operands[0].Value == "!":
		return true
	}
	return is(i+1, binaryTests) || is(i-1, binaryTests) || is(i-1, unaryTests)
}
