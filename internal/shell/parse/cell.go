// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// analyzeCell reads the code of a shell that has run p.Earlier as the end of one script: what
// the earlier cells defined and set decides what its words mean. The code must be whole by
// itself, so that the shell cannot read a part of it as the rest of an earlier cell.
func analyzeCell(p proposal.Proposal) proposal.Analysis {
	own, file, refusal := wholeCell(p.Code, p.Sourced)
	if refusal != nil {
		return proposal.Analysis{Unknowns: []proposal.Unknown{*refusal}}
	}
	text := p.ShellText()
	if len(text) > maxText {
		return refuseText("", unknownLongContext)
	}
	a := analyzeText(p, text)
	for i, u := range a.Unknowns {
		if u.Code == "parse."+unknownMany.code {
			a.Unknowns[i] = unknownManyContext.unknownAt(u.Span)
		}
	}
	begins, ok := beginsAt(a.Canonical, p.Earlier.Text, own, len(file.Stmts))
	if a.Begins = begins; !ok && len(a.Unknowns) == 0 {
		a.Unknowns = append(a.Unknowns, unknownUnstable.unknownAt(wholeSpan(a.Canonical)))
	}
	return a
}

// wholeCell reads a cell by itself, and returns how it is printed.
func wholeCell(code string, sourced map[string]string) (string, *syntax.File, *proposal.Unknown) {
	if finding, ok := checkText(code); !ok {
		return "", nil, &finding
	}
	file, err := parseText(code)
	if err != nil {
		finding := syntaxUnknown(code, err)
		return "", nil, &finding
	}
	finding, found := findAmbiguity(code, file)
	if found {
		return "", nil, &finding
	}
	code, file = withEnvironments(code, file, sourced)
	own, second, ok := reprintFile(file)
	switch {
	case !ok:
		finding = unknownUnstable.unknownAt(wholeSpan(code))
	case len(second.Stmts) == 0:
		finding = unknownEmpty.unknownAt(wholeSpan(code))
	default:
		return own, second, nil
	}
	return "", nil, &finding
}

// beginsAt returns the byte of canonical at which the last statements begin, and whether these
// are own, and what is before them is earlier.
func beginsAt(canonical, earlier, own string, statements int) (int, bool) {
	file, err := parseText(canonical)
	if err != nil || len(file.Stmts) < statements {
		return 0, false
	}
	at := min(int(file.Stmts[len(file.Stmts)-statements].Pos().Offset()), len(canonical))
	before := canonical[:at]
	return at, strings.HasSuffix(before, "\n") && strings.TrimRight(before, "\n") == strings.TrimRight(earlier, "\n") &&
		canonical[at:] == own
}
