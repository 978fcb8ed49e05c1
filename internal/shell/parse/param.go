// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/pkg/proposal"
)

func (w *walker) paramExp(exp *syntax.ParamExp, s scope, quoted bool) {
	span := w.spanOf(exp, s)
	if !w.enterNode(exp, s) {
		return
	}
	defer w.leaveNode()
	if exp.Param == nil || exp.Flags != nil || exp.Width || exp.IsSet || exp.NestedParam != nil ||
		len(exp.Modifiers) > 0 ||
		exp.Split != 0 || exp.GlobSubst != 0 || exp.RcExpand != 0 {
		w.addUnknown(unknownDialect, span)
		return
	}
	if exp.Excl && exp.Names == 0 && !allKeys(exp) {
		w.addUnknown(unknownIndirect, span)
	}
	if exp.Index != nil {
		w.walkSubscript(exp.Param.Value, exp.Index, s)
	}
	if exp.Slice != nil {
		w.walkArithmetic(exp.Slice.Offset, s)
		w.walkArithmetic(exp.Slice.Length, s)
	}
	if exp.Repl != nil {
		w.inExpansion(exp.Repl.Orig, s, quoted)
		w.inExpansion(exp.Repl.With, s, quoted)
	}
	if exp.Exp != nil {
		w.walkExpansion(exp, s, quoted)
	}
}

func allKeys(exp *syntax.ParamExp) bool {
	index, ok := exp.Index.(*syntax.Word)
	return ok && (index.Lit() == "@" || index.Lit() == "*")
}

func (w *walker) walkExpansion(exp *syntax.ParamExp, s scope, quoted bool) {
	span := w.spanOf(exp, s)
	switch exp.Exp.Op {
	case syntax.OtherParamOps:
		if op := exp.Exp.Word.Lit(); len(op) != 1 || !strings.Contains("QUuLEAaKk", op) {
			w.addUnknown(unknownPrompt, span)
		}
		return
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		w.originOf(exp.Param.Value).addWord(w, exp.Exp.Word)
		w.checkAssignedName(exp.Param.Value, span)
		value, _ := w.known.expandLiteral(exp.Exp.Word, readAssign)
		assign := proposal.Assign{Name: exp.Param.Value, Value: value}
		w.emitCommand(proposal.Command{Assigns: []proposal.Assign{assign}, Via: s.via, Inside: s.inside, Span: span})
	}
	w.inExpansion(exp.Exp.Word, s, quoted)
}

// inExpansion walks a word inside ${…}. Inside double quotes, single quotes are plain
// characters there, but only for some operators and in some shells.
func (w *walker) inExpansion(word *syntax.Word, s scope, quoted bool) {
	if word == nil {
		return
	}
	for _, part := range word.Parts {
		single, ok := part.(*syntax.SglQuoted)
		if ok && quoted && strings.ContainsAny(single.Value, "$`\"}\\") {
			w.addUnknown(unknownQuoting, w.spanOf(word, s))
		}
	}
	w.walkParts(word.Parts, s, quoted)
}
