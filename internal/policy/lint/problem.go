// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Severity is the effect of a Problem on its layer.
type Severity string

// The severities, worst first.
const (
	// Refused means that no run loads the layer.
	Refused Severity = "refused"
	// Wrong means that a run loads it and warns: it probably does not do what it seems to.
	Wrong Severity = "error"
	// Doubtful means that it does what it says but may surprise its readers.
	Doubtful Severity = "warning"
)

// A Problem is one mistake in a layer, with its place. Its texts may quote the layer.
type Problem struct {
	Layer    string   `json:"layer"`
	File     string   `json:"file,omitempty"` // slash-separated, within the layer; "" is the layer as a whole
	Line     int      `json:"line,omitempty"`
	Column   int      `json:"column,omitempty"`
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`
	Message  string   `json:"message"`
	Hint     string   `json:"hint,omitempty"`
}

// Place is the place of the problem in the form that editors read.
func (p Problem) Place() string {
	if p.File == "" {
		return p.Layer
	}
	return fmt.Sprintf("%s:%d:%d", path.Join(p.Layer, p.File), p.Line, p.Column)
}

// CheckMetadata reports contradicting METADATA.
func (l Layer) CheckMetadata() []Problem {
	var problems []Problem
	_, errs := ast.BuildAnnotationSet(slices.Collect(maps.Values(l.Modules)))
	for _, e := range errs {
		problems = append(problems, problemAt(l.Name, e.Location, Wrong, lintMetadata, trimErrorCode(e.Message),
			"write it once: METADATA above package is for all files of the package"))
	}
	return problems
}

// ProblemsOf converts the errors of OPA, or of an earlier check, about a layer.
func ProblemsOf(layer string, err error) []Problem {
	if err == nil {
		return nil
	}
	var many ast.Errors
	if errors.As(err, &many) {
		var problems []Problem
		for _, e := range many {
			problems = append(problems, compileProblem(layer, e))
		}
		return problems
	}
	if one, ok := errors.AsType[*ast.Error](err); ok { // an empty file
		return []Problem{compileProblem(layer, one)}
	}
	if p, ok := errors.AsType[*Problem](err); ok {
		return []Problem{*p}
	}
	if s, ok := errors.AsType[*proposal.StopError](err); ok {
		return []Problem{{Layer: layer, Severity: Refused, Code: s.Code, Message: proposal.FailureOf(s).Message,
			Hint: s.Hint}}
	}
	return []Problem{{Layer: layer, Severity: Refused, Code: module.CodeCompile, Message: err.Error()}}
}

// problemAt is a Problem at a place in the layer.
func problemAt(layer string, where *ast.Location, severity Severity, code, message, hint string) Problem {
	p := Problem{Layer: layer, Severity: severity, Code: code, Message: message, Hint: hint}
	if where != nil {
		p.File, p.Line, p.Column = where.File, max(1, where.Row), max(1, where.Col)
	}
	return p
}

// Error makes a Problem an error.
func (p *Problem) Error() string { return p.Place() + ": " + p.Message }

// stopError is the error of a run with problems, of which p is the first.
func (p Problem) stopError(more int) error {
	message := fmt.Sprintf("policy layer %q: %s", p.Layer, p.Message)
	if p.File != "" {
		message = fmt.Sprintf("policy layer %q, %s:%d:%d: %s", p.Layer, p.File, p.Line, p.Column, p.Message)
	}
	if more > 0 {
		message += fmt.Sprintf(" (and %d more: run fumehood policy check)", more)
	}
	return module.Stop(p.Code, message, p.Hint, nil)
}

// Refusal is the error of a run with problems, or nil.
func Refusal(problems []Problem) error {
	problems = slices.DeleteFunc(slices.Clone(problems), func(p Problem) bool { return p.Severity != Refused })
	if len(problems) == 0 {
		return nil
	}
	return problems[0].stopError(len(problems) - 1)
}

// maxProblems limits the problems of one layer.
const maxProblems = 1000

// SortProblems sorts problems by place and removes duplicates: a library is compiled with each
// point that uses it.
func SortProblems(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.Layer, b.Layer), strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column))
	})
	seen := map[Problem]bool{}
	problems = slices.DeleteFunc(problems, func(p Problem) bool {
		p.Column, p.Hint = 0, "" // the compiler may report the same at the start of the line
		again := seen[p]
		seen[p] = true
		return again
	})
	if more := len(problems) - maxProblems; more > 0 {
		last := problems[maxProblems-1]
		last.Code, last.Message, last.Hint = module.CodeTooLarge, fmt.Sprintf("%d more problems are not listed", more),
			""
		problems = append(problems[:maxProblems-1:maxProblems-1], last)
	}
	return problems
}

// Refuse is the error of a run with a single problem.
func Refuse(layer string, where *ast.Location, code, message, hint string) error {
	return problemAt(layer, where, Refused, code, message, hint).stopError(0)
}
