// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A builtinCheck looks at one builtin of bash. It reports whether the command was
// judged in full, so that it is not also looked up as a program.
type builtinCheck func(w *walker, index int, args []arg, s scope, c call)

var builtins map[string]builtinCheck

func init() {
	refuse := func(kind unknownKind) builtinCheck {
		return func(w *walker, _ int, args []arg, _ scope, _ call) { w.unknown(kind, args[0].span) }
	}
	builtins = map[string]builtinCheck{
		"eval": refuse(unknownEval), "source": refuse(unknownSource), ".": refuse(unknownSource), "alias": refuse(unknownAlias),
		"unalias": refuse(unknownAlias), "bind": refuse(unknownCallback), "complete": refuse(unknownCallback),
		"compgen": refuse(unknownCallback), "compopt": refuse(unknownCallback), "enable": refuse(unknownSetting), "fc": refuse(unknownEval),
		"trap": checkTrap, "hash": checkHash, "mapfile": checkMapfile, "readarray": checkMapfile, "read": checkRead,
		"printf": checkPrintf, "unset": checkUnset, "test": checkTest, "[": checkTest, "let": checkLet, "set": checkSet,
		"shopt": checkShopt, "getopts": checkGetopts, "wait": checkWait, "export": checkDeclare, "declare": checkDeclare, "typeset": checkDeclare,
		"local": checkDeclare, "readonly": checkDeclare, "command": checkCommand, "builtin": checkBuiltin, "exec": checkExec,
	}
}

// programsToo are builtins that also exist as programs, which evaluate nothing.
var programsToo = map[string]bool{"test": true, "[": true, "printf": true}

// builtin follows args when they call a builtin or perhaps a function.
func (w *walker) builtin(index int, args []arg, s scope, c call) bool {
	if !direct(s) {
		return false
	}
	if len(s.via) == 0 || (s.via[len(s.via)-1] != "command" && s.via[len(s.via)-1] != "builtin") {
		w.called = append(w.called, callSite{index: index, shell: s.shell, fn: s.fn, args: args})
	}
	check := builtins[args[0].Value]
	if check == nil {
		return false
	}
	check(w, index, args, s, c)
	return true
}

// direct reports whether a shell itself reads the command: not a program that
// starts another.
func direct(s scope) bool {
	if len(s.via) == 0 {
		return true
	}
	last := s.via[len(s.via)-1]
	return last == "command" || last == "builtin" || last == "trap" || strings.HasSuffix(last, " -c") || strings.HasSuffix(last, " <<")
}

func checkTrap(w *walker, _ int, args []arg, s scope, _ call) {
	rest := args[1:]
	if len(rest) > 0 && rest[0].Static && rest[0].Value == "--" {
		rest = rest[1:]
	}
	if len(rest) < 2 {
		if len(rest) == 1 && !rest[0].Static {
			w.unknown(unknownTrap, rest[0].span)
		}
		return // prints or resets
	}
	if !rest[0].Static {
		w.unknown(unknownTrap, rest[0].span)
		return
	}
	if body := rest[0].Value; body != "" && body != "-" && body != "-p" && body != "-l" {
		inner := s.through("trap")
		inner.fn = true
		w.script(body, rest[0].span, inner)
	}
}

func checkHash(w *walker, _ int, args []arg, _ scope, _ call) {
	for _, a := range args[1:] {
		if !a.Static || (a.Value != "-r" && strings.HasPrefix(a.Value, "-")) {
			w.unknown(unknownSetting, a.span)
			return
		}
	}
}

// options splits a builtin's options from its operands. Letters in withValue take
// a value. It reports false when an option is not in letters.
func (w *walker) options(args []arg, letters, withValue string) (map[byte]arg, []arg, bool) {
	found := map[byte]arg{}
	for i := 0; i < len(args); i++ {
		a := args[i]
		if !a.Static {
			if a.Value == "" || a.Value[0] == '-' {
				return found, args[i:], false
			}
			return found, args[i:], true
		}
		if a.Value == "--" {
			return found, args[i+1:], true
		}
		if len(a.Value) < 2 || a.Value[0] != '-' {
			return found, args[i:], true
		}
		for j := 1; j < len(a.Value); j++ {
			letter := a.Value[j]
			if strings.IndexByte(withValue, letter) >= 0 {
				value := a
				value.Value = a.Value[j+1:]
				if value.Value == "" {
					i++
					if i == len(args) {
						return found, nil, false
					}
					value = args[i]
				}
				found[letter] = value
				break
			}
			if strings.IndexByte(letters, letter) < 0 {
				return found, args[i:], false
			}
			found[letter] = a
		}
	}
	return found, nil, true
}

func checkMapfile(w *walker, index int, args []arg, s scope, _ call) {
	found, rest, ok := w.options(args[1:], "t", "dnOsuCc")
	if _, callback := found['C']; callback || !ok {
		w.unknown(unknownCallback, args[0].span)
		return
	}
	w.setsUnknown(index, rest, "MAPFILE", s)
}

func checkRead(w *walker, index int, args []arg, s scope, _ call) {
	found, rest, ok := w.options(args[1:], "ers", "adinNptu")
	if !ok {
		w.unknown(unknownName, args[0].span)
		return
	}
	if array, has := found['a']; has {
		put(&w.arrays, array.Value, true)
		put(&w.undone, array.Value, true)
		rest = append(rest[:len(rest):len(rest)], array)
	}
	w.setsUnknown(index, rest, "REPLY", s)
}

