// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// headOf returns the expansion that word begins with and the literal text after it;
// "" if word is anything else. Policy uses it, for example for a variable that only
// mktemp sets.
func headOf(word *syntax.Word) (head, tail string) {
	parts := word.Parts
	if quoted, ok := parts[0].(*syntax.DblQuoted); ok && !quoted.Dollar && len(quoted.Parts) > 0 {
		parts = append(quoted.Parts[:len(quoted.Parts):len(quoted.Parts)], parts[1:]...)
	}
	if head = headPart(parts[0]); head == "" {
		return "", ""
	}
	for _, part := range parts[1:] {
		text, ok := plainPart(part)
		if !ok {
			return "", ""
		}
		tail += text
	}
	return head, tail
}

// headPart formats $name, or a substitution of one command of plain words.
func headPart(part syntax.WordPart) string {
	switch part := part.(type) {
	case *syntax.ParamExp:
		if part.Param != nil && syntax.ValidName(part.Param.Value) &&
			(isPlainParam(part) || isTemporary(part)) {
			return "$" + part.Param.Value
		}
	case *syntax.CmdSubst:
		return headCommand(part)
	}
	return ""
}

// isTemporary reports whether exp is ${TMPDIR:-/tmp}, which is the same as $TMPDIR in the sandbox.
func isTemporary(exp *syntax.ParamExp) bool {
	plain := *exp
	plain.Exp = nil
	return exp.Param.Value == "TMPDIR" && exp.Exp != nil && isPlainParam(&plain) &&
		exp.Exp.Word != nil && exp.Exp.Word.Lit() == "/tmp" &&
		(exp.Exp.Op == syntax.DefaultUnsetOrNull || exp.Exp.Op == syntax.DefaultUnset)
}

func isPlainParam(exp *syntax.ParamExp) bool {
	return !exp.Excl && !exp.Length && !exp.Width && exp.Index == nil && exp.Slice == nil && exp.Repl == nil &&
		exp.Exp == nil && exp.Names == 0
}

func headCommand(subst *syntax.CmdSubst) string {
	if len(subst.Stmts) != 1 || subst.TempFile || subst.ReplyVar {
		return ""
	}
	stmt := subst.Stmts[0]
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || stmt.Negated || stmt.Background || stmt.Coprocess || stmt.Disown || len(stmt.Redirs) > 0 ||
		len(call.Assigns) > 0 || len(call.Args) == 0 {
		return ""
	}
	words := make([]string, len(call.Args))
	for i, word := range call.Args {
		value, split := literalWord(word, readWord)
		if !value.Static || split || strings.ContainsAny(value.Value, " \t\n") || value.Value == "" {
			return ""
		}
		words[i] = value.Value
	}
	return "$(" + strings.Join(words, " ") + ")"
}

func plainPart(part syntax.WordPart) (string, bool) {
	switch part := part.(type) {
	case *syntax.Lit:
		return part.Value, isPlainText(part.Value)
	case *syntax.SglQuoted:
		return part.Value, !part.Dollar
	case *syntax.DblQuoted:
		text := ""
		for _, inner := range part.Parts {
			lit, ok := inner.(*syntax.Lit)
			if !ok || strings.Contains(lit.Value, `\`) {
				return "", false
			}
			text += lit.Value
		}
		return text, !part.Dollar
	}
	return "", false
}
