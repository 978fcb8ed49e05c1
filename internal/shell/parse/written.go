// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A writtenScript is a file that the statement before wrote whole, from a here-document: what it has is known.
// It is read like the text of bash -c if a shell runs it next, and the text does nothing else: see wasRead. What other
// processes of the sandbox may do to a file between the two, or while it runs, is what they may do to every script
// that a text runs and does not write.
type writtenScript struct{ name, text string }

// maxUnlinked is the size of a script whose writing and run are not joined by &&: a page, which a limit of disk
// does not cut.
const maxUnlinked = 4096

// recordScript notes what cat > FILE <<'E' writes, for the next statement. chmod between them changes nothing.
func (w *walker) recordScript(expr *syntax.CallExpr, args []arg, s scope, c call) {
	w.script = nil
	if len(args) == 0 || !args[0].Static || len(s.via) > 0 || slices.ContainsFunc(s.inside, isNotList) {
		return
	}
	if args[0].Value == "chmod" && !slices.ContainsFunc(args, func(a arg) bool { return !a.Static }) {
		w.script = c.before
	}
	if args[0].Value != "cat" || len(args) > 1 || len(expr.Assigns) > 0 || len(c.redirects) != 2 || w.posix {
		return
	}
	target, text := c.redirects[0], c.redirects[1]
	if target.Kind == "heredoc" {
		target, text = text, target
	}
	if file, _, ok := w.madePath(target.Target, s); ok {
		target.Target = proposal.Word{Value: file, Static: true}
	}
	name := path.Clean(target.Target.Value)
	if target.Op == ">" && target.FD == 1 && target.Target.Static && !strings.HasPrefix(name, "/dev/") &&
		!strings.HasPrefix(name, "/proc/") && !strings.HasPrefix(name, "..") && text.Kind == "heredoc" &&
		text.FD == 0 && text.Target.Static &&
		(len(text.Target.Value) <= maxUnlinked || slices.Contains(s.inside, "list")) {
		w.script = &writtenScript{name, text.Target.Value}
	}
}

func isDynamicRedirect(r proposal.Redirect) bool { return !r.Target.Static }

func isNotList(construct string) bool { return construct != "list" }

func isNotPlain(construct string) bool { return construct != "list" && construct != "pipeline" }

func isProcess(r proposal.Redirect) bool { return r.Kind == "process" }

// isOfWritten reports whether what runs is in a script that readWritten reads.
func (s scope) isOfWritten() bool { return isViaWritten(s.via) }

func isViaWritten(via []string) bool {
	return slices.ContainsFunc(via, func(name string) bool { return strings.HasSuffix(name, writtenSuffix) })
}

// writtenSuffix follows the shell's name where it runs a script that the text wrote.
const writtenSuffix = " <<"

// readWritten reads file, which a shell runs without parameters, if the statement before wrote it.
func (w *walker) readWritten(shell string, file arg, s scope, c call) {
	if c.before == nil || !file.Static || path.Clean(file.Value) != c.before.name || !bashLike(shell) ||
		slices.ContainsFunc(s.via, func(via string) bool { return via != "timeout" && via != "time" }) ||
		slices.ContainsFunc(s.inside, isNotPlain) || slices.ContainsFunc(c.redirects, isProcess) {
		return
	}
	putInMap(&w.read, c.before.name, append(w.read[c.before.name], file.span))
	w.readScript(c.before.text, file.span, s.inWrapper(shell+writtenSuffix))
}

// scriptShell returns the shell that the first line of text names, of those whose scripts are read; "" for others.
func scriptShell(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	switch strings.TrimRight(line, " \t") {
	case "#!/bin/bash", "#!/usr/bin/bash", "#!/usr/bin/env bash":
		return "bash"
	case "#!/bin/sh", "#!/usr/bin/sh", "#!/usr/bin/env sh":
		return "sh"
	}
	return ""
}

// wasRead reports whether what runs at span is the file name as readWritten has read it: the text writes it once, makes
// it executable and runs it, and the script itself neither names its file nor may change it, which its shell
// reads while it runs.
func (w *walker) wasRead(name string, span proposal.Span) bool {
	if len(w.read[name]) != 1 || w.read[name][0] != span || w.writes[path.Base(name)] != 1 || w.writesUnknown ||
		w.alternates {
		return false
	}
	for variable := range w.writesMade {
		if !w.isMade(variable) {
			return false
		}
	}
	return !slices.ContainsFunc(w.commands, func(c proposal.Command) bool {
		if isViaWritten(c.Via) {
			return mayChangeScript(c, path.Base(name))
		}
		return c.Function || c.Program != "mktemp" && slices.ContainsFunc(c.Inside, isNotPlain) ||
			!isOfWriting(c, path.Base(name))
	})
}

// isOfWriting reports whether c writes, permits or starts a script of the text, or reads what that prints.
func isOfWriting(c proposal.Command, script string) bool {
	switch program := path.Base(c.Program); program {
	case ".":
		return len(c.Args) == 0 && len(c.Redirects) == 0 // an assignment
	case "cat", "chmod", "mktemp", "timeout", "time", "head", "tail", "grep", "wc", script:
		return true
	case "echo", "exit":
		return len(c.Redirects) == 0
	default:
		return bashLike(program)
	}
}

// readingVerbs are those of git that change no file of the workspace.
var readingVerbs = []string{"blame", "cat-file", "describe", "diff", "grep", "log", "ls-files", "ls-tree", "merge-base",
	"rev-list", "rev-parse", "shortlog", "show", "status"}

// mayChangeScript reports whether c, a command of a script, may change the script: it names it, or another shell reads
// further text, or it makes links, or git puts files into the workspace.
func mayChangeScript(c proposal.Command, script string) bool {
	program := path.Base(c.Program)
	switch program {
	case "trap", "ln", "link":
		return true
	case "exec":
		if len(c.Redirects) > 0 { // for the shell that reads the script
			return true
		}
	case "cp":
		if slices.ContainsFunc(c.Args, func(a proposal.Word) bool {
			return strings.HasPrefix(a.Value, "-") && strings.Contains(a.Value, "l")
		}) {
			return true
		}
	case "git":
		if len(c.Args) < 2 || !c.Args[1].Static || !slices.Contains(readingVerbs, c.Args[1].Value) {
			return true
		}
	}
	names := func(word proposal.Word) bool { return strings.Contains(word.Value, script) }
	return slices.Contains(c.Inside, "background") || slices.Contains(c.Inside, "coproc") ||
		slices.ContainsFunc(c.Args, names) ||
		slices.ContainsFunc(c.Redirects, func(r proposal.Redirect) bool { return isProcess(r) || names(r.Target) })
}

// countWrite counts how often the text writes a file of this name.
func (w *walker) countWrite(name string) {
	putInMap(&w.written, name, true)
	putInMap(&w.writes, path.Base(name), w.writes[path.Base(name)]+1)
}