// setsUnknown notes that a builtin sets the variables names to anything.
func (w *walker) setsUnknown(index int, names []arg, otherwise string, s scope) {
	if len(names) == 0 {
		w.origin(otherwise).unknown = true
	}
	for _, a := range names {
		if w.variableName(a, s) {
			w.origin(a.Value).unknown = true
			if otherwise == "MAPFILE" {
				put(&w.arrays, a.Value, true)
				put(&w.undone, a.Value, true)
			}
			w.commands[index].Assigns = append(w.commands[index].Assigns, proposal.Assign{Name: a.Value})
		}
	}
}

// variableName checks a word that names a variable: anything but a plain name may
// hold a subscript, which bash evaluates.
func (w *walker) variableName(a arg, s scope) bool {
	if !a.Static || !syntax.ValidName(a.Value) {
		w.unknown(unknownName, a.span)
		return false
	}
	w.assigned(a.Value, a.span, s)
	return true
}

func checkPrintf(w *walker, index int, args []arg, s scope, _ call) {
	if len(args) < 2 {
		return
	}
	first := args[1]
	if !first.Static && first.Value == "" && first.split {
		w.unknown(unknownName, first.span)
		return
	}
	if !strings.HasPrefix(first.Value, "-") || first.Value == "--" {
		if !first.Static && first.Value == "" {
			w.dynamicOption(first, unknownName)
		}
		return
	}
	found, _, ok := w.options(args[1:], "", "v")
	if !ok {
		w.unknown(unknownName, first.span)
		return
	}
	if name, has := found['v']; has {
		w.setsUnknown(index, []arg{name}, "", s)
	}
}

// dynamicOption refuses an expansion where an option would be dangerous, unless
// nothing in the text can make it one.
func (w *walker) dynamicOption(a arg, kind unknownKind) {
	if a.src == nil {
		w.unknown(kind, a.span)
		return
	}
	name := nextName(a.span)
	w.origin(name).addWord(w, a.src)
	put(&w.operands, name, operandUse{kind, a.span})
}

func checkUnset(w *walker, _ int, args []arg, s scope, _ call) {
	found, rest, ok := w.options(args[1:], "vfn", "")
	if !ok {
		w.unknown(unknownName, args[0].span)
		return
	}
	if _, function := found['f']; function {
		w.unknown(unknownExportedFunc, args[0].span)
		return
	}
	for _, a := range rest {
		if a.Static && w.functions[functionName{s.shell, a.Value}] != nil {
			w.unknown(unknownExportedFunc, a.span)
		}
		w.variableName(a, s)
		put(&w.undone, a.Value, true)
	}
}

func checkLet(w *walker, _ int, args []arg, s scope, _ call) {
	for _, a := range args[1:] {
		if !a.Static {
			w.unknown(unknownArithmetic, a.span)
			continue
		}
		w.expression(a.Value, true, a.span)
	}
}

func checkGetopts(w *walker, index int, args []arg, s scope, _ call) {
	if len(args) < 3 {
		return
	}
	w.origin("OPTARG").unknown = true
	w.setsUnknown(index, args[2:3], "", s)
	if !args[1].Static {
		w.unknown(unknownName, args[1].span)
	}
}

func checkWait(w *walker, index int, args []arg, s scope, _ call) {
	for _, a := range args[1:] {
		if strings.HasPrefix(a.Value, "-p") || (!a.Static && a.split && a.Value == "") {
			w.dynamicWait(a)
		}
	}
}

func (w *walker) dynamicWait(a arg) {
	if a.Static {
		w.unknown(unknownName, a.span)
		return
	}
	w.dynamicOption(a, unknownName)
}

var setOptions = map[string]bool{
	"errexit": true, "nounset": true, "xtrace": true, "verbose": true, "pipefail": true, "noglob": true, "noclobber": true, "errtrace": true,
	"functrace": true, "noexec": true, "notify": true, "hashall": true, "monitor": true, "physical": true,
}

func checkSet(w *walker, _ int, args []arg, s scope, _ call) {
	for i := 1; i < len(args); i++ {
		a := args[i]
		if !a.Static && (a.Value == "" || a.Value[0] == '-' || a.Value[0] == '+') {
			w.unknown(unknownSetting, a.span)
			return
		}
		if a.Value == "--" || a.Value == "-" {
			w.positional(args[i+1:])
			return
		}
		if len(a.Value) < 2 || (a.Value[0] != '-' && a.Value[0] != '+') {
			w.positional(args[i:])
			return
		}
		letters := a.Value[1:]
		if strings.Trim(letters, "euxvfCETbhmPo") != "" {
			w.unknown(unknownSetting, a.span)
			return
		}
		if strings.Contains(letters, "o") && i+1 < len(args) {
			i++
			if !args[i].Static || !setOptions[args[i].Value] {
				w.unknown(unknownSetting, args[i].span)
				return
			}
		}
	}
}

var shellOptions = map[string]bool{
	"globstar": true, "nullglob": true, "dotglob": true, "failglob": true, "nocaseglob": true, "nocasematch": true, "inherit_errexit": true,
	"lastpipe": true,
}

func checkShopt(w *walker, _ int, args []arg, _ scope, _ call) {
	for _, a := range args[1:] {
		option := a.Value == "-s" || a.Value == "-u" || a.Value == "-q" || a.Value == "-p"
		if !a.Static || !(option || shellOptions[a.Value]) {
			w.unknown(unknownSetting, a.span)
			return
		}
	}
}
