// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// followFind follows find's -exec and its kin.
func followFind(w *walker, _ int, args []arg, s scope, c call) {
	for i := 1; i < len(args); i++ {
		action := args[i].Value
		if !args[i].Static || (action != "-exec" && action != "-execdir" && action != "-ok" && action != "-okdir") {
			w.findWord(args, i)
			continue
		}
		end := i + 1
		for end < len(args) && !endsExec(args, end) {
			end++
		}
		if end == len(args) || end == i+1 {
			w.unknown(unknownWrapped, args[i].span)
			return
		}
		c.assigns, c.redirects, c.stdin = nil, nil, ""
		w.run(replaced(args[i+1:end], "{}"), s.through("find "+action), c)
		i = end
	}
}

// findWord refuses what may belong to an action that is not literal: an end
// without a beginning, or a variable that the text sets to an option.
func (w *walker) findWord(args []arg, i int) {
	a := args[i]
	if a.Static && (a.Value == ";" || a.Value == "+") {
		w.unknown(unknownWrapped, a.span)
	}
	if !a.Static && a.Value == "" && a.src != nil {
		w.actions = append(w.actions, a)
	}
}

// checkActions refuses expansions in find's arguments that the text sets to -exec.
func (w *walker) checkActions() {
	for _, a := range w.actions {
		value := &origin{}
		value.addWord(w, a.src)
		if value.option || slices.ContainsFunc(value.names, w.mayAct) {
			w.unknown(unknownWrapped, a.span)
		}
	}
}

func (w *walker) mayAct(name string) bool {
	o := w.values[name]
	return o != nil && (o.option || slices.ContainsFunc(o.names, func(other string) bool {
		return other != name && w.values[other] != nil && w.values[other].option
	}))
}

// endsExec reports whether args[i] ends an action: a semicolon, or a plus after {}.
func endsExec(args []arg, i int) bool {
	if !args[i].Static {
		return false
	}
	return args[i].Value == ";" || args[i].Value == "+" && args[i-1].Static && args[i-1].Value == "{}"
}

// followLoader follows the dynamic loader called as a program.
func followLoader(w *walker, _ int, args []arg, s scope, c call) {
	loader := wrapper{long: []string{"library-path=", "preload=", "argv0=", "audit=", "inhibit-rpath=", "inhibit-cache", "list", "verify"}}
	rest, _, ok := w.inner(loader, args[1:])
	if !ok {
		w.unknown(unknownOption, args[0].span)
		return
	}
	if len(rest) > 0 {
		c.assigns, c.redirects = nil, stdinOnly(c.redirects)
		w.run(rest, s.through(base(args[0].Value)), c)
	}
}

// followCommandString follows the programs that hand one string to a shell.
func followCommandString(w *walker, _ int, args []arg, s scope, c call) {
	name := base(args[0].Value)
	switch name {
	case "watch":
		w.followWatch(args, s, c)
		return
	case "script":
		rest, options, ok := w.inner(wrapper{flags: "aefqt", values: "c", long: []string{"append", "return", "flush", "quiet", "command="}}, permuted(args[1:]))
		w.optionString(args[0], rest, options, ok, s)
		return
	}
	rest, options, ok := w.inner(wrapper{flags: "lm", values: "c", long: []string{"login", "command="}}, permuted(args[1:]))
	w.optionString(args[0], rest, options, ok, s)
}

// permuted moves the operands behind the options, as GNU getopt does. A lone
// dash and everything after -- stay operands.
func permuted(args []arg) []arg {
	var options, operands []arg
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a.Static && a.Value == "--":
			operands = append(operands, args[i+1:]...)
			i = len(args)
		case len(a.Value) > 1 && a.Value[0] == '-' || !a.Static:
			options = append(options, a)
			if a.Static && strings.HasSuffix(a.Value, "c") && i+1 < len(args) && !strings.HasPrefix(a.Value, "--") || a.Value == "--command" && i+1 < len(args) {
				i++
				options = append(options, args[i])
			}
		default:
			operands = append(operands, a)
		}
	}
	return append(options, operands...)
}

func (w *walker) optionString(program arg, _ []arg, options map[string]arg, ok bool, s scope) {
	if !ok {
		w.unknown(unknownOption, program.span)
		return
	}
	text, has := options["c"]
	if !has {
		text, has = options["command"]
	}
	if !has {
		w.unknown(unknownShellStdin, program.span)
		return
	}
	w.commandString([]arg{text}, program, s.through(base(program.Value)))
}

