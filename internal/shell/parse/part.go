// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// walkWord walks everything in word that bash runs or evaluates.
func (w *walker) walkWord(word *syntax.Word, s scope) {
	if word != nil {
		w.walkParts(word.Parts, s, false)
	}
}

func (w *walker) walkParts(parts []syntax.WordPart, s scope, quoted bool) {
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			if !quoted && hidesProcess(part.Value) {
				w.addUnknown(unknownQuoting, w.spanOf(part, s))
			}
		case *syntax.SglQuoted:
		case *syntax.DblQuoted:
			w.walkParts(part.Parts, s, true)
		case *syntax.ParamExp:
			w.paramExp(part, s, quoted)
		case *syntax.CmdSubst:
			w.walkSubstitution(part, s)
		case *syntax.ArithmExp:
			w.notMksh(part, part.Unsigned, s)
			w.walkArithmetic(part.X, s)
		case *syntax.ProcSubst:
			w.processSubst(part, s)
		case *syntax.ExtGlob:
			w.extGlob(part, s)
		default:
			w.addUnknown(unknownDialect, w.spanOf(part, s))
		}
	}
}

// hidesProcess reports whether text that the parser reads as plain contains a process
// substitution, which bash runs in ${x-<(id)}.
func hidesProcess(text string) bool {
	if !strings.Contains(text, "(") {
		return false
	}
	text = strings.ReplaceAll(text, "\\\n", "")
	return strings.Contains(text, "<(") || strings.Contains(text, ">(")
}

func (w *walker) walkSubstitution(part *syntax.CmdSubst, s scope) {
	if part.TempFile || part.ReplyVar {
		w.addUnknown(unknownDialect, w.spanOf(part, s))
		return
	}
	s = s.inConstruct("substitution")
	s.level++
	if w.enterNode(part, s) {
		w.walkStmts(part.Stmts, s)
		w.leaveNode()
	}
}

func (w *walker) processSubst(part *syntax.ProcSubst, s scope) {
	s = s.inConstruct("process substitution")
	s.level++
	switch part.Op {
	case syntax.CmdOut:
		s.stdin = "pipe"
	case syntax.CmdIn:
	default:
		w.addUnknown(unknownDialect, w.spanOf(part, s))
		return
	}
	if w.enterNode(part, s) {
		w.walkStmts(part.Stmts, s)
		w.leaveNode()
	}
}

// extGlob refuses extended patterns outside [[ ]]: without the extglob setting, bash
// reads them as something else. Their text is not parsed, so it must contain no
// expansion.
func (w *walker) extGlob(part *syntax.ExtGlob, s scope) {
	inTest := len(s.inside) > 0 && s.inside[len(s.inside)-1] == "test"
	if !inTest || strings.ContainsAny(part.Pattern.Value, "$`<>") {
		w.addUnknown(unknownExtglob, w.spanOf(part, s))
	}
}
