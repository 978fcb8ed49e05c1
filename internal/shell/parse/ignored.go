// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"path"
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// A Use is what a shell text does with the exit code of a program.
type Use int

// The uses, in order of how much the code counts.
const (
	Ignored   Use = iota // others follow, or || true
	Piped                // a pipe has the exit code of its last program only
	Mentioned            // || echo failed, or an error that goes to /dev/null
	Tested               // if, while, !, &&, || with another program, PIPESTATUS
)

// maxUses is the maximum number of programs that ExitUses returns; maxFollowed is how deep it follows
// functions and inner texts.
const (
	maxUses     = 200
	maxFollowed = 4
)

// ExitUses returns the names of the programs that a shell text starts, by their first words, and what
// it does with the exit code of each. Of several uses of a name, the one counts in which the code
// counts most. The text's own exit code is that of its last command: Ignored says nothing about it. A
// text that cannot be parsed has no uses.
func ExitUses(text string) map[string]Use {
	u := &exitUses{found: map[string]Use{}, functions: map[string]*syntax.Stmt{}}
	u.walkText(text, Ignored, 0)
	return u.found
}

type exitUses struct {
	found     map[string]Use
	functions map[string]*syntax.Stmt
	pipefail  bool // a pipe fails if one of its programs does
	status    bool // the text reads the exit codes of a pipe
}

func (u *exitUses) walkText(text string, use Use, depth int) {
	file, err := parseText(text)
	if err != nil || depth > maxFollowed {
		return
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.FuncDecl:
			u.functions[n.Name.Value] = n.Body
		case *syntax.ParamExp:
			if n.Param != nil && n.Param.Value == "PIPESTATUS" {
				u.status = true
			}
		case *syntax.CallExpr:
			if words := literalWords(n); len(words) > 1 && words[0] == "set" && slices.Contains(words, "pipefail") &&
				!slices.Contains(words, "+o") {
				u.pipefail = true
			}
		}
		return true
	})
	u.walkStatements(file.Stmts, use, depth)
}

func (u *exitUses) walkStatements(list []*syntax.Stmt, use Use, depth int) {
	for _, s := range list {
		u.walkStatement(s, use, depth)
	}
}

func (u *exitUses) walkStatement(s *syntax.Stmt, use Use, depth int) {
	if s == nil {
		return
	}
	if s.Negated {
		use = max(use, Tested)
	}
	for _, r := range s.Redirs {
		if r.Word != nil && r.Word.Lit() == "/dev/null" &&
			(r.N != nil && r.N.Value == "2" || r.Op == syntax.RdrAll || r.Op == syntax.AppAll) {
			use = max(use, Mentioned)
		}
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		u.walkCall(c, use, depth)
	case *syntax.BinaryCmd:
		u.walkBinary(c, use, depth)
	case *syntax.Subshell:
		u.walkStatements(c.Stmts, use, depth)
	case *syntax.Block:
		u.walkStatements(c.Stmts, use, depth)
	case *syntax.IfClause:
		for clause := c; clause != nil; clause = clause.Else {
			u.walkStatements(clause.Cond, Tested, depth)
			u.walkStatements(clause.Then, use, depth)
		}
	case *syntax.WhileClause:
		u.walkStatements(c.Cond, Tested, depth)
		u.walkStatements(c.Do, use, depth)
	case *syntax.ForClause:
		u.walkStatements(c.Do, use, depth)
	case *syntax.CaseClause:
		for _, item := range c.Items {
			u.walkStatements(item.Stmts, use, depth)
		}
	case *syntax.TimeClause:
		u.walkStatement(c.Stmt, use, depth)
	}
	u.walkSubstitutions(s, use, depth)
}

// walkSubstitutions follows $(…) and <(…) in the words of s itself.
func (u *exitUses) walkSubstitutions(s *syntax.Stmt, use Use, depth int) {
	syntax.Walk(s, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			return n == s
		case *syntax.CmdSubst:
			u.walkStatements(n.Stmts, use, depth)
			return false
		case *syntax.ProcSubst:
			u.walkStatements(n.Stmts, use, depth)
			return false
		}
		return true
	})
}

func (u *exitUses) walkBinary(c *syntax.BinaryCmd, use Use, depth int) {
	switch c.Op {
	case syntax.Pipe, syntax.PipeAll:
		writer := use
		switch {
		case u.status:
			writer = Tested
		case use == Ignored && !u.pipefail:
			writer = Piped
		}
		u.walkStatement(c.X, writer, depth)
	case syntax.OrStmt:
		u.walkStatement(c.X, max(use, orUse(c.Y)), depth)
	default:
		u.walkStatement(c.X, max(use, Tested), depth)
	}
	u.walkStatement(c.Y, use, depth)
}

// orUse is the use of what is before || and s.
func orUse(s *syntax.Stmt) Use {
	if call, ok := s.Cmd.(*syntax.CallExpr); ok {
		switch name := firstWord(literalWords(call)); name {
		case "true", ":":
			return Ignored
		case "echo", "printf":
			return Mentioned
		}
	}
	return Tested
}

// prefixes run the program that their next word names, in the same process.
var prefixes = []string{"exec", "command", "builtin"}

func (u *exitUses) walkCall(c *syntax.CallExpr, use Use, depth int) {
	words := literalWords(c)
	for len(words) > 1 && slices.Contains(prefixes, words[0]) {
		words = words[1:]
	}
	name := firstWord(words)
	if body := u.functions[name]; body != nil && depth < maxFollowed {
		u.walkStatement(body, use, depth+1)
		return
	}
	if slices.Contains([]string{"bash", "sh", "dash"}, path.Base(name)) {
		if i := slices.Index(words, "-c"); i > 0 && i+1 < len(words) {
			u.walkText(words[i+1], use, depth+1)
		}
	}
	if name = path.Base(name); name == "." || len(u.found) >= maxUses {
		return
	}
	u.found[name] = max(u.found[name], use)
}

func firstWord(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

// literalWords returns the words of c without quotes, "" for one that is not literal.
func literalWords(c *syntax.CallExpr) []string {
	words := make([]string, len(c.Args))
	for i, w := range c.Args {
		if word, _ := literalWord(w, readWord); word.Static {
			words[i] = word.Value
		}
	}
	return words
}
