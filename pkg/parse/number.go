// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// printsNumbers reports whether the last program of a substitution prints only
// numbers, whatever its input is.
func printsNumbers(stmts []*syntax.Stmt) bool {
	if len(stmts) != 1 {
		return false
	}
	stmt := stmts[0]
	if binary, ok := stmt.Cmd.(*syntax.BinaryCmd); ok {
		if binary.Op == syntax.OrStmt {
			return fallsBack(binary.Y) && printsNumbers([]*syntax.Stmt{binary.X})
		}
		if binary.Op != syntax.Pipe {
			return false
		}
		if trims(binary.Y) {
			return printsNumbers([]*syntax.Stmt{binary.X})
		}
		return printsNumbers([]*syntax.Stmt{binary.Y})
	}
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	var argv []string
	static := true
	for _, word := range call.Args {
		value, _ := literal(word, readWord)
		argv = append(argv, value.Value)
		static = static && value.Static
	}
	return numeric(argv, static, redirectsOutput(stmt.Redirs))
}

// fallsBack reports whether stmt is true, or echo 0.
func fallsBack(stmt *syntax.Stmt) bool {
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(stmt.Redirs) > 0 {
		return false
	}
	var words []string
	for _, word := range call.Args {
		words = append(words, word.Lit())
	}
	text := strings.Join(words, " ")
	return text == "true" || text == ":" || text == "echo 0"
}

// trims reports whether stmt is tr -d of blanks, or head or tail of whole lines.
func trims(stmt *syntax.Stmt) bool {
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(stmt.Redirs) > 0 || len(call.Args) < 2 {
		return false
	}
	name, _ := literal(call.Args[0], readWord)
	option, _ := literal(call.Args[1], readWord)
	switch name.Value {
	case "tr":
		return option.Static && option.Value == "-d" && len(call.Args) == 3
	case "head", "tail":
		return option.Static && len(call.Args) == 2
	}
	return false
}

func redirectsOutput(redirs []*syntax.Redirect) bool {
	for _, redir := range redirs {
		if redir.Op == syntax.DplOut && redir.N == nil {
			return true
		}
	}
	return false
}

// numeric knows the few programs that reviewers count with.
func numeric(argv []string, static, redirected bool) bool {
	if redirected {
		return false
	}
	has := func(option string) bool {
		for _, word := range argv[1:] {
			if word == option {
				return true
			}
		}
		return false
	}
	switch argv[0] {
	case "wc":
		return len(argv) == 2 && static && strings.HasPrefix(argv[1], "-")
	case "nproc":
		return true
	case "id":
		return len(argv) == 2 && (argv[1] == "-u" || argv[1] == "-g")
	case "grep", "rg":
		return static && countsOneFile(argv[1:])
	case "jq":
		return static && len(argv) > 1 && strings.HasSuffix(argv[1], "length")
	case "date":
		return len(argv) == 2 && (argv[1] == "+%s" || argv[1] == "+%s%N" || argv[1] == "+%s%3N")
	case "seq":
		return static && strings.Trim(strings.Join(argv[1:], ""), "0123456789-") == ""
	case "git":
		return static && len(argv) > 2 && argv[1] == "rev-list" && has("--count")
	}
	return false
}

// countsOneFile reports whether grep prints one number: -c and at most one file.
func countsOneFile(words []string) bool {
	counts, operands := false, 0
	for _, word := range words {
		letters, option := strings.CutPrefix(word, "-")
		switch {
		case !option:
			operands++
		case strings.Trim(letters, "ciEFvwxPs") != "":
			return false
		}
		counts = counts || option && strings.Contains(letters, "c")
	}
	return counts && operands <= 2
}
