// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Programs that read shell text. Text for sh, dash and ash is read twice, as bash and
// as POSIX shell; the other dialects are not supported.
var shells = map[string]bool{
	"bash": true, "sh": true, "dash": true, "ash": true, "rbash": true, "ksh": true, "mksh": true, "ksh93": true, "zsh": true, "hush": true,
	"fish": true, "csh": true, "tcsh": true, "yash": true, "posh": true, "rc": true, "elvish": true, "nu": true, "pwsh": true,
}

// followShell follows bash -c 'text' and the few other plain forms.
func (w *walker) followShell(args []arg, s scope, c call) {
	name := path.Base(args[0].Value)
	if asksAbout(args[1:]) {
		return
	}
	rest, command, ok := w.shellOptions(args[1:], s)
	switch {
	case !ok:
	case command:
		w.shellCommand(name, rest, s)
	case len(rest) > 0:
		w.shellFile(rest[0])
		if len(rest) == 1 {
			w.readWritten(name, rest[0], s, c)
		}
	default:
		w.shellStdin(name, args[0].span, s, c)
	}
}

// shellOptions skips a shell's options. It reports whether -c was among them.
func (w *walker) shellOptions(args []arg, s scope) (rest []arg, command, ok bool) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		if !command {
			if a = w.knownFile(a, unknownScriptFile, s); !args[i].Static && a.Static {
				return append([]arg{a}, args[i+1:]...), false, true
			}
		}
		switch {
		case !a.Static:
			if command && !a.split && a.Value != "" && a.Value[0] != '-' && a.Value[0] != '+' {
				return args[i:], command, true
			}
			if i == 1 && args[0].Value == "-n" && !a.split {
				return nil, true, true // only checks the syntax of a file
			}
			if command {
				w.addUnknown(unknownScript, a.span)
			} else {
				w.addUnknown(unknownScriptFile, a.span)
			}
			return nil, false, false
		case a.Value == "--" || a.Value == "-":
			return args[i+1:], command, true
		case a.Value == "--norc" || a.Value == "--noprofile" || a.Value == "--verbose":
		case a.Value == "-o" || a.Value == "+o":
			i++
			if i == len(args) || !args[i].Static || !setOptions[args[i].Value] {
				w.addUnknown(unknownShellFile, a.span)
				return nil, false, false
			}
		case len(a.Value) > 1 && a.Value[0] == '-':
			if strings.Trim(strings.TrimSuffix(a.Value[1:], "o"), "lceuxvnf") != "" {
				w.addUnknown(unknownShellFile, a.span)
				return nil, false, false
			}
			command = command || strings.Contains(a.Value, "c")
			if strings.HasSuffix(a.Value, "o") {
				i++
				if i == len(args) || !args[i].Static || !setOptions[args[i].Value] {
					w.addUnknown(unknownShellFile, a.span)
					return nil, false, false
				}
			}
		case a.Value != "" && a.Value[0] == '+': // a lone plus, too: sh -c + ls runs ls
			w.addUnknown(unknownShellFile, a.span)
			return nil, false, false
		default:
			return args[i:], command, true
		}
	}
	return nil, command, true
}

// shellCommand reads the text after -c; the words after it are its parameters.
func (w *walker) shellCommand(name string, rest []arg, s scope) {
	if len(rest) == 0 {
		return // bash: option requires an argument
	}
	if !rest[0].Static {
		w.addUnknown(unknownScript, rest[0].span)
		return
	}
	if !bashLike(name) || slices.Contains(s.via, "busybox") {
		w.addUnknown(unknownDialect, rest[0].span)
	}
	w.recordPositional(rest[1:])
	w.readScript(rest[0].Value, rest[0].span, s.inWrapper(name+" -c"))
}

func bashLike(name string) bool { return name == "bash" || name == "rbash" || isPOSIX(name) }

// shellFile records a script file. Its text comes from the workspace, unless this
// text wrote it.
func (w *walker) shellFile(file arg) {
	if !file.Static {
		w.addUnknown(unknownScriptFile, file.span)
		return
	}
	name := path.Clean(file.Value)
	if strings.HasPrefix(name, "/dev/") || strings.HasPrefix(name, "/proc/") {
		w.addUnknown(unknownShellStdin, file.span)
	}
	putInMap(&w.scripts, name, append(w.scripts[name], file.span))
	putInMap(&w.shellFiles, name, true)
}

// shellStdin reads a static here-document or here-string that is fed to a shell.
func (w *walker) shellStdin(name string, span proposal.Span, s scope, c call) {
	for i := len(c.redirects) - 1; i >= 0; i-- {
		r := c.redirects[i]
		if r.FD != 0 {
			continue
		}
		if (r.Kind == "heredoc" || r.Kind == "herestring") && r.Target.Static && bashLike(name) {
			w.readScript(r.Target.Value, span, s.inWrapper(name+" <<"))
			return
		}
		break
	}
	w.addUnknown(unknownShellStdin, span)
}

// recordPositional records what $1, $2 … may hold.
func (w *walker) recordPositional(args []arg) {
	origin := w.originOf("@")
	for _, a := range args {
		origin.addItem(w, a)
	}
}
