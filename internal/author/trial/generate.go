// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"path"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// explored are the points whose rules are searched for shadows. Inputs are also generated for
// those of a proposal: an answer of theirs may be malformed.
var explored = map[string]bool{module.PointCommand: true, module.PointExec: true}

// The limits of what is read of one rule, and of the rules that it uses.
const (
	maxPrograms = 6
	maxWords    = 6
	maxPerRule  = 32
	maxUses     = 20
)

// generateInputs are inputs of the points explored, made of the programs, subcommands, options and
// words that the rules of the layers compare with. The first input of each rule is before the
// second of any.
func generateInputs(layers []policy.Layer) (inputs []any) {
	var lists [][]any
	for _, l := range layers {
		lists = append(lists, ofLayer(l)...)
	}
	seen := map[string]bool{}
	for i := range maxPerRule {
		for _, list := range lists {
			if i >= len(list) || len(inputs) == maxGenerated {
				continue
			}
			if text, ok := list[i].(string); ok && seen[text] {
				continue
			} else if ok {
				seen[text] = true
			}
			inputs = append(inputs, list[i])
		}
	}
	return inputs
}

// ofLayer are the inputs of each rule of l.
func ofLayer(l policy.Layer) (lists [][]any) {
	modules := ParseModules(l)
	graph := module.NewGraph(modules)
	for _, f := range l.Files {
		m := modules[f.Name]
		if m == nil {
			continue
		}
		for _, r := range m.Rules {
			if _, ok := module.RuleAt(l.Name, r); ok {
				lists = append(lists, RuleInputs(graph, m, r))
			}
		}
	}
	return lists
}

// RuleInputs are inputs made of the words of r, a rule of m: texts of commands, and starts of programs.
func RuleInputs(graph *module.Graph, m *ast.Module, r *ast.Rule) []any {
	point := module.PackageOf(m)
	if !explored[point] && point != module.PointProposal {
		return nil
	}
	g := &gatherer{graph: graph, uses: map[string]bool{}}
	g.readModule(m, r.Body)
	return g.inputsFor(point)
}

// ParseModules are the modules of l that decide, by file: not those of tests, nor what does not parse, which policy.New
// refuses.
func ParseModules(l policy.Layer) map[string]*ast.Module {
	modules := map[string]*ast.Module{}
	for _, f := range l.Files {
		if path.Ext(f.Name) != ".rego" || f.IsTest() {
			continue
		}
		if m, err := module.Parse(l.Name, f.Name, f.Content, true); err == nil {
			modules[f.Name] = m
		}
	}
	return modules
}

// A gatherer collects the literals of a rule and of the rules that it uses, in their order.
type gatherer struct {
	graph                        *module.Graph
	uses                         map[string]bool
	programs, subs, flags, words []string
}

func (g *gatherer) readModule(m *ast.Module, n any) {
	ast.WalkExprs(n, func(e *ast.Expr) bool {
		if e.IsCall() && len(e.Operands()) == 2 {
			g.addCompared(e.Operand(0), e.Operand(1))
			g.addCompared(e.Operand(1), e.Operand(0))
		}
		return false
	})
	ast.WalkTerms(n, func(t *ast.Term) bool {
		if ref, ok := t.Value.(ast.Ref); ok && ref[0].Equal(ast.InputRootDocument) {
			return true // the names of fields
		}
		g.addWord(t)
		return false
	})
	g.graph.Walk(m, n, func(to module.Target) {
		if to.Rule == "" || g.uses[to.Rule] || len(g.uses) == maxUses {
			return
		}
		g.uses[to.Rule] = true
		for _, used := range g.graph.Rules[to.Rule] {
			g.readModule(used.Module, used.Rule)
		}
	})
}

// addCompared takes the literals that field, a part of the input, is compared with.
func (g *gatherer) addCompared(field, with *ast.Term) {
	ref, ok := field.Value.(ast.Ref)
	if !ok || !ref[0].Equal(ast.InputRootDocument) {
		return
	}
	name, _ := ref[len(ref)-1].Value.(ast.String)
	to := map[string]*[]string{"program": &g.programs, "programs": &g.programs, "tool": &g.programs,
		"name": &g.programs, "path": &g.programs, "sub": &g.subs}[string(name)]
	if to == nil {
		return
	}
	ast.WalkTerms(with, func(t *ast.Term) bool {
		addNewWord(to, t, maxPrograms)
		return false
	})
}

func (g *gatherer) addWord(t *ast.Term) {
	if text, ok := t.Value.(ast.String); ok && strings.HasPrefix(string(text), "-") {
		addNewWord(&g.flags, t, maxWords)
	} else {
		addNewWord(&g.words, t, maxWords)
	}
}

// wordly are the words that a shell reads as one, unchanged.
var wordly = pattern.New(`^[A-Za-z0-9_./@%+:,-][A-Za-z0-9_./@%+=:,-]{0,63}$`)

// addNewWord appends the text of t if it is a new word.
func addNewWord(to *[]string, t *ast.Term, limit int) {
	text, ok := t.Value.(ast.String)
	if ok && len(*to) < limit && wordly.MatchString(string(text)) && !slices.Contains(*to, string(text)) {
		*to = append(*to, string(text))
	}
}

// inputsFor are those of a rule of the point, the shortest first. A rule that names no program is
// tried with its words, as of a table, and with some that have options.
func (g *gatherer) inputsFor(point string) (list []any) {
	programs := g.programs
	if len(programs) == 0 {
		programs = slices.Concat(g.words[:min(3, len(g.words))], []string{"go", "python3", "make"})
	}
	for _, tail := range g.wordTails() {
		for _, p := range programs {
			if len(list) == maxPerRule {
				return list
			}
			if point == module.PointExec {
				list = append(list, programStart(p, tail))
			} else {
				list = append(list, strings.Join(append([]string{p}, tail...), " "))
			}
		}
	}
	return list
}

// wordTails are the words after a program: none, each one alone, each after the first
// subcommand, and two that any program may have.
func (g *gatherer) wordTails() [][]string {
	tails := [][]string{nil}
	for _, word := range slices.Concat(g.subs, g.flags, g.words) {
		tails = append(tails, []string{word})
	}
	if len(g.subs) > 0 {
		for _, word := range slices.Concat(g.flags, g.words) {
			tails = append(tails, []string{g.subs[0], word})
		}
	}
	return append(tails, []string{"x"}, []string{"--version"})
}

// programStart is a start of program, at its usual place.
func programStart(program string, tail []string) *proposal.Exec {
	x := ordinary["exec"]().(*proposal.Exec)
	x.Path, x.Argv = program, append([]string{path.Base(program)}, tail...)
	if !path.IsAbs(program) {
		x.Path = "/usr/bin/" + program
	}
	return x
}

// exampleTexts are the commands in the examples of l, by file.
func exampleTexts(l policy.Layer) (texts []string) {
	modules := ParseModules(l)
	for _, f := range l.Files {
		if m := modules[f.Name]; m != nil && module.PackageOf(m) == module.PointCommand {
			for _, a := range m.Annotations {
				texts = append(texts, textsOf(a.Custom["match"])...)
				texts = append(texts, textsOf(a.Custom["not_match"])...)
			}
		}
	}
	return texts
}

func textsOf(list any) (texts []string) {
	items, _ := list.([]any)
	for _, item := range items {
		if s, ok := item.(string); ok {
			texts = append(texts, s)
		}
	}
	return texts
}
