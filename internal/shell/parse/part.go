// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// word walks everything in word that bash runs or evaluates.
func (w *walker) word(word *syntax.Word, s scope) {
	if word != nil {
		w.parts(word.Parts, s, false)
	}
}

func (w *walker) parts(parts []syntax.WordPart, s scope, quoted bool) {
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			if !quoted && hidesProcess(part.Value) {
				w.unknown(unknownQuoting, w.span(part, s))
			}
		case *syntax.SglQuoted:
		case *syntax.DblQuoted:
			w.parts(part.Parts, s, true)
		case *syntax.ParamExp:
			w.paramExp(part, s, quoted)
		case *syntax.CmdSubst:
			w.substitution(part, s)
		case *syntax.ArithmExp:
			w.notMksh(part, part.Unsigned, s)
			w.arithmetic(part.X, s)
		case *syntax.ProcSubst:
			w.processSubst(part, s)
		case *syntax.ExtGlob:
			w.extGlob(part, s)
		default:
			w.unknown(unknownDialect, w.span(part, s))
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

func (w *walker) substitution(part *syntax.CmdSubst, s scope) {
	if part.TempFile || part.ReplyVar {
		w.unknown(unknownDialect, w.span(part, s))
		return
	}
	s = s.in("substitution")
	s.level++
	if w.enter(part, s) {
		w.stmts(part.Stmts, s)
		w.leave()
	}
}

func (w *walker) processSubst(part *syntax.ProcSubst, s scope) {
	s = s.in("process substitution")
	s.level++
	switch part.Op {
	case syntax.CmdOut:
		s.stdin = "pipe"
	case syntax.CmdIn:
	default:
		w.unknown(unknownDialect, w.span(part, s))
		return
	}
	if w.enter(part, s) {
		w.stmts(part.Stmts, s)
		w.leave()
	}
}

// extGlob refuses extended patterns outside [[ ]]: without the extglob setting, bash
// reads them as something else. Their text is not parsed, so it must contain no
// expansion.
func (w *walker) extGlob(part *syntax.ExtGlob, s scope) {
	inTest := len(s.inside) > 0 && s.inside[len(s.inside)-1] == "test"
	if !inTest || strings.ContainsAny(part.Pattern.Value, "$`<>") {
		w.unknown(unknownExtglob, w.span(part, s))
	}
}
