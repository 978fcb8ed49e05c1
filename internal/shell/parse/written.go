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
// It is read like the text of bash -c if a shell runs it next, the text writes it once only, and nothing of the text
// runs in the background. What other processes of the sandbox may do to a file between the two is what they may
// do to every script that a text runs and does not write.
type writtenScript struct{ name, text string }

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
	name := path.Clean(target.Target.Value)
	if target.Op == ">" && target.FD == 1 && target.Target.Static && !strings.HasPrefix(name, "/dev/") &&
		!strings.HasPrefix(name, "/proc/") && text.Kind == "heredoc" && text.FD == 0 && text.Target.Static {
		w.script = &writtenScript{name, text.Target.Value}
	}
}

func isDynamicRedirect(r proposal.Redirect) bool { return !r.Target.Static }

func isNotList(construct string) bool { return construct != "list" }

// readWritten reads file, which a shell runs without parameters, if the statement before wrote it.
func (w *walker) readWritten(shell string, file arg, s scope, c call) {
	if c.before == nil || !file.Static || path.Clean(file.Value) != c.before.name || !bashLike(shell) ||
		slices.ContainsFunc(s.via, func(via string) bool { return via != "timeout" && via != "time" }) ||
		slices.ContainsFunc(s.inside, func(construct string) bool {
			return construct != "list" && construct != "pipeline"
		}) {
		return
	}
	putInMap(&w.read, c.before.name, append(w.read[c.before.name], file.span))
	w.readScript(c.before.text, file.span, s.inWrapper(shell+" <<"))
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

// wasRead reports whether what runs at span is the file name as readWritten has read it.
func (w *walker) wasRead(name string, span proposal.Span) bool {
	if !slices.Contains(w.read[name], span) || w.writes[path.Base(name)] != 1 || w.writesUnknown {
		return false
	}
	return !slices.ContainsFunc(w.commands, func(c proposal.Command) bool {
		return slices.Contains(c.Inside, "background") || slices.Contains(c.Inside, "coproc") ||
			c.Function && (c.Program == "cat" || c.Program == "chmod")
	})
}

// countWrite counts how often the text writes a file of this name.
func (w *walker) countWrite(name string) {
	putInMap(&w.written, name, true)
	putInMap(&w.writes, path.Base(name), w.writes[path.Base(name)]+1)
}
