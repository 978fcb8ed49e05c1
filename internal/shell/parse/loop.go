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
		w.walkArithmetic(loop.Init, s)
		w.walkArithmetic(loop.Cond, s)
		w.walkArithmetic(loop.Post, s)
	default:
		w.addUnknown(unknownDialect, w.spanOf(cmd, s))
	}
	if cmd.Braces {
		w.addUnknown(unknownDialect, w.spanOf(cmd, s))
	}
	w.walkStmts(cmd.Do, s.inConstruct(name))
}

// loopWords records what a loop's variable may hold.
func (w *walker) loopWords(cmd *syntax.ForClause, loop *syntax.WordIter, s scope) {
	span := w.spanOf(loop, s)
	value := proposal.Word{}
	origin := w.originOf(loop.Name.Value)
	if !loop.InPos.IsValid() {
		origin.addWord(w, &syntax.Word{Parts: []syntax.WordPart{&syntax.ParamExp{Short: true,
			Param: &syntax.Lit{Value: "@"}}}})
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
	if s.shell == 0 {
		putInMap(&w.loops, loop.Name.Value, scriptsIn(items))
	}
	w.checkAssignedName(loop.Name.Value, span)
	if allLocales(items) {
		putInMap(&w.plainLocales, loop.Name.Value, true)
	}
	assign := proposal.Assign{Name: loop.Name.Value, Value: value}
	w.emitCommand(proposal.Command{Assigns: []proposal.Assign{assign}, Via: s.via, Inside: s.inside, Span: span})
	for _, item := range loop.Items {
		w.walkWord(item, s)
	}
	if cmd.Select {
		w.originOf("REPLY").markOutside()
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
		if first, _ := literalWord(call.Args[0], readWord); strings.HasPrefix(first.Value, "-") {
			w.addUnknown(unknownOption, w.spanOf(cmd, s))
		}
	}
	w.walkStmt(cmd.Stmt, s.inConstruct("time"))
}

func (w *walker) caseClause(cmd *syntax.CaseClause, s scope) {
	w.notMksh(cmd, cmd.Braces, s)
	w.walkWord(cmd.Word, s)
	for _, item := range cmd.Items {
		for _, pattern := range item.Patterns {
			w.walkWord(pattern, s)
		}
		w.walkStmts(item.Stmts, s)
	}
}

func (w *walker) walkCoproc(cmd *syntax.CoprocClause, s scope) {
	if cmd.Name != nil {
		if !isCompound(cmd.Stmt.Cmd) {
			w.addUnknown(unknownCoproc, w.spanOf(cmd.Name, s))
		}
		name, _ := literalWord(cmd.Name, readWord)
		if w.variableName(arg{Word: name, span: w.spanOf(cmd.Name, s)}) {
			w.assignedOddly(name.Value, w.spanOf(cmd.Name, s))
			putInMap(&w.arrays, name.Value, true)
		}
		w.walkWord(cmd.Name, s)
	}
	s = s.inConstruct("coproc")
	s.stdin = "pipe"
	w.walkStmt(cmd.Stmt, s)
}

// isCompound reports whether bash reads a word before cmd as the name of a coprocess.
// Before any other command the word is the program, as in coproc id time.
func isCompound(cmd syntax.Command) bool {
	switch cmd.(type) {
	case *syntax.Block, *syntax.Subshell, *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause,
		*syntax.ArithmCmd, *syntax.TestClause:
		return true
	}
	return false
}
