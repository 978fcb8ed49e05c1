// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A functionName is a function in one of the shells that the text starts.
type functionName struct {
	shell int
	name  string
}

// A function is one that the text declares.
type function struct {
	top  bool // by a statement of its shell's text: cannot be skipped
	from int  // number of calls seen before it
}

// A callSite is a command whose program is a plain name, which may be a function.
type callSite struct {
	index int
	shell int
	fn    bool // in a function's body, which runs later
	args  []arg
}

func (w *walker) funcDecl(decl *syntax.FuncDecl, s scope) {
	span := w.spanOf(decl, s)
	if decl.Name == nil || len(decl.Names) > 0 || !plainFunction(decl.Name.Value) {
		w.addUnknown(unknownFunctionName, span)
	} else {
		name := decl.Name.Value
		if isShadowingName(name) {
			w.addUnknown(unknownShadow, span)
		}
		if known := w.functions[functionName{s.shell, name}]; known != nil {
			known.top = known.top && s.top
		} else {
			putInMap(&w.functions, functionName{s.shell, name}, &function{top: s.top, from: len(w.called)})
		}
		s = s.inConstruct("function " + name)
	}
	s.fn, s.stdin = true, ""
	w.walkStmt(decl.Body, s)
}

func plainFunction(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == "" &&
		name[0] != '-'
}

// checkFunctions marks the calls of functions and refuses calls that may precede the
// declaration, if the name could be a program's.
func (w *walker) checkFunctions() {
	for i, site := range w.called {
		command := &w.commands[site.index]
		fn := w.functions[functionName{site.shell, command.Program}]
		if fn == nil {
			continue
		}
		command.Function, command.Builtin = true, false
		w.recordPositional(site.args[1:])
		if !fn.top || (!site.fn && i < fn.from) {
			w.addUnknown(unknownFunctionOrder, command.Span)
		}
	}
}

// finishAnalysis runs the checks that need the whole text.
func (w *walker) finishAnalysis(canonical string) proposal.Analysis {
	w.checkFunctions()
	w.checkOrigins()
	w.checkRewritten()
	w.checkActions()
	w.checkTextual()
	w.checkLocales()
	w.checkWritten()
	w.markExported()
	if len(w.commands) == 0 && len(w.unknowns) == 0 {
		w.addUnknown(unknownEmpty, wholeSpan(canonical))
	}
	slices.SortStableFunc(w.unknowns, func(a, b proposal.Unknown) int {
		if a.Span.Start != b.Span.Start {
			return a.Span.Start - b.Span.Start
		}
		return strings.Compare(a.Code, b.Code)
	})
	return proposal.Analysis{Canonical: canonical, Commands: w.commands, Unknowns: w.unknowns}
}

func (w *walker) markExported() {
	if len(w.exported) == 0 {
		return
	}
	for i := range w.commands {
		for j := range w.commands[i].Assigns {
			assign := &w.commands[i].Assigns[j]
			assign.Exported = assign.Exported || w.exported[assign.Name]
		}
	}
}
