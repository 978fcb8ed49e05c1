// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/policy/bounds"
	"github.com/fumehood/fumehood/internal/policy/lint"
	"github.com/fumehood/fumehood/internal/policy/module"
)

// A Review is the result of Check.
type Review struct {
	Rules    []RuleCount    `json:"rules"`
	Problems []lint.Problem `json:"problems"`
}

// CountProblems is the number of problems of one severity.
func (r Review) CountProblems(s lint.Severity) int {
	n := 0
	for _, p := range r.Problems {
		if p.Severity == s {
			n++
		}
	}
	return n
}

// Check looks for everything that is wrong with the layers, including the shipped default
// if none of them grants: what New would refuse, and what it would load but the author
// probably did not intend. Mistakes in a policy are Problems. An error is a
// *proposal.StopError: the layers could not be checked at all.
func Check(ctx context.Context, layers []Layer) (Review, error) {
	r := Review{Rules: []RuleCount{}, Problems: []lint.Problem{}}
	given, err := orderLayers(layers, false)
	if err != nil {
		return r, err
	}
	taken := map[string]bool{}
	for _, s := range given {
		counts, problems, err := checkLayer(ctx, s, taken)
		if err != nil {
			return r, err
		}
		r.Rules, r.Problems = append(r.Rules, counts...), append(r.Problems, problems...)
	}
	return r, nil
}

// checkLayer checks as much as it can: files that do not parse are skipped, and modules that
// do not compile are linted all the same. taken are the ids of the shipped policy, which it fills in.
func checkLayer(ctx context.Context, s Layer, taken map[string]bool) ([]RuleCount, []lint.Problem, error) {
	modules, problems := parseAll(s)
	l := &layer{name: s.Name, role: s.Role, now: s.readTime()}
	problems = append(problems, lint.ProblemsOf(s.Name, s.checkKnowledge())...)
	unread := len(problems) > 0
	problems = append(problems, lint.ProblemsOf(s.Name, l.readLabels(modules))...)
	about := l.forLint(s, modules, unread)
	if s.shipped {
		about.CollectIDs(taken)
	} else {
		about.Taken = taken
	}
	found, counts := about.Check()
	l.countRules(counts)
	problems = append(problems, found...)
	if !unread {
		compiled, err := l.compileAll(ctx, modules)
		if err != nil {
			return nil, nil, err
		}
		problems = append(problems, compiled...)
	}
	problems = append(problems, about.CheckMetadata()...)
	problems = append(problems, about.Lint()...)
	return l.counts, lint.SortProblems(problems), nil
}

// parseAll parses each file separately, with METADATA, and reports files that do not parse.
func parseAll(s Layer) (map[string]*ast.Module, []lint.Problem) {
	modules := map[string]*ast.Module{}
	var problems []lint.Problem
	for _, f := range s.Files {
		m, err := parseWith(s.Name, f, true)
		if problems = append(problems, lint.ProblemsOf(s.Name, err)...); m != nil && err == nil {
			modules[f.Name] = m
		}
	}
	return modules, problems
}

// compileAll reports what the compiler refuses at any point.
func (l *layer) compileAll(ctx context.Context, modules map[string]*ast.Module) ([]lint.Problem, error) {
	var problems []lint.Problem
	all := module.NewGraph(modules)
	for _, name := range module.Points() {
		if l.pointQuery(name) == "" {
			continue
		}
		own := module.CopyModules(module.ForPoint(name, modules, all))
		for _, m := range own {
			m.Annotations = nil
		}
		err := runWithinLimit(ctx, compiling*deadline, l.name, func(ctx context.Context) (err error) {
			bounds.MeterOf(ctx).Run(func() {
				if compiler := module.Compile(name, documentOf(name), own, true); compiler.Failed() {
					err = compiler.Errors
				}
			})
			return err
		})
		if isDeadlineError(err) || ctx.Err() != nil {
			return nil, err
		}
		problems = append(problems, lint.ProblemsOf(l.name, err)...)
	}
	return problems, nil
}

// warnStyle reports in one line what policy check finds in a layer that is loaded all the
// same: style must not stop the author, only warn.
func (e *Engine) warnStyle(given []Layer) {
	for _, s := range given {
		if s.Name == DefaultLayer && s.Role == Grants {
			continue // a test checks it before it ships
		}
		problems := e.warnExpiring(lintLayer(s))
		if len(problems) > 0 {
			p := problems[0]
			e.addWarning(fmt.Sprintf("policy.lint: layer %q, %s:%d:%d: %s (%d problems in all: run fumehood policy check)", s.Name, p.File, p.Line, p.Column, p.Message, len(problems)))
		}
	}
}

// warnExpiring warns of each exception that is over or soon will be, and of each override that has no effect,
// and returns the other problems.
func (e *Engine) warnExpiring(problems []lint.Problem) []lint.Problem {
	return slices.DeleteFunc(problems, func(p lint.Problem) bool {
		code, apart := map[string]string{lint.Expires: "policy.expires", lint.VoidOverride: module.CodeOverride}[p.Code]
		if apart {
			e.addWarning(fmt.Sprintf("%s: layer %q, %s:%d: %s", code, p.Layer, p.File, p.Line, p.Message))
		}
		return apart
	})
}

// lintLayer are the Wrong problems of a layer that compiles, and those of its exceptions'
// dates.
func lintLayer(s Layer) []lint.Problem {
	modules, problems := parseAll(s)
	problems = append(problems, (&layer{name: s.Name, role: s.Role, now: s.readTime()}).forLint(s, modules,
		false).Lint()...)
	return slices.DeleteFunc(lint.SortProblems(problems),
		func(p lint.Problem) bool { return p.Severity == lint.Doubtful && p.Code != lint.Expires })
}

// forLint is s for package lint. unread means that some of its files could not be read.
func (l *layer) forLint(s Layer, modules map[string]*ast.Module, unread bool) lint.Layer {
	about := lint.Layer{Name: s.Name, Opens: l.hasRole(Opens), Allows: l.hasRole(Allows), Grants: l.hasRole(Grants),
		Shipped: l.shipped, Modules: modules, Unread: unread, Now: l.now, Document: documentOf,
		Marks: shippedMarks}
	if data, err := s.Data(); err == nil { // read reports the error
		about.Data, _, _ = readKnowledge(data)
		about.Adds = len(about.Data) < len(data)
	}
	return about
}

// countRules records the number of rules in each set.
func (l *layer) countRules(rules map[string]int) {
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
