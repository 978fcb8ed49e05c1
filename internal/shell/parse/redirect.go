// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// describeRedirects describes redirs and returns the source of the command's stdin.
func (w *walker) describeRedirects(redirs []*syntax.Redirect, s scope) ([]proposal.Redirect, string) {
	if len(redirs) == 0 {
		return nil, s.stdin
	}
	stdin := s.stdin
	out := make([]proposal.Redirect, 0, len(redirs))
	for _, redir := range redirs {
		r := w.describeRedirect(redir, s)
		if r.FD == 0 {
			stdin = stdinOf(r)
		}
		if r.Kind == "write" || r.Kind == "readwrite" {
			w.recordWrite(r.Target)
		}
		out = append(out, r)
	}
	return out, stdin
}

func stdinOf(r proposal.Redirect) string {
	switch r.Kind {
	case "heredoc", "herestring":
		return r.Kind
	case "process":
		return "pipe"
	}
	return "file"
}

func (w *walker) describeRedirect(redir *syntax.Redirect, s scope) proposal.Redirect {
	r := proposal.Redirect{Op: redir.Op.String(), Kind: redirectKind(redir.Op)}
	if r.Kind == "" {
		w.addUnknown(unknownDialect, w.spanOf(redir.Word, s))
	}
	r.FD = 1
	if strings.HasPrefix(r.Op, "<") {
		r.FD = 0
	}
	if redir.N != nil {
		r.FD = w.readDescriptor(redir.N, s)
		if w.posix && len(redir.N.Value) > 1 {
			w.addUnknown(unknownPOSIX, w.spanOf(redir.N, s)) // POSIX shells read 10>f and 00<f as words
		}
	}
	switch r.Kind {
	case "heredoc":
		r.Target = w.known.heredocText(redir)
		return r
	case "herestring":
		r.Target, _ = w.known.expandLiteral(redir.Word, readAssign)
		return r
	}
	if redirectKind(redir.Op) == "dup" && closesBeforeWord(redir.Word) {
		w.addUnknown(unknownClosing, w.spanOf(redir.Word, s))
	}
	r.Target, _ = w.known.expandLiteral(redir.Word, readWord)
	if hasBrace(redir.Word) || isTilde(redir.Word) {
		r.Target.Static = false
	}
	if _, ok := onlyPart[*syntax.ProcSubst](redir.Word.Parts); ok {
		r.Kind = "process"
		return r
	}
	if r.Kind == "dup" && !(r.Target.Static && isDescriptor(r.Target.Value)) {
		r.Kind = "write"
		if redir.Op == syntax.DplIn {
			r.Kind = "read"
		}
	}
	if w.posix && r.Kind != "dup" && redirectKind(redir.Op) == "dup" {
		w.addUnknown(unknownPOSIX, w.spanOf(redir.Word, s)) // an error in POSIX shells
	}
	if redir.Op == syntax.DplOut && r.Kind != "dup" && !(r.Target.Static && twiceTheSame.MatchString(r.Target.Value)) {
		w.addDoubt(unknownTwice, w.spanOf(redir.Word, s), func() bool { return w.onlyNumbers(redir.Word) })
	}
	if r.Kind != "dup" {
		w.recordTarget(redir.Word, r.Target, w.spanOf(redir.Word, s))
	}
	return r
}

func redirectKind(op syntax.RedirOperator) string {
	switch op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
		return "write"
	case syntax.RdrIn:
		return "read"
	case syntax.RdrInOut:
		return "readwrite"
	case syntax.DplIn, syntax.DplOut:
		return "dup"
	case syntax.Hdoc, syntax.DashHdoc:
		return "heredoc"
	case syntax.WordHdoc:
		return "herestring"
	}
	return "" // zsh
}

// readDescriptor reads the number before a redirection; -1 for {name}.
func (w *walker) readDescriptor(n *syntax.Lit, s scope) int {
	if fd, err := strconv.Atoi(n.Value); err == nil {
		return fd
	}
	name := strings.Trim(n.Value, "{}")
	if !syntax.ValidName(name) {
		w.addUnknown(unknownName, w.spanOf(n, s))
	}
	w.assignedOddly(name, w.spanOf(n, s))
	return -1
}

// twiceTheSame matches the file names after >& that a second expansion leaves
// unchanged. Bash expands them again once it finds that they are not descriptors:
// >&'$(id)' runs id.
var twiceTheSame = pattern.New(`^[A-Za-z0-9_./+=@%][A-Za-z0-9_./+=@%:,-]*$`)

// closesBeforeWord reports whether word is a dash followed by more: in 2>&-x bash closes the
// descriptor, and x is a separate word.
func closesBeforeWord(word *syntax.Word) bool {
	lit, ok := word.Parts[0].(*syntax.Lit)
	return ok && strings.HasPrefix(lit.Value, "-") && (len(word.Parts) > 1 || lit.Value != "-")
}

func isDescriptor(text string) bool {
	text = strings.TrimSuffix(text, "-")
	return strings.Trim(text, "0123456789") == ""
}

func isTilde(word *syntax.Word) bool {
	lit, ok := word.Parts[0].(*syntax.Lit)
	return ok && strings.HasPrefix(lit.Value, "~")
}

// heredocText returns a here-document's text.
func (k knownVariables) heredocText(redir *syntax.Redirect) proposal.Word {
	if redir.Hdoc == nil {
		return proposal.Word{Static: true}
	}
	raw := false
	for _, part := range redir.Word.Parts {
		if lit, ok := part.(*syntax.Lit); !ok || strings.Contains(lit.Value, `\`) {
			raw = true
		}
	}
	var value proposal.Word
	if raw {
		value = proposal.Word{Value: redir.Hdoc.Lit(), Static: true}
	} else if redir.Op == syntax.DashHdoc {
		value, _ = literalWord(redir.Hdoc, readQuoted) // tabs of a value are kept
	} else {
		value, _ = k.expandLiteral(redir.Hdoc, readQuoted)
	}
	if redir.Op == syntax.DashHdoc {
		value.Value = withoutTabs(value.Value)
	}
	return value
}

func withoutTabs(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimLeft(line, "\t")
	}
	return strings.Join(lines, "\n")
}

// redirectWords walks what bash runs or evaluates in the targets.
func (w *walker) redirectWords(redirs []*syntax.Redirect, s scope) {
	for _, redir := range redirs {
		w.walkWord(redir.Word, s)
		if redir.Hdoc != nil {
			w.walkParts(redir.Hdoc.Parts, s, true) // read as in double quotes
		}
	}
}
