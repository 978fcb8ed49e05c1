// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/pkg/proposal"
)

func (w *walker) stmts(stmts []*syntax.Stmt, s scope) {
	mark := len(w.learned)
	for _, stmt := range stmts {
		w.stmt(stmt, s)
		w.learn(stmt, s)
	}
	w.forget(mark)
}

func (w *walker) stmt(stmt *syntax.Stmt, s scope) {
	if stmt.Coprocess || stmt.Disown {
		w.unknown(unknownDialect, w.span(stmt, s))
		return
	}
	if binary, ok := stmt.Cmd.(*syntax.BinaryCmd); ok && len(stmt.Redirs) == 0 {
		w.chain(binary, s, stmt.Background)
		return
	}
	if !w.enter(stmt, s) {
		return
	}
	defer w.leave()
	if stmt.Background {
		s = s.in("background")
	}
	redirects, stdin := w.redirects(stmt.Redirs, s)
	if call, ok := stmt.Cmd.(*syntax.CallExpr); ok {
		w.simple(stmt, call, redirects, stdin, s)
		return
	}
	if decl, ok := stmt.Cmd.(*syntax.DeclClause); ok {
		w.declaration(stmt, decl, redirects, stdin, s)
		return
	}
	if len(redirects) > 0 || evaluates(stmt.Cmd) {
		w.emit(proposal.Command{Redirects: redirects, Via: s.via, Inside: s.inside, StdinFrom: stdin, Span: w.span(stmt, s), AfterSuccess: s.sure})
	}
	w.redirectWords(stmt.Redirs, s)
	s.stdin = stdin
	w.compound(stmt.Cmd, s)
}

// evaluates reports whether cmd is a separate command that starts no program.
func evaluates(cmd syntax.Command) bool {
	switch cmd.(type) {
	case nil, *syntax.TestClause, *syntax.ArithmCmd, *syntax.LetClause:
		return true
	}
	return false
}

// chain walks a && b | c …, which nests to the left, without going deeper.
func (w *walker) chain(binary *syntax.BinaryCmd, s scope, background bool) {
	if background {
		s = s.in("background")
	}
	var right []*syntax.BinaryCmd
	var left *syntax.Stmt
	for {
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
	w.stmt(left, side(first, s, false))
	if first.Op == syntax.AndStmt {
		w.learn(left, s)
	}
	negated := left.Negated
	for i, sure := len(right)-1, true; i >= 0; i-- {
		if sure = sure && right[i].Op == syntax.AndStmt; !sure {
			w.forget(mark)
		}
		beside := side(right[i], s, true)
		beside.sure = sure && !negated
		negated = negated || right[i].Y.Negated
		w.stmt(right[i].Y, beside)
		if sure {
			w.learn(right[i].Y, s)
		}
	}
	w.forget(mark)
}

func side(binary *syntax.BinaryCmd, s scope, right bool) scope {
	if binary.Op != syntax.Pipe && binary.Op != syntax.PipeAll {
		return s.in("list")
	}
	s = s.in("pipeline")
	if right {
		s.stdin = "pipe"
	}
	return s
}

func (w *walker) compound(cmd syntax.Command, s scope) {
	switch cmd := cmd.(type) {
	case nil:
	case *syntax.BinaryCmd:
		w.chain(cmd, s, false)
	case *syntax.Block:
		w.stmts(cmd.Stmts, s.in("group"))
	case *syntax.Subshell:
		w.stmts(cmd.Stmts, s.in("subshell"))
	case *syntax.IfClause:
		w.ifClause(cmd, s.in("if"))
	case *syntax.WhileClause:
		name := "while"
		if cmd.Until {
			name = "until"
		}
		w.stmts(cmd.Cond, s.in(name))
		w.stmts(cmd.Do, s.in(name))
	case *syntax.ForClause:
		w.forClause(cmd, s)
	case *syntax.CaseClause:
		w.caseClause(cmd, s.in("case"))
	case *syntax.FuncDecl:
		w.funcDecl(cmd, s)
	case *syntax.ArithmCmd:
		w.notMksh(cmd, cmd.Unsigned, s)
		w.arithmetic(cmd.X, s)
	case *syntax.LetClause:
		for _, expr := range cmd.Exprs {
			if !plainLet(expr) {
				w.unknown(unknownArithmetic, w.span(expr, s))
			}
			w.arithmetic(expr, s)
		}
	case *syntax.TestClause:
		w.testExpr(cmd.X, s.in("test"))
	case *syntax.TimeClause:
		w.timeClause(cmd, s)
	case *syntax.CoprocClause:
		w.coproc(cmd, s)
	default:
		w.unknown(unknownDialect, w.span(cmd, s))
	}
}

func (w *walker) notMksh(node syntax.Node, mksh bool, s scope) {
	if mksh {
		w.unknown(unknownDialect, w.span(node, s))
	}
}

func (w *walker) ifClause(cmd *syntax.IfClause, s scope) {
	for ; cmd != nil; cmd = cmd.Else {
		w.stmts(cmd.Cond, s)
		w.stmts(cmd.Then, s)
	}
}
