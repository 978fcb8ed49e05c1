// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/pkg/proposal"
)

var (
	bashParsers  = parsersOf(syntax.LangBash)
	posixParsers = parsersOf(syntax.LangPOSIX)
)

func parsersOf(dialect syntax.LangVariant) *sync.Pool {
	return &sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(dialect)) }}
}

// parseText parses text as bash. Comments are dropped: they have no effect, and both
// known disagreements between this parser and bash involve them.
func parseText(text string) (*syntax.File, error) { return parseWith(bashParsers, text) }

func parseWith(parsers *sync.Pool, text string) (file *syntax.File, err error) {
	defer func() {
		if recover() != nil {
			file, err = nil, errors.New("internal error of the parser")
		}
	}()
	parser := parsers.Get().(*syntax.Parser)
	file, err = parser.Parse(strings.NewReader(text), "")
	if err == nil {
		parsers.Put(parser)
	}
	return file, err
}

var printers = sync.Pool{New: func() any { return syntax.NewPrinter() }}

func printText(file *syntax.File) (string, error) {
	var out strings.Builder
	printer := printers.Get().(*syntax.Printer)
	err := printer.Print(&out, file)
	if err == nil {
		printers.Put(printer)
	}
	return out.String(), err
}

// analyzeText reads shell text: parse, print, parse again. The two readings must
// agree, and only the printed text is ever run.
func analyzeText(p proposal.Proposal, text string) proposal.Analysis {
	if finding, ok := checkText(text); !ok {
		return proposal.Analysis{Unknowns: []proposal.Unknown{finding}}
	}
	first, err := parseText(text)
	if err != nil {
		return proposal.Analysis{Unknowns: []proposal.Unknown{syntaxUnknown(text, err)}}
	}
	if finding, found := findAmbiguity(text, first); found {
		return proposal.Analysis{Unknowns: []proposal.Unknown{finding}}
	}
	text, first = withEnvironments(text, first, p.Sourced)
	canonical, second, ok := reprintFile(first)
	if !ok {
		return refuseText(text, unknownUnstable)
	}
	if len(canonical) > 2*maxText {
		return refuseText(text, unknownLong)
	}
	before, once := analyzeFile(p, text, first, nil)
	if once != nil {
		before, _ = analyzeFile(p, text, first, once)
	}
	after, _ := analyzeFile(p, canonical, second, once)
	if !sameMeaning(before, after) {
		after.Unknowns = append(after.Unknowns, unknownUnstable.unknownAt(wholeSpan(canonical)))
	}
	return after
}

// reprintFile prints file and parses the result, and checks that printing again changes
// nothing.
func reprintFile(file *syntax.File) (string, *syntax.File, bool) {
	canonical, err := printText(file)
	if err != nil {
		return "", nil, false
	}
	second, err := parseText(canonical)
	if err != nil {
		return "", nil, false
	}
	again, err := printText(second)
	return canonical, second, err == nil && again == canonical
}

// analyzeFile walks file. If the text sets variables to literals it also returns how
// often each variable is set; a second walk uses the counts to derive the values.
func analyzeFile(
	p proposal.Proposal, text string, file *syntax.File, once map[string]int,
) (proposal.Analysis, map[string]int) {
	w := newWalker(text, p.Env, once)
	w.offline = len(p.Network) == 0
	w.walkStmts(file.Stmts, scope{top: true})
	analysis := w.finishAnalysis(text)
	if !w.certain {
		return analysis, nil
	}
	return analysis, w.sets
}

// sameMeaning compares two analyses, ignoring their spans.
func sameMeaning(a, b proposal.Analysis) bool {
	if len(a.Commands) != len(b.Commands) || len(a.Unknowns) != len(b.Unknowns) {
		return false
	}
	for i := range a.Commands {
		x, y := a.Commands[i], b.Commands[i]
		if !sameCommand(x, y) {
			return false
		}
	}
	for i := range a.Unknowns {
		if a.Unknowns[i].Code != b.Unknowns[i].Code {
			return false
		}
	}
	return true
}

func sameCommand(x, y proposal.Command) bool {
	return x.Program == y.Program && x.Function == y.Function && x.Launches == y.Launches && x.Builtin == y.Builtin &&
		x.AfterSuccess == y.AfterSuccess && x.StdinFrom == y.StdinFrom && slices.Equal(x.Args, y.Args) &&
		slices.Equal(x.Via, y.Via) && slices.Equal(x.Inside, y.Inside) && slices.Equal(x.Assigns, y.Assigns) &&
		slices.Equal(x.Redirects, y.Redirects)
}

// syntaxUnknown turns a parser error into an Unknown with its position.
func syntaxUnknown(text string, err error) proposal.Unknown {
	kind, start := unknownSyntax, 0
	var parseErr syntax.ParseError
	var langErr syntax.LangError
	switch {
	case errors.As(err, &parseErr):
		kind.message = "this is not valid bash: " + parseErr.Text
		start = int(parseErr.Pos.Offset())
	case errors.As(err, &langErr):
		kind, start = unknownDialect, int(langErr.Pos.Offset())
	}
	start = min(start, len(text))
	return kind.unknownAt(spanIn(text, start, len(text)))
}
