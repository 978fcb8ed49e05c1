// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Severity says what becomes of a layer that has a Problem.
type Severity string

// The severities, the worst first.
const (
	// Refused means that no run loads the layer.
	Refused Severity = "refused"
	// Wrong means that a run loads it and warns, and that it hardly does what it seems to.
	Wrong Severity = "error"
	// Doubtful means that it does what it says and may surprise who reads it.
	Doubtful Severity = "warning"
)

// A Problem is one thing that is wrong with a layer, and where. Its texts may hold what
// the layer's author wrote.
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

// Place is where the problem lies, as editors read it.
func (p Problem) Place() string {
	if p.File == "" {
		return p.Layer
	}
	return fmt.Sprintf("%s:%d:%d", path.Join(p.Layer, p.File), p.Line, p.Column)
}

// A Review is what Check found.
type Review struct {
	Rules    []RuleCount `json:"rules"`
	Problems []Problem   `json:"problems"`
}

// Count is how many problems there are of one severity.
func (r Review) Count(s Severity) int {
	n := 0
	for _, p := range r.Problems {
		if p.Severity == s {
			n++
		}
	}
	return n
}

// Check looks for all that is wrong with the layers, the shipped default included where
// none of them grants: what New would refuse, and what it would load and the author
// hardly meant. What is wrong with a policy is a Problem. An error is a
// *proposal.StopError: the layers could not be checked at all.
func Check(ctx context.Context, layers []Layer) (Review, error) {
	r := Review{Rules: []RuleCount{}, Problems: []Problem{}}
	given, err := ordered(layers, false)
	if err != nil {
		return r, err
	}
	for _, s := range given {
		counts, problems, err := checkLayer(ctx, s)
		if err != nil {
			return r, err
		}
		r.Rules, r.Problems = append(r.Rules, counts...), append(r.Problems, problems...)
	}
	return r, nil
}

// checkLayer goes as far as it can: what does not parse is not looked into, and what
// does not compile is linted all the same.
func checkLayer(ctx context.Context, s Layer) ([]RuleCount, []Problem, error) {
	modules, problems := parseAll(s)
	l := &layer{name: s.Name, role: s.Role, points: map[string]*point{}}
	_, err := s.Data()
	problems = append(problems, l.problemOf(err)...)
	unread := len(problems) > 0
	found := l.problems(s, modules, unread)
	problems = append(problems, found...)
	if !unread {
		compiled, err := l.compileAll(ctx, modules)
		if err != nil {
			return nil, nil, err
		}
		problems = append(problems, compiled...)
	}
	problems = append(problems, l.metadata(modules)...)
	problems = append(problems, l.lint(modules)...)
	return l.counts, tidied(problems), nil
}

// parseAll parses each file by itself, with METADATA, and says what does not parse.
func parseAll(s Layer) (map[string]*ast.Module, []Problem) {
	modules, l := map[string]*ast.Module{}, &layer{name: s.Name}
	var problems []Problem
	for _, f := range s.Files {
		m, err := parseWith(s.Name, f, true)
		if problems = append(problems, l.problemOf(err)...); m != nil && err == nil {
			modules[f.Name] = m
		}
	}
	return modules, problems
}

// compileAll says what the compiler refuses at any point.
func (l *layer) compileAll(ctx context.Context, modules map[string]*ast.Module) ([]Problem, error) {
	var problems []Problem
	all := newAtlas(modules)
	for _, name := range points {
		if l.query(name) == "" {
			continue
		}
		own := copies(modulesOf(name, modules, all))
		for _, m := range own {
			m.Annotations = nil
		}
		err := bounded(ctx, compiling*deadline, l.name, func(ctx context.Context) (err error) {
			meterOf(ctx).run(func() {
				if compiler := compileModules(name, own, true); compiler.Failed() {
					err = compiler.Errors
				}
			})
			return err
		})
		if late(err) || ctx.Err() != nil {
			return nil, err
		}
		problems = append(problems, l.problemOf(err)...)
	}
	return problems, nil
}

// metadata says which METADATA contradicts another.
func (l *layer) metadata(modules map[string]*ast.Module) []Problem {
	var problems []Problem
	_, errs := ast.BuildAnnotationSet(slices.Collect(maps.Values(modules)))
	for _, e := range errs {
		problems = append(problems, l.at(e.Location, Wrong, lintMetadata, plainly(e.Message), "write it once: what stands above package is about all files of the package"))
	}
	return problems
}

// problemOf reads what OPA, or an earlier check, says.
func (l *layer) problemOf(err error) []Problem {
	if err == nil {
		return nil
	}
	var many ast.Errors
	if errors.As(err, &many) {
		var problems []Problem
		for _, e := range many {
			problems = append(problems, l.compileProblem(e))
		}
		return problems
	}
	if one, ok := errors.AsType[*ast.Error](err); ok { // an empty file
		return []Problem{l.compileProblem(one)}
	}
	if p, ok := errors.AsType[*Problem](err); ok {
		return []Problem{*p}
	}
	if s, ok := errors.AsType[*proposal.StopError](err); ok {
		return []Problem{{Layer: l.name, Severity: Refused, Code: s.Code, Message: proposal.FailureOf(s).Message, Hint: s.Hint}}
	}
	return []Problem{{Layer: l.name, Severity: Refused, Code: codeCompile, Message: err.Error()}}
}

// at is a Problem at a place in the layer.
func (l *layer) at(where *ast.Location, severity Severity, code, message, hint string) Problem {
	p := Problem{Layer: l.name, Severity: severity, Code: code, Message: message, Hint: hint}
	if where != nil {
		p.File, p.Line, p.Column = where.File, max(1, where.Row), max(1, where.Col)
	}
	return p
}

// Error makes a Problem an error for who meets it alone.
func (p *Problem) Error() string { return p.Place() + ": " + p.Message }

// stop is the error of a run that meets p first of problems.
func (p Problem) stop(more int) error {
	message := fmt.Sprintf("policy layer %q: %s", p.Layer, p.Message)
	if p.File != "" {
		message = fmt.Sprintf("policy layer %q, %s:%d:%d: %s", p.Layer, p.File, p.Line, p.Column, p.Message)
	}
	if more > 0 {
		message += fmt.Sprintf(" (and %d more: fumehood policy check shows all)", more)
	}
	return stop(p.Code, message, p.Hint, nil)
}

// refusal is the error of a run that meets problems, or nil.
func refusal(problems []Problem) error {
	problems = slices.DeleteFunc(slices.Clone(problems), func(p Problem) bool { return p.Severity != Refused })
	if len(problems) == 0 {
		return nil
	}
	return problems[0].stop(len(problems) - 1)
}

// mostProblems bounds what is said of one layer.
const mostProblems = 1000

// tidied sorts problems by place and says none twice: a library is compiled with each
// point that uses it.
func tidied(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.Layer, b.Layer), strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	seen := map[Problem]bool{}
	problems = slices.DeleteFunc(problems, func(p Problem) bool {
		p.Column, p.Hint = 0, "" // the compiler may say the same of the line's beginning
		again := seen[p]
		seen[p] = true
		return again
	})
	if more := len(problems) - mostProblems; more > 0 {
		last := problems[mostProblems-1]
		last.Code, last.Message, last.Hint = codeTooLarge, fmt.Sprintf("%d more problems are not listed", more), ""
		problems = append(problems[:mostProblems-1:mostProblems-1], last)
	}
	return problems
}

// refuse is the error of a run that meets one problem by itself.
func (l *layer) refuse(at *ast.Location, code, message, hint string) error {
	return l.at(at, Refused, code, message, hint).stop(0)
}
