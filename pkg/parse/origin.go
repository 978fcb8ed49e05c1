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

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
