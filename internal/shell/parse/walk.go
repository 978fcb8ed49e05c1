// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/pkg/proposal"
)

func (w *walker) walkStmts(stmts []*syntax.Stmt, s scope) {
	mark := len(w.learned)
	for _, stmt := range stmts {
		w.walkStmt(stmt, s)
		w.learnAssigns(stmt, s)
	}
	w.forgetSince(mark)
}

func (w *walker) walkStmt(stmt *syntax.Stmt, s scope) {
	if stmt.Coprocess || stmt.Disown {
		w.addUnknown(unknownDialect, w.spanOf(stmt, s))
		return
	}
	if binary, ok := stmt.Cmd.(*syntax.BinaryCmd); ok && len(stmt.Redirs) == 0 {
		w.walkChain(binary, s, stmt.Background)
		return
	}
	if !w.enterNode(stmt, s) {
		return
	}
	defer w.leaveNode()
	if stmt.Background {
		s = s.inConstruct("background")
	}
	redirects, stdin := w.describeRedirects(stmt.Redirs, s)
	if call, ok := stmt.Cmd.(*syntax.CallExpr); ok {
		w.walkSimpleCommand(stmt, call, redirects, stdin, s)
		return
	}
	if decl, ok := stmt.Cmd.(*syntax.DeclClause); ok {
		w.walkDeclaration(stmt, decl, redirects, stdin, s)
		return
	}
	if len(redirects) > 0 || startsNoProgram(stmt.Cmd) {
		w.emitCommand(proposal.Command{Redirects: redirects, Via: s.via, Inside: s.inside, StdinFrom: stdin,
			Span: w.spanOf(stmt, s), AfterSuccess: s.sure})
	}
	w.redirectWords(stmt.Redirs, s)
	s.stdin = stdin
	w.walkCompound(stmt.Cmd, s)
}

// startsNoProgram reports whether cmd is a separate command that starts no program.
func startsNoProgram(cmd syntax.Command) bool {
	switch cmd.(type) {
	case nil, *syntax.TestClause, *syntax.ArithmCmd, *syntax.LetClause:
		return true
	}
	return false
}

// walkChain walks a && b | c …, which nests to the left, without going deeper.
func (w *walker) walkChain(binary *syntax.BinaryCmd, s scope, background bool) {
	if background {
		s = s.inConstruct("background")
	}
	var right []*syntax.BinaryCmd
	var left *syntax.Stmt
	for {
		w.alternates = w.alternates || binary.Op == syntax.OrStmt && !s.isOfWritten()
		right = append(right, binary)
		left = binary.X
		next, ok := left.Cmd.(*syntax.BinaryCmd)
		if !ok || len(left.Redirs) > 0 || left.Background {
			break
		}
		binary = next
	}
	first := right[len(right)-1]
	mark := len(w.learned)
	w.walkStmt(left, sideScope(first, s, false))
	if first.Op == syntax.AndStmt {
		w.learnAssigns(left, s)
	}
	negated := left.Negated
	for i, sure := len(right)-1, true; i >= 0; i-- {
		if sure = sure && right[i].Op == syntax.AndStmt; !sure {
			w.forgetSince(mark)
		}
		beside := sideScope(right[i], s, true)
		beside.sure = sure && !negated
		negated = negated || right[i].Y.Negated
		w.walkStmt(right[i].Y, beside)
		if sure {
			w.learnAssigns(right[i].Y, s)
		}
	}
	w.forgetSince(mark)
}

func sideScope(binary *syntax.BinaryCmd, s scope, right bool) scope {
	if binary.Op != syntax.Pipe && binary.Op != syntax.PipeAll {
		return s.inConstruct("list")
	}
	s = s.inConstruct("pipeline")
	if right {
		s.stdin = "pipe"
	}
	return s
}

func (w *walker) walkCompound(cmd syntax.Command, s scope) {
	switch cmd := cmd.(type) {
	case nil:
	case *syntax.BinaryCmd:
		w.walkChain(cmd, s, false)
	case *syntax.Block:
		w.walkStmts(cmd.Stmts, s.inConstruct("group"))
	case *syntax.Subshell:
		w.walkStmts(cmd.Stmts, s.inConstruct("subshell"))
	case *syntax.IfClause:
		w.ifClause(cmd, s.inConstruct("if"))
	case *syntax.WhileClause:
		name := "while"
		if cmd.Until {
			name = "until"
		}
		w.walkStmts(cmd.Cond, s.inConstruct(name))
		w.walkStmts(cmd.Do, s.inConstruct(name))
	case *syntax.ForClause:
		w.forClause(cmd, s)
	case *syntax.CaseClause:
		w.caseClause(cmd, s.inConstruct("case"))
	case *syntax.FuncDecl:
		w.funcDecl(cmd, s)
	case *syntax.ArithmCmd:
		w.notMksh(cmd, cmd.Unsigned, s)
		w.walkArithmetic(cmd.X, s)
	case *syntax.LetClause:
		for _, expr := range cmd.Exprs {
			if !plainLet(expr) {
				w.addUnknown(unknownArithmetic, w.spanOf(expr, s))
			}
			w.walkArithmetic(expr, s)
		}
	case *syntax.TestClause:
		w.testExpr(cmd.X, s.inConstruct("test"))
	case *syntax.TimeClause:
		w.timeClause(cmd, s)
	case *syntax.CoprocClause:
		w.walkCoproc(cmd, s)
	default:
		w.addUnknown(unknownDialect, w.spanOf(cmd, s))
	}
}

func (w *walker) notMksh(node syntax.Node, mksh bool, s scope) {
	if mksh {
		w.addUnknown(unknownDialect, w.spanOf(node, s))
	}
}

func (w *walker) ifClause(cmd *syntax.IfClause, s scope) {
	for ; cmd != nil; cmd = cmd.Else {
		w.walkStmts(cmd.Cond, s)
		w.walkStmts(cmd.Then, s)
	}
}
