// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/pkg/proposal"
)

func (w *walker) forClause(cmd *syntax.ForClause, s scope) {
	name := "for"
	if cmd.Select {
		name = "select"
	}
	switch loop := cmd.Loop.(type) {
	case *syntax.WordIter:
		w.loopWords(cmd, loop, s)
	case *syntax.CStyleLoop:
		w.arithmetic(loop.Init, s)
		w.arithmetic(loop.Cond, s)
		w.arithmetic(loop.Post, s)
	default:
		w.unknown(unknownDialect, w.span(cmd, s))
	}
	if cmd.Braces {
		w.unknown(unknownDialect, w.span(cmd, s))
	}
	w.stmts(cmd.Do, s.in(name))
}

// loopWords records what a loop's variable may hold.
func (w *walker) loopWords(cmd *syntax.ForClause, loop *syntax.WordIter, s scope) {
	span := w.span(loop, s)
	value := proposal.Word{}
	origin := w.origin(loop.Name.Value)
	if !loop.InPos.IsValid() {
		origin.addWord(w, &syntax.Word{Parts: []syntax.WordPart{&syntax.ParamExp{Short: true, Param: &syntax.Lit{Value: "@"}}}})
	}
	var items []arg
	for _, item := range loop.Items {
		items = append(items, w.argsOf(item, s)...)
	}
	for _, item := range items {
		origin.addItem(w, item)
	}
	if len(items) == 1 {
		value = items[0].Word
	}
	w.assigned(loop.Name.Value, span)
	if allLocales(items) {
		put(&w.plainLocales, loop.Name.Value, true)
	}
	assign := proposal.Assign{Name: loop.Name.Value, Value: value}
	w.emit(proposal.Command{Assigns: []proposal.Assign{assign}, Via: s.via, Inside: s.inside, Span: span})
	for _, item := range loop.Items {
		w.word(item, s)
	}
	if cmd.Select {
		w.origin("REPLY").anything()
	}
}

func allLocales(items []arg) bool {
	for _, item := range items {
		if !item.Static || !plainLocale(item.Value) {
			return false
		}
	}
	return len(items) > 0
}

// timeClause refuses options of the time keyword: bash skips "--", the parser does
// not.
func (w *walker) timeClause(cmd *syntax.TimeClause, s scope) {
	if cmd.Stmt == nil {
		return
	}
	if call, ok := cmd.Stmt.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 {
		if first, _ := literal(call.Args[0], readWord); strings.HasPrefix(first.Value, "-") {
			w.unknown(unknownOption, w.span(cmd, s))
		}
	}
	w.stmt(cmd.Stmt, s.in("time"))
}

func (w *walker) caseClause(cmd *syntax.CaseClause, s scope) {
	w.notMksh(cmd, cmd.Braces, s)
	w.word(cmd.Word, s)
	for _, item := range cmd.Items {
		for _, pattern := range item.Patterns {
			w.word(pattern, s)
		}
		w.stmts(item.Stmts, s)
	}
}

func (w *walker) coproc(cmd *syntax.CoprocClause, s scope) {
	if cmd.Name != nil {
		if !compound(cmd.Stmt.Cmd) {
			w.unknown(unknownCoproc, w.span(cmd.Name, s))
		}
		name, _ := literal(cmd.Name, readWord)
		if w.variableName(arg{Word: name, span: w.span(cmd.Name, s)}) {
			w.assignedOddly(name.Value, w.span(cmd.Name, s))
			put(&w.arrays, name.Value, true)
		}
		w.word(cmd.Name, s)
	}
	s = s.in("coproc")
	s.stdin = "pipe"
	w.stmt(cmd.Stmt, s)
}

// compound reports whether bash reads a word before cmd as the name of a coprocess.
// Before any other command the word is the program, as in coproc id time.
func compound(cmd syntax.Command) bool {
	switch cmd.(type) {
	case *syntax.Block, *syntax.Subshell, *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause, *syntax.ArithmCmd, *syntax.TestClause:
		return true
	}
	return false
}
