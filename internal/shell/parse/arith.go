// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Bash evaluates the text that an expression expands to, then the text of the
// variables it names, recursively. A subscript in any of them may contain a command
// substitution. So an operand must be a number, or a variable that is only ever
// assigned numbers.

func (w *walker) walkArithmetic(expr syntax.ArithmExpr, s scope) {
	if expr == nil || !w.enterNode(expr, s) {
		return
	}
	defer w.leaveNode()
	switch expr := expr.(type) {
	case *syntax.BinaryArithm:
		w.walkArithmetic(expr.X, s)
		w.walkArithmetic(expr.Y, s)
		w.arithmeticAssign(expr.X, expr.Op, s)
	case *syntax.UnaryArithm:
		w.walkArithmetic(expr.X, s)
		if expr.Op == syntax.Inc || expr.Op == syntax.Dec {
			w.arithmeticTarget(expr.X, s)
		}
	case *syntax.ParenArithm:
		w.walkArithmetic(expr.X, s)
	case *syntax.Word:
		w.walkOperand(expr, s)
	default:
		w.addUnknown(unknownDialect, w.spanOf(expr, s))
	}
}

// arithmeticAssign records variables that an expression sets; the value is a number.
func (w *walker) arithmeticAssign(target syntax.ArithmExpr, op syntax.BinAritOperator, s scope) {
	if isAssignOperator(op.String()) {
		w.arithmeticTarget(target, s)
	}
}

// isAssignOperator reports whether an arithmetic operator sets its left side.
func isAssignOperator(op string) bool {
	return strings.HasSuffix(op, "=") && op != "==" && op != "!=" && op != "<=" && op != ">="
}

func (w *walker) arithmeticTarget(target syntax.ArithmExpr, s scope) {
	word, ok := target.(*syntax.Word)
	if !ok {
		return
	}
	name := word.Lit()
	if exp, ok := onlyPart[*syntax.ParamExp](word.Parts); ok && exp.Param != nil {
		name = exp.Param.Value // a[i], without a dollar
	}
	if name != "" {
		w.assignedOddly(name, w.spanOf(word, s))
	}
}

// walkOperand walks one operand of an expression.
func (w *walker) walkOperand(word *syntax.Word, s scope) {
	span := w.spanOf(word, s)
	if len(word.Parts) == 1 {
		if exp, ok := word.Parts[0].(*syntax.ParamExp); ok && exp.Short && !exp.Dollar.IsValid() && exp.Index != nil {
			w.recordNumber(exp.Param.Value, span) // a[i] without a dollar
			putInMap(&w.arrays, exp.Param.Value, true)
			w.walkArithmetic(exp.Index, s) // evaluated twice here, whatever the array is
			return
		}
	}
	w.operandParts(word.Parts, len(word.Parts) == 1, span)
	w.walkWord(word, s)
}

// operandParts checks the text that an operand expands to.
func (w *walker) operandParts(parts []syntax.WordPart, alone bool, span proposal.Span) {
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			w.checkExpression(part.Value, alone, span)
		case *syntax.SglQuoted:
			w.checkExpression(part.Value, alone && !part.Dollar, span)
		case *syntax.DblQuoted:
			w.operandParts(part.Parts, alone && len(part.Parts) == 1, span)
		case *syntax.ArithmExp:
		case *syntax.ParamExp, *syntax.CmdSubst:
			value := w.originOf(nextName(span))
			value.addParts(w, []syntax.WordPart{part})
			w.recordNumber(nextName(span), span)
		default:
			w.addUnknown(unknownArithmetic, span)
		}
	}
}

// nextName names an operand's own value: no variable has such a name.
func nextName(span proposal.Span) string {
	return "=" + strconv.Itoa(span.Start)
}

// checkExpression checks literal text of an expression: numbers, names and operators.
// Letters next to an expansion could become another variable's name.
func (w *walker) checkExpression(text string, alone bool, span proposal.Span) {
	for i := 0; i < len(text); {
		c := text[i]
		if !nameByte(c) {
			if strings.IndexByte(" \t\n+-*/%<>=!&|^~?:(),#@.", c) < 0 {
				w.addUnknown(unknownArithmetic, span)
				return
			}
			i++
			continue
		}
		end := i
		for end < len(text) && nameByte(text[end]) {
			end++
		}
		if name := text[i:end]; c < '0' || c > '9' {
			if !alone {
				w.addUnknown(unknownArithmetic, span)
				return
			}
			w.recordNumber(name, span)
			if assignsBeside(text[:i], text[end:]) {
				w.assignedOddly(name, span)
			}
		}
		i = end
	}
}

// assignsBeside reports whether an expression sets the variable between before and
// after.
func assignsBeside(before, after string) bool {
	before, after = strings.TrimRight(before, " \t\n"), strings.TrimLeft(after, " \t\n")
	if strings.HasSuffix(before, "++") || strings.HasSuffix(before, "--") || strings.HasPrefix(after, "++") ||
		strings.HasPrefix(after, "--") {
		return true
	}
	op := after[:len(after)-len(strings.TrimLeft(after, "+-*/%<>=!&|^"))]
	return strings.Contains(op, "=") && isAssignOperator(op[:strings.LastIndexByte(op, '=')+1])
}

// recordNumber records that bash evaluates the variable name as an expression.
func (w *walker) recordNumber(name string, span proposal.Span) {
	if _, ok := w.numbers[name]; !ok {
		putInMap(&w.numbers, name, span)
	}
}

// walkSubscript walks name[…]: an expression, unless the array is certainly associative.
func (w *walker) walkSubscript(name string, index syntax.ArithmExpr, s scope) {
	putInMap(&w.arrays, name, true)
	word, ok := index.(*syntax.Word)
	if ok && (word.Lit() == "@" || word.Lit() == "*") {
		return
	}
	if ok && w.assoc[functionName{s.shell, name}] {
		putInMap(&w.textual, name, w.spanOf(index, s))
		w.walkWord(word, s)
		return
	}
	w.walkArithmetic(index, s)
}

// plainLet reports whether bash reads expr as one word of let: quoted, or names,
// numbers and operators without another meaning to the shell (unlike * and <).
func plainLet(expr syntax.ArithmExpr) bool {
	switch expr := expr.(type) {
	case *syntax.Word:
		_, single := onlyPart[*syntax.SglQuoted](expr.Parts)
		_, double := onlyPart[*syntax.DblQuoted](expr.Parts)
		return single || double || expr.Lit() != "" && strings.Trim(expr.Lit(), nameBytes) == ""
	case *syntax.UnaryArithm:
		return expr.Op != syntax.Not && expr.Op != syntax.BitNegation && plainLet(expr.X)
	case *syntax.BinaryArithm:
		return strings.Trim(expr.Op.String(), "+-/%=") == "" && plainLet(expr.X) && plainLet(expr.Y)
	}
	return false
}
