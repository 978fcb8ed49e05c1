// SPDX-License-Identifier: Apache-2.0

// Package parse finds every simple command in a Proposal before anything runs.
//
// It makes three promises. Every program that bash starts because of the text itself
// is among the Commands, or the Analysis has an Unknown. Every Word records whether
// it is exactly what the program will see. And the text that policy decides on is the
// text that runs: Canonical is printed from the syntax tree, parsed again and checked
// to have the same meaning, so that a disagreement between this parser and bash about
// the original text cannot hide anything.
//
// It runs nothing, reads no file and no environment, and never fails: anything it
// cannot determine becomes an Unknown, which policy denies.
//
// A word known only at run time is not an Unknown if a program reads it: the exec
// gate decides the real argv when the program starts. It is an Unknown if the shell
// itself would act on it, because no exec follows: as the name of a program, as an
// expression, a subscript, an option of a builtin, a format, a variable's name, or
// the name of a connection that a redirection opens. The harmless forms are listed at
// each check; everything else is refused.
//
// The text itself is read as bash. Text for sh, dash and ash is read twice, as bash
// and as POSIX shell, and both readings must agree. Other shells are refused.
//
// It does not protect against what a program does once it runs: a test suite, a
// makefile or python3 -c may start anything. Policy judges arguments that make a
// known tool run another one (go test -exec, tar --to-command), apart from the
// wrappers and the few options listed in wrapper.go, find.go and git.go. The package
// assumes that the environment contains nothing that bash reads by itself (BASH_ENV,
// exported functions) when the canonical text is executed, and leaves the profiles
// that a login shell reads to policy.
package parse

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/internal/shell/notebook"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Analyze finds what p would run. It never fails, never panics and never runs
// anything; every doubt is an Unknown.
func Analyze(p proposal.Proposal) (analysis proposal.Analysis) {
	defer func() {
		if recover() != nil {
			analysis = refuseText("", unknownPanic)
		}
		analysis = completeLists(analysis)
	}()
	switch p.Form() {
	case "invalid":
		return refuseText("", unknownInvalid)
	case "run":
		return analyzeText(p, p.Run)
	case "argv":
		return analyzeArgv(p, p.Argv)
	}
	if p.Code == "" {
		return refuseText("", unknownEmpty)
	}
	return analyzeCode(p)
}

// completeLists makes every list non-nil, so that policy and readers of the JSON need not
// distinguish a missing list from an empty one.
func completeLists(a proposal.Analysis) proposal.Analysis {
	a.Commands, a.Unknowns = nonNilList(a.Commands), nonNilList(a.Unknowns)
	for i := range a.Commands {
		c := &a.Commands[i]
		c.Args, c.Via, c.Inside = nonNilList(c.Args), nonNilList(c.Via), nonNilList(c.Inside)
		c.Assigns, c.Redirects = nonNilList(c.Assigns), nonNilList(c.Redirects)
	}
	return a
}

func nonNilList[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// analyzeCode reads bash and sh as shell text, since the sandbox runs both with
// bash, and the other languages as the command that runs them.
func analyzeCode(p proposal.Proposal) proposal.Analysis {
	switch p.Language {
	case "bash", "sh":
		if p.Earlier != nil {
			return analyzeCell(p)
		}
		return analyzeText(p, p.Code)
	case "python":
		code := p.Code
		if p.Context != "" {
			code = notebook.Translate(code)
		}
		return analyzeArgv(p, []string{"python3", "-c", code})
	case "javascript":
		return analyzeArgv(p, []string{"node", "-e", p.Code})
	}
	return refuseText(p.Code, unknownLanguage)
}

// analyzeArgv reads one command that no shell sees. Canonical is for display only.
func analyzeArgv(p proposal.Proposal, argv []string) proposal.Analysis {
	if finding, ok := checkArgv(argv); !ok {
		return proposal.Analysis{Unknowns: []proposal.Unknown{finding}}
	}
	quoted := make([]string, len(argv))
	args := make([]arg, len(argv))
	offset := 0
	for i, word := range argv {
		text, err := syntax.Quote(word, syntax.LangBash)
		if err != nil {
			return refuseText("", unknownControl)
		}
		quoted[i] = text
		args[i] = arg{Word: proposal.Word{Value: word, Static: true}}
		args[i].span = proposal.Span{Start: offset, End: offset + len(text), Line: 1, Col: offset + 1}
		offset += len(text) + 1
	}
	canonical := strings.Join(quoted, " ")
	w := newWalker(canonical, p.Env, nil)
	w.noShell = true
	span := wholeSpan(canonical)
	w.recordCommand(args, scope{span: &span}, call{span: span})
	return w.finishAnalysis(canonical)
}

// refuseText returns the Analysis of text that was not read further.
func refuseText(text string, kind unknownKind) proposal.Analysis {
	return proposal.Analysis{Unknowns: []proposal.Unknown{kind.unknownAt(wholeSpan(text))}}
}

func wholeSpan(text string) proposal.Span {
	return proposal.Span{Start: 0, End: len(text), Line: 1, Col: 1}
}