// commandString reads the words that a program joins and hands to sh -c.
func (w *walker) commandString(args []arg, program arg, s scope) {
	var words []string
	for _, a := range args {
		if !a.Static {
			w.unknown(unknownScript, a.span)
			return
		}
		words = append(words, a.Value)
	}
	if len(words) == 0 {
		w.unknown(unknownShellStdin, program.span)
		return
	}
	w.shellText(strings.Join(words, " "), args[0].span, s)
}

// shellText follows text that a program hands to sh -c.
func (w *walker) shellText(text string, span proposal.Span, s scope) {
	var args []arg
	for _, word := range []string{"sh", "-c", text} {
		args = append(args, arg{Word: proposal.Word{Value: word, Static: true}, span: span})
	}
	w.run(args, s, call{span: span})
}

func (w *walker) followWatch(args []arg, s scope, c call) {
	watch := wrapper{flags: "bcCdegprtwx", values: "nq", long: []string{"beep", "color", "no-color", "differences=?", "errexit", "chgexit", "precise", "no-title", "no-wrap", "exec", "interval=", "equexit="}}
	rest, options, ok := w.inner(watch, args[1:])
	if !ok || len(rest) == 0 {
		w.unknown(unknownOption, args[0].span)
		return
	}
	_, short := options["x"]
	_, long := options["exec"]
	if short || long {
		c.assigns, c.redirects = nil, nil
		w.run(rest, s.through("watch -x"), c)
		return
	}
	w.commandString(rest, args[0], s.through("watch"))
}

// followGit follows the few options and subcommands of git that run a command.
func followGit(w *walker, _ int, args []arg, s scope, c call) {
	i := 1
	for ; i < len(args) && strings.HasPrefix(args[i].Value, "-"); i++ {
		switch option := args[i].Value; {
		case option == "-c" || option == "--config-env":
			i++
			if i < len(args) {
				w.gitConfig(args[i], s)
			}
		case strings.HasPrefix(option, "--config-env="):
			w.gitConfig(valued(args[i], strings.TrimPrefix(option, "--config-env=")), s)
		case option == "-C" || option == "--git-dir" || option == "--work-tree" || option == "--namespace" || option == "--exec-path" || option == "--attr-source" || option == "--super-prefix":
			i++
		}
	}
	if i >= len(args) || !args[i].Static {
		return
	}
	rest := args[i+1:]
	switch args[i].Value {
	case "rebase":
		w.gitRebase(rest, s)
	case "bisect":
		if len(rest) > 1 && rest[0].Value == "run" {
			c.assigns, c.redirects = nil, nil
			w.run(rest[1:], s.through("git bisect run"), c)
		}
	case "submodule":
		w.gitForeach(args[0], rest, s)
	}
}

// gitConfig refuses aliases, except those that are plainly a shell command.
func (w *walker) gitConfig(a arg, s scope) {
	name, value, _ := strings.Cut(a.Value, "=")
	if !a.Static && !strings.Contains(a.Value, "=") {
		w.unknown(unknownGitAlias, a.span)
		return
	}
	if !strings.HasPrefix(strings.ToLower(name), "alias.") {
		return
	}
	body, shell := strings.CutPrefix(value, "!")
	if !a.Static || !shell {
		w.unknown(unknownGitAlias, a.span)
		return
	}
	w.positional([]arg{{span: a.span}})
	w.shellText(body, a.span, s.through("git alias"))
}

func (w *walker) gitRebase(rest []arg, s scope) {
	for i, a := range rest {
		text, found := "", false
		switch {
		case (a.Value == "-x" || a.Value == "--exec") && i+1 < len(rest):
			if !rest[i+1].Static {
				w.unknown(unknownScript, a.span)
				return
			}
			text, found = rest[i+1].Value, true
		case strings.HasPrefix(a.Value, "--exec="):
			text, found = strings.TrimPrefix(a.Value, "--exec="), true
		case strings.HasPrefix(a.Value, "-x"):
			text, found = a.Value[2:], true
		}
		if found && !a.Static {
			w.unknown(unknownScript, a.span)
		} else if found {
			w.shellText(text, a.span, s.through("git rebase -x"))
		}
	}
}

func (w *walker) gitForeach(program arg, rest []arg, s scope) {
	for i, a := range rest {
		if a.Value != "foreach" {
			continue
		}
		rest = rest[i+1:]
		for len(rest) > 0 && strings.HasPrefix(rest[0].Value, "-") {
			rest = rest[1:]
		}
		w.commandString(rest, program, s.through("git submodule foreach"))
		return
	}
}
