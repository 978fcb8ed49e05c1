// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"mvdan.cc/sh/v3/syntax"
)

func (w *walker) testExpr(expr syntax.TestExpr, s scope) {
	if expr == nil || !w.enterNode(expr, s) {
		return
	}
	defer w.leaveNode()
	switch expr := expr.(type) {
	case *syntax.Word:
		w.walkWord(expr, s)
	case *syntax.ParenTest:
		w.testExpr(expr.X, s)
	case *syntax.UnaryTest:
		w.unaryTest(expr, s)
	case *syntax.BinaryTest:
		w.binaryTest(expr, s)
	default:
		w.addUnknown(unknownDialect, w.spanOf(expr, s))
	}
}

func (w *walker) unaryTest(expr *syntax.UnaryTest, s scope) {
	if expr.Op == syntax.TsVarSet || expr.Op == syntax.TsRefVar {
		word, _ := expr.X.(*syntax.Word)
		value, _ := literalWord(word, readWord)
		if word == nil || !value.Static || !syntax.ValidName(value.Value) {
			w.addUnknown(unknownName, w.spanOf(expr, s))
		}
	}
	w.testExpr(expr.X, s)
}

func (w *walker) binaryTest(expr *syntax.BinaryTest, s scope) {
	switch expr.Op {
	case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
		for _, side := range []syntax.TestExpr{expr.X, expr.Y} {
			if word, ok := side.(*syntax.Word); ok {
				w.walkOperand(word, s)
				continue
			}
			w.addUnknown(unknownArithmetic, w.spanOf(expr, s))
		}
		return
	case syntax.TsReMatch:
		w.originOf("BASH_REMATCH").markOutside()
	}
	w.testExpr(expr.X, s)
	w.testExpr(expr.Y, s)
}
