// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// printsNumbers reports whether a substitution prints only numbers, whatever the
// files contain and are called: exactly one of the counters below, optionally after a
// pipe, optionally trimmed, optionally with a number if it fails. A text that sets
// PATH or declares a function of such a name is refused elsewhere.
func printsNumbers(stmts []*syntax.Stmt) bool {
	if len(stmts) != 1 || !hasOnlyOwnOutput(stmts[0]) {
		return false
	}
	if binary, ok := stmts[0].Cmd.(*syntax.BinaryCmd); ok && len(stmts[0].Redirs) == 0 {
		x, y := []*syntax.Stmt{binary.X}, []*syntax.Stmt{binary.Y}
		switch {
		case binary.Op == syntax.OrStmt:
			return fallback.MatchString(plainWords(binary.Y)) && printsNumbers(x)
		case binary.Op != syntax.Pipe:
			return false
		case len(binary.Y.Redirs) == 0 && trimmer.MatchString(plainWords(binary.Y)):
			return printsNumbers(x)
		case len(binary.Y.Redirs) == 0 && firstField.MatchString(plainWords(binary.Y)):
			return counterOfFile.MatchString(plainWords(binary.X)) || printsNumbers(x)
		}
		return printsNumbers(y)
	}
	return counter.MatchString(plainWords(stmts[0]))
}

// The commands as plainWords formats them: each word followed by a newline.
var (
	fallback      = pattern.New(`^(true|:|echo\n\d+)\n$`)
	firstField    = pattern.New(`^(awk\n\{ ?print \$1 ?\}|cut\n(-d \n-f1|-d\n \n-f1|-f1\n-d |-d \n-f\n1))\n$`)
	counterOfFile = pattern.New(`^wc\n-[lwcm]\n[^-\n][^\n]*\n$`) // the number, a blank, the name
	trimmer       = pattern.New(`^(tr\n-d\n[^\n]*|xargs|(head|tail)\n(-n\n?|-)\d+)\n$`)
	counter       = pattern.New(`^(wc\n(-[lwcmL]+|--(lines|words|bytes|chars))|nproc(\n--all)?|id\n-[ug]|date\n(-u\n)?\+(%-?[sNYmdHMSju]|%3N|\d)+|` +
		`seq(\n-?\d+)+|grep\n(-[ciEFvwxPs]+\n)*-[ciEFvwxPs]*c[ciEFvwxPs]*\n(-[ciEFvwxPs]+\n)*([^-\n][^\n]*)?(\n[^-\n][^\n]*)?|git\nrev-list\n--count(\n[^-\n][^\n]*)+)\n$`)
)

// hasOnlyOwnOutput reports whether nothing but stmt's own output reaches its reader.
func hasOnlyOwnOutput(stmt *syntax.Stmt) bool {
	if stmt.Background || stmt.Coprocess || stmt.Disown || stmt.Negated {
		return false
	}
	for _, redir := range stmt.Redirs {
		input := redir.N == nil && (redir.Op == syntax.RdrIn || redir.Op == syntax.WordHdoc || redir.Op == syntax.Hdoc)
		silent := redir.N != nil && redir.N.Value == "2" && redir.Op == syntax.RdrOut && redir.Word.Lit() == "/dev/null"
		if !input && !silent {
			return false
		}
	}
	return true
}

// plainWords returns the words of a simple command with only literal words, each
// followed by a newline; "" for every other statement.
func plainWords(stmt *syntax.Stmt) string {
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 || !hasOnlyOwnOutput(stmt) {
		return ""
	}
	var out strings.Builder
	for _, word := range call.Args {
		value, split := literalWord(word, readWord)
		if !value.Static || split || strings.Contains(value.Value, "\n") {
			return ""
		}
		out.WriteString(value.Value + "\n")
	}
	return out.String()
}
