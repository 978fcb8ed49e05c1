// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// An operandUse is a word that a builtin may read as an option or an operator.
type operandUse struct {
	kind unknownKind
	span proposal.Span
}

// An origin is everything that a variable may hold because of the text. Bash
// evaluates variables as expressions in arithmetic, and a[$(id)] in one runs id.
type origin struct {
	unknown bool     // anything: input, output of a program
	text    bool     // literal text that is not a number
	special bool     // literal text that could be an expression or an operator of test
	option  bool     // literal text with an option of find that runs something
	names   []string // other variables
}

func (w *walker) origin(name string) *origin {
	o := w.values[name]
	if o == nil {
		o = &origin{}
		put(&w.values, name, o)
	}
	return o
}

func (o *origin) from(name string) { o.names = append(o.names, name) }

func (o *origin) addText(text string) {
	if strings.Trim(text, "0123456789+-. \t\n") != "" {
		o.text = true
	}
	o.option = o.option || strings.Contains(text, "-exec") || strings.Contains(text, "-ok")
	if strings.ContainsAny(text, "[$`\\") || strings.Contains(text, "-v") || strings.Contains(text, "-R") {
		o.special = true
	}
}

func (o *origin) addWord(w *walker, word *syntax.Word) {
	if word != nil {
		o.addParts(w, word.Parts)
	}
}

func (o *origin) addParts(w *walker, parts []syntax.WordPart) {
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			o.addText(part.Value)
		case *syntax.SglQuoted:
			o.addText(part.Value)
		case *syntax.DblQuoted:
			o.addParts(w, part.Parts)
		case *syntax.ArithmExp:
		case *syntax.ParamExp:
			o.addParam(w, part)
		case *syntax.CmdSubst:
			o.unknown = o.unknown || !printsNumbers(part.Stmts)
		default:
			o.unknown = true
		}
	}
}

func (o *origin) addParam(w *walker, exp *syntax.ParamExp) {
	if exp.Length || exp.Param == nil {
		return
	}
	o.from(paramName(exp.Param.Value))
	if exp.Exp != nil {
		o.addWord(w, exp.Exp.Word)
	}
	if exp.Repl != nil {
		o.addWord(w, exp.Repl.With)
	}
	if exp.Excl {
		o.unknown = true
	}
}

// paramName maps the positional parameters to one name.
func paramName(name string) string {
	if name == "*" || strings.Trim(name, "0123456789") == "" {
		return "@"
	}
	return name
}

// anyText are variables that the shell itself fills with text from elsewhere.
var anyText = map[string]bool{
	"_": true, "REPLY": true, "OPTARG": true, "MAPFILE": true, "PWD": true, "OLDPWD": true, "DIRSTACK": true, "BASH_REMATCH": true,
	"BASH_COMMAND": true, "BASH_ARGV": true, "BASH_ARGV0": true, "BASH_SOURCE": true, "BASH_EXECUTION_STRING": true,
	"FUNCNAME": true, "READLINE_LINE": true, "COMP_LINE": true, "COMP_WORDS": true, "COPROC": true,
	"PS4": true, "IFS": true, "-": true,
}

// may walks name's origins and reports whether one of them has what wanted asks.
func (w *walker) may(name string, wanted func(*origin) bool, seen map[string]bool) bool {
	if anyText[name] {
		return true
	}
	if seen[name] {
		return false
	}
	seen[name] = true
	o := w.values[name]
	if o == nil {
		return false
	}
	if o.unknown || wanted(o) {
		return true
	}
	for _, other := range o.names {
		if w.may(other, wanted, seen) {
			return true
		}
	}
	return false
}

// checkOrigins refuses variables that are evaluated and may hold more than numbers.
func (w *walker) checkOrigins() {
	for _, name := range sorted(w.numbers) {
		if w.may(name, func(o *origin) bool { return o.text }, map[string]bool{}) {
			w.unknown(unknownArithmetic, w.numbers[name])
		}
	}
	for _, name := range sorted(w.operands) {
		if w.may(name, func(o *origin) bool { return o.special }, map[string]bool{}) {
			w.unknown(w.operands[name].kind, w.operands[name].span)
		}
	}
}

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

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

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
