// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/pkg/proposal"
)

type follower func(w *walker, index int, args []arg, s scope, c call)

// wrapperOf returns the follower for a program name; nil if it runs no other program.
func wrapperOf(name string) follower {
	switch name {
	case "find":
		return followFind
	case "git":
		return followGit
	case "go":
		return followGo
	case "su", "script", "watch", "runuser":
		return followCommandString
	case "parallel", "expect", "tmux", "screen", "at", "batch", "systemd-run", "start-stop-daemon", "run-parts",
		"setarch", "fakeroot", "proot", "capsh":
		return followNothing
	case "xargs":
		return followXargs
	case "perf":
		return followPerf
	case "hyperfine":
		return followHyperfine
	}
	if strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl") || name == "ld.so" {
		return followLoader
	}
	if _, ok := wrappers[name]; ok {
		return followWrapper
	}
	return nil
}

func followNothing(w *walker, _ int, args []arg, _ scope, _ call) {
	w.addUnknown(unknownWrapped, args[0].span)
}

func followWrapper(w *walker, index int, args []arg, s scope, c call) {
	name := baseName(args[0].Value)
	if asksAbout(args[1:]) && name != "time" { // bash would run --version
		return
	}
	wrap := wrappers[name]
	rest, options, ok := w.skipWrapper(wrap, args[1:])
	if !ok {
		kind := unknownOption
		if name == "env" && slices.ContainsFunc(args[1:], splitsString) {
			kind = unknownFileDriven
		} else if name == "env" && slices.ContainsFunc(args[1:], func(a arg) bool { return a.split && a.Value == "" }) {
			kind = unknownEnv
		}
		w.addUnknown(kind, args[0].span)
		return
	}
	for _, option := range []string{"o", "output"} { // with | or ! it names a program
		if output, has := options[option]; (name == "strace" || name == "ltrace") && has &&
			strings.ContainsAny(output.Value[:min(1, len(output.Value))], "|!") {
			w.addUnknown(unknownWrapped, output.span)
			return
		}
	}
	if variable, has := options["E"]; name == "strace" && has {
		w.wrapperAssign(index, variable)
	}
	if wrap.operands > 0 {
		rest, ok = w.skipOperands(name, wrap, rest)
		if !ok {
			return
		}
	}
	if wrap.assigns {
		if name == "env" && len(rest) > 0 && rest[0].Static && rest[0].Value == "-" {
			rest = rest[1:]
		}
		rest = w.envAssigns(index, rest)
	}
	if len(rest) == 0 {
		w.runsNothing(name, args[0])
		return
	}
	if name == "flock" && rest[0].Static && (rest[0].Value == "-c" || rest[0].Value == "--command") {
		w.commandString(rest[1:], args[0], s.inWrapper("flock"))
		return
	}
	c.assigns, c.redirects = nil, stdinOnly(c.redirects)
	w.recordCommand(rest, s.inWrapper(name), c)
}

// asksAbout reports whether args make a wrapper or a shell print only its version or its help.
func asksAbout(args []arg) bool {
	return len(args) == 1 && args[0].Static && (args[0].Value == "--version" || args[0].Value == "--help")
}

// runsNothing refuses wrappers that start a shell if no command is given.
func (w *walker) runsNothing(name string, program arg) {
	switch name {
	case "chroot", "unshare", "sudo", "doas":
		w.addUnknown(unknownShellStdin, program.span)
	}
}

// stdinOnly keeps the redirections that determine what a wrapped shell would read.
func stdinOnly(redirects []proposal.Redirect) []proposal.Redirect {
	var out []proposal.Redirect
	for _, r := range redirects {
		if r.FD == 0 {
			out = append(out, r)
		}
	}
	return out
}

func splitsString(a arg) bool {
	return strings.HasPrefix(a.Value, "-") && (strings.Contains(a.Value, "S") || strings.HasPrefix(a.Value, "--split"))
}

func (w *walker) skipOperands(name string, wrap wrapper, rest []arg) ([]arg, bool) {
	if len(rest) < wrap.operands {
		return nil, true
	}
	for _, a := range rest[:wrap.operands] {
		if a.split || a.Glob || (!a.Static && a.Value == "" && name != "timeout") ||
			(name == "chrt" && strings.Trim(a.Value, "0123456789") != "") {
			w.addUnknown(unknownOption, a.span)
			return nil, false
		}
	}
	return rest[wrap.operands:], true
}

// envAssigns records NAME=value words as exported assignments of the wrapper.
func (w *walker) envAssigns(index int, rest []arg) []arg {
	for len(rest) > 0 {
		name, _, ok := strings.Cut(rest[0].Value, "=")
		if !ok {
			break
		}
		if name == "" {
			w.addUnknown(unknownOption, rest[0].span)
		}
		w.wrapperAssign(index, rest[0])
		rest = rest[1:]
	}
	return rest
}

func (w *walker) wrapperAssign(index int, a arg) {
	name, value, _ := strings.Cut(a.Value, "=")
	word := proposal.Word{Value: value, Static: a.Static, Glob: a.Glob, Split: a.Split}
	given := word // to the program: the shell's own variable is another
	if !a.Static && value == "" && a.src != nil && len(a.src.Parts) > 1 {
		// In "HOME=$x""$HOME" the first part has some of the value.
		if first, ok := a.src.Parts[0].(*syntax.Lit); ok && first.Value == name+"=" {
			given.Head, given.Tail = headOf(&syntax.Word{Parts: a.src.Parts[1:]})
		}
	}
	w.commands[index].Assigns = append(w.commands[index].Assigns,
		proposal.Assign{Name: name, Value: given, Exported: true})
	w.assignedValue(name, word, a.span)
	w.localeValue(name, word, a.span)
	w.originOf(name).addArg(a, value)
	if a.split {
		w.addUnknown(unknownOption, a.span)
	}
}

func baseName(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }
