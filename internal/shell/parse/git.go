// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strings"
)

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
			w.gitConfig(setArgValue(args[i], strings.TrimPrefix(option, "--config-env=")), s)
		case option == "-C" || option == "--git-dir" || option == "--work-tree" || option == "--namespace" ||
			option == "--exec-path" || option == "--attr-source" || option == "--super-prefix":
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
			w.recordCommand(rest[1:], s.inWrapper("git bisect run"), c)
		}
	case "submodule":
		w.gitForeach(args[0], rest, s)
	}
}

// gitConfig refuses aliases, except for those that are plainly a shell command.
func (w *walker) gitConfig(a arg, s scope) {
	name, value, _ := strings.Cut(a.Value, "=")
	if !a.Static && !strings.Contains(a.Value, "=") {
		w.addUnknown(unknownGitAlias, a.span)
		return
	}
	if !strings.HasPrefix(strings.ToLower(name), "alias.") {
		return
	}
	body, shell := strings.CutPrefix(value, "!")
	if !a.Static || !shell {
		w.addUnknown(unknownGitAlias, a.span)
		return
	}
	w.recordPositional([]arg{{span: a.span}})
	w.shellText(body, a.span, s.inWrapper("git alias"))
}

func (w *walker) gitRebase(rest []arg, s scope) {
	for i, a := range rest {
		text, found := "", false
		switch {
		case (a.Value == "-x" || a.Value == "--exec") && i+1 < len(rest):
			if !rest[i+1].Static {
				w.addUnknown(unknownScript, a.span)
				return
			}
			text, found = rest[i+1].Value, true
		case strings.HasPrefix(a.Value, "--exec="):
			text, found = strings.TrimPrefix(a.Value, "--exec="), true
		case strings.HasPrefix(a.Value, "-x"):
			text, found = a.Value[2:], true
		}
		if found && !a.Static {
			w.addUnknown(unknownScript, a.span)
		} else if found {
			w.shellText(text, a.span, s.inWrapper("git rebase -x"))
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
		w.commandString(rest, program, s.inWrapper("git submodule foreach"))
		return
	}
}
