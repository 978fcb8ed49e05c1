// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strings"
)

// A builtinCheck checks one bash builtin. It reports whether the command was fully
// judged, so that it is not also looked up as a program.
type builtinCheck func(w *walker, index int, args []arg, s scope, c call)

var builtins map[string]builtinCheck

func init() {
	refuse := func(kind unknownKind) builtinCheck {
		return func(w *walker, _ int, args []arg, _ scope, _ call) { w.addUnknown(kind, args[0].span) }
	}
	harmless := func(*walker, int, []arg, scope, call) {}
	builtins = map[string]builtinCheck{
		"eval": refuse(unknownEval), "source": refuse(unknownSource), ".": refuse(unknownSource), "alias": refuse(unknownAlias),
		"unalias": refuse(unknownAlias), "bind": refuse(unknownCallback), "complete": refuse(unknownCallback),
		"compgen": refuse(unknownCallback), "compopt": refuse(unknownCallback), "enable": refuse(unknownSetting), "fc": refuse(unknownEval),
		"trap": checkTrap, "hash": checkHash, "mapfile": checkMapfile, "readarray": checkMapfile, "read": checkRead,
		"printf": checkPrintf, "unset": checkUnset, "test": checkTest, "[": checkTest, "let": checkLet, "set": checkSet,
		"shopt": checkShopt, "getopts": checkGetopts, "wait": checkWait, "export": checkDeclare, "declare": checkDeclare, "typeset": checkDeclare,
		"local": checkDeclare, "readonly": checkDeclare, "command": checkCommand, "builtin": checkBuiltin, "exec": checkExec,
		"jobs": checkJobs, "history": refuse(unknownCallback),
	}
	// The remaining builtins evaluate none of their words and start nothing.
	for _, name := range strings.Fields(`: true false echo pwd exit return shift break continue cd pushd popd dirs times kill fg bg disown suspend
		logout umask ulimit help caller type`) {
		builtins[name] = harmless
	}
}

// bashBuiltins is the output of compgen -b in bash 5.2.
var bashBuiltins = nameSet(`
	. : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo enable eval exec exit export
	false fc fg getopts hash help history jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly return set shift shopt
	source suspend test times trap true type typeset ulimit umask unalias unset wait
`)

// dashBuiltins are the builtins of Debian's dash, which is built without line
// editing.
var dashBuiltins = nameSet(`
	. : [ alias bg break cd chdir command continue echo eval exec exit export false fg getopts hash jobs kill local printf pwd read readonly
	return set shift test times trap true type ulimit umask unalias unset wait
`)

// runsItself reports whether the shell that reads a command runs it as a builtin.
func (w *walker) runsItself(name string, s scope) bool {
	if !isReadByShell(s) || w.noShell && len(s.via) == 0 {
		return false
	}
	switch shell := shellName(s.via); shell {
	case "":
		return !w.noShell && bashBuiltins[name]
	case "bash", "rbash":
		return bashBuiltins[name]
	}
	return dashBuiltins[name]
}

// programsToo are builtins that also exist as programs; the programs evaluate
// nothing.
var programsToo = map[string]bool{"test": true, "[": true, "printf": true}

// checkBuiltin checks args if they call a builtin or possibly a function.
func (w *walker) checkBuiltin(index int, args []arg, s scope, c call) bool {
	if !isReadByShell(s) {
		return false
	}
	if len(s.via) == 0 || (s.via[len(s.via)-1] != "command" && s.via[len(s.via)-1] != "builtin") {
		w.called = append(w.called, callSite{index: index, shell: s.shell, fn: s.fn, args: args})
	}
	check := builtins[args[0].Value]
	if check != nil {
		check(w, index, args, s, c)
	}
	return check != nil
}

// isReadByShell reports whether the shell itself reads the command, rather than a program
// that starts another.
func isReadByShell(s scope) bool {
	if len(s.via) == 0 {
		return true
	}
	last := s.via[len(s.via)-1]
	return last == "command" || last == "builtin" || last == "trap" || strings.HasSuffix(last, " -c") ||
		strings.HasSuffix(last, " <<")
}

func checkTrap(w *walker, _ int, args []arg, s scope, _ call) {
	rest := args[1:]
	if len(rest) > 0 && rest[0].Static && rest[0].Value == "--" {
		rest = rest[1:]
	}
	if len(rest) < 2 {
		if len(rest) == 1 && !rest[0].Static {
			w.addUnknown(unknownTrap, rest[0].span)
		}
		return // prints or resets
	}
	if !rest[0].Static {
		w.addUnknown(unknownTrap, rest[0].span)
		return
	}
	if body := rest[0].Value; body != "" && body != "-" && body != "-p" && body != "-l" {
		inner := s.inWrapper("trap")
		inner.fn = true
		w.readScript(body, rest[0].span, inner)
	}
}

// splitOptions splits a builtin's options from its operands. Letters in withValue take
// a value. It reports false when an option is not in letters.
func (w *walker) splitOptions(args []arg, letters, withValue string) (map[byte]arg, []arg, bool) {
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
				if value.split || value.Glob {
					return found, nil, false
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
