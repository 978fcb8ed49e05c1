// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/pkg/policy/bounds"
	"github.com/fumehood/fumehood/pkg/policy/lint"
	"github.com/fumehood/fumehood/pkg/policy/module"
)

// A Review is what Check found.
type Review struct {
	Rules    []RuleCount    `json:"rules"`
	Problems []lint.Problem `json:"problems"`
}

// Count is how many problems there are of one severity.
func (r Review) Count(s lint.Severity) int {
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
	r := Review{Rules: []RuleCount{}, Problems: []lint.Problem{}}
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
func checkLayer(ctx context.Context, s Layer) ([]RuleCount, []lint.Problem, error) {
	modules, problems := parseAll(s)
	l := &layer{name: s.Name, role: s.Role}
	_, err := s.Data()
	problems = append(problems, lint.Problems(s.Name, err)...)
	unread := len(problems) > 0
	about := l.forLint(s, modules, unread)
	found, counts := about.Check()
	l.count(counts)
	problems = append(problems, found...)
	if !unread {
		compiled, err := l.compileAll(ctx, modules)
		if err != nil {
			return nil, nil, err
		}
		problems = append(problems, compiled...)
	}
	problems = append(problems, about.Metadata()...)
	problems = append(problems, about.Lint()...)
	return l.counts, lint.Tidy(problems), nil
}

// parseAll parses each file by itself, with METADATA, and says what does not parse.
func parseAll(s Layer) (map[string]*ast.Module, []lint.Problem) {
	modules := map[string]*ast.Module{}
	var problems []lint.Problem
	for _, f := range s.Files {
		m, err := parseWith(s.Name, f, true)
		if problems = append(problems, lint.Problems(s.Name, err)...); m != nil && err == nil {
			modules[f.Name] = m
		}
	}
	return modules, problems
}

// compileAll says what the compiler refuses at any point.
func (l *layer) compileAll(ctx context.Context, modules map[string]*ast.Module) ([]lint.Problem, error) {
	var problems []lint.Problem
	all := module.NewGraph(modules)
	for _, name := range module.Points() {
		if l.query(name) == "" {
			continue
		}
		own := module.Copies(module.ForPoint(name, modules, all))
		for _, m := range own {
			m.Annotations = nil
		}
		err := bounded(ctx, compiling*deadline, l.name, func(ctx context.Context) (err error) {
			bounds.MeterOf(ctx).Run(func() {
				if compiler := module.Compile(name, documentOf(name), own, true); compiler.Failed() {
					err = compiler.Errors
				}
			})
			return err
		})
		if late(err) || ctx.Err() != nil {
			return nil, err
		}
		problems = append(problems, lint.Problems(l.name, err)...)
	}
	return problems, nil
}

// style tells in one line what policy check would say of a layer that is loaded all the
// same: its author may not be stopped by style, and is told.
func (e *Engine) style(given []Layer) {
	for _, s := range given {
		if s.Name == DefaultLayer && s.Role == Grants {
			continue // held to it before it ships
		}
		problems := linted(s)
		if len(problems) > 0 {
			p := problems[0]
			e.warn(fmt.Sprintf("policy.lint: layer %q, %s:%d:%d: %s (fumehood policy check shows all that is wrong with it: %d)", s.Name, p.File, p.Line, p.Column, p.Message, len(problems)))
		}
	}
}

// linted is what is Wrong with a layer that compiles.
func linted(s Layer) []lint.Problem {
	modules, problems := parseAll(s)
	problems = append(problems, (&layer{name: s.Name, role: s.Role}).forLint(s, modules, false).Lint()...)
	return slices.DeleteFunc(lint.Tidy(problems), func(p lint.Problem) bool { return p.Severity == lint.Doubtful })
}

// forLint is s as package lint sees it. unread means that some of its files could not
// be read.
func (l *layer) forLint(s Layer, modules map[string]*ast.Module, unread bool) lint.Layer {
	about := lint.Layer{Name: s.Name, Opens: l.may(Opens), Allows: l.may(Allows), Shipped: l.shipped, Modules: modules, Unread: unread, Document: documentOf}
	if data, err := s.Data(); err == nil { // read says it where it fails
		about.Data = slices.Collect(maps.Keys(data))
	}
	return about
}

// count keeps how many rules each set has.
func (l *layer) count(rules map[string]int) {
	l.counts = nil
	for _, point := range module.Points() {
		for _, set := range module.Sets(point) {
			l.counts = append(l.counts, RuleCount{Layer: l.name, Point: point, Set: set, Rules: rules[point+"."+set]})
		}
	}
}

// rulesOf is the number of rules of one set.
func (l *layer) rulesOf(point, set string) int {
	for _, c := range l.counts {
		if c.Point == point && c.Set == set {
			return c.Rules
		}
	}
	return 0
}
