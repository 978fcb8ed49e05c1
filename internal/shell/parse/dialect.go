// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// sh is dash on Debian, another shell elsewhere, and never reads text as bash does:
// in dash, echo &>f x is echo in the background, and then x. So text for sh is read
// twice, as bash and as POSIX shell, and accepted only if both readings find the same
// commands, word by word.

// isPOSIX reports whether a shell of this name reads POSIX shell.
func isPOSIX(name string) bool { return name == "sh" || name == "dash" || name == "ash" }

// shellName returns the shell that reads a command below the wrappers via; "" for the
// shell that runs the whole text.
func shellName(via []string) string {
	for _, wrapper := range slices.Backward(via) {
		if shell, _, ok := strings.Cut(wrapper, " "); ok && shells[shell] {
			return shell
		}
	}
	return ""
}

// readAgain reads text as POSIX shell and compares the result with the commands found
// in it as bash. It follows no wrappers: equal words lead to equal commands.
func (w *walker) readAgain(text string, s scope, commands []proposal.Command, unknowns []proposal.Unknown) {
	file, err := parseWith(posixParsers, text)
	if err != nil || strings.Contains(text, "`") && strings.Contains(text, `\`) {
		w.addUnknown(unknownPOSIX, *s.span)
		return
	}
	r := &walker{text: w.text, posix: true, depth: w.depth, shells: w.shells, assoc: w.assoc}
	r.walkStmts(file.Stmts, s)
	outermost := slices.DeleteFunc(slices.Clone(commands),
		func(c proposal.Command) bool { return len(c.Via) != len(s.via) })
	if !slices.EqualFunc(r.commands, outermost, sameReading) {
		w.addUnknown(unknownPOSIX, *s.span)
	}
	for _, unknown := range r.unknowns {
		if !slices.ContainsFunc(unknowns, func(u proposal.Unknown) bool { return u.Code == unknown.Code }) {
			w.unknowns = append(w.unknowns, unknown)
		}
	}
}

// sameReading compares a command of the second reading with one of the first. In the
// first, the words of builtins and wrappers may have added assignments.
func sameReading(x, y proposal.Command) bool {
	y.Assigns = y.Assigns[:min(len(x.Assigns), len(y.Assigns))]
	y.Launches = false
	return sameCommand(x, y)
}

// declares are the builtins for which sh reads NAME=value as an assignment.
var declares = map[string]bool{"export": true, "readonly": true, "local": true}

func isAssignment(word *syntax.Word) bool {
	lit, ok := word.Parts[0].(*syntax.Lit)
	if !ok {
		return false
	}
	name, _, ok := strings.Cut(lit.Value, "=")
	return ok && syntax.ValidName(name)
}

// posixAssignment reads NAME=value without splitting it, as the first reading does.
func (w *walker) posixAssignment(word *syntax.Word, s scope) arg {
	value, _ := literalWord(word, readAssign)
	return arg{Word: proposal.Word{Value: value.Value, Static: value.Static}, src: word, span: w.spanOf(word, s)}
}
