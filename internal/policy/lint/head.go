// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/policy/module"
)

// titled are the sets whose rules are shown to people.
var titled = []string{"allow", "ask", "deny", "note"}

// ruleID matches a rule's id: a group, a dot and a name.
var ruleID = pattern.New(`^[a-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)+$`)

// An idDeclarations is what the layer's rules with one id declare.
type idDeclarations struct {
	titles   map[string]*ast.Location
	examples bool
	untitled *ast.Rule            // the first without a title of its own
	bare     *ast.Rule            // the first about commands without examples of its own
	uses     map[string]*ast.Rule // by point and set, the first rule
	program  *ast.Rule            // the first that denies a program by name, unless it is only about texts
	starts   bool                 // one denies programs when they start
}

// lintHeads checks ids, titles, suggestions and examples of rules.
func (x *linter) lintHeads() {
	ids := map[string]*idDeclarations{}
	for _, name := range slices.Sorted(maps.Keys(x.Modules)) {
		m := x.Modules[name]
		for _, r := range m.Rules {
			if slices.Contains(module.Sets(module.PackageOf(m)), module.RuleName(r)) && r.Head.Key != nil {
				x.lintHead(m, r, ids)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		x.lintRulesOfID(id, ids[id])
	}
}

// lintRulesOfID reports problems of all rules of one id together.
func (x *linter) lintRulesOfID(id string, s *idDeclarations) {
	titles := slices.Sorted(maps.Keys(s.titles))
	if len(titles) == 0 && s.untitled != nil {
		x.addProblem(s.untitled.Location, Wrong, lintTitle, fmt.Sprintf("the rule %q has no title", id),
			"write above it: # METADATA and # title: what it does")
	}
	if len(titles) > 1 {
		x.addProblem(s.titles[titles[1]], Wrong, lintID,
			fmt.Sprintf("the id %q has two titles: %q and %q", id, titles[0], titles[1]),
			"give each rule its own id, or use one title")
	}
	if s.program != nil && !s.starts {
		x.addProblem(s.program.Location, Doubtful, lintStart,
			fmt.Sprintf("the rule %q denies a program in a text, and not one that the repository's own code starts, as make and npm test do", id),
			`deny it in fumehood.exec, too: deny contains {"rule": "`+id+
				`", …} if input.tool == "name"; or write text_only: true in its METADATA's custom`)
	}
	if s.bare != nil && !s.examples {
		x.addProblem(s.bare.Location, Doubtful, lintExamples,
			fmt.Sprintf("the rule %q about commands has no examples", id),
			"write in its METADATA: # custom: {rule: "+id+
				", match: [\"a command\"], not_match: [\"another\"]}; fumehood policy test runs them")
	}
}

func (x *linter) lintHead(m *ast.Module, r *ast.Rule, ids map[string]*idDeclarations) {
	set := module.RuleName(r)
	if x.lintMemberShape(r, set) {
		return
	}
	about := ruleAnnotation(r)
	id, constant := writtenID(r)
	if metadata := customRule(about); metadata != "" {
		if constant && id != "" && id != metadata {
			x.addProblem(r.Location, Wrong, lintID,
				fmt.Sprintf("the rule's id is %q in METADATA and %q in its answer", metadata, id), "use one id")
		}
		id = metadata
	} else if !constant {
		if about == nil && slices.Contains(titled, set) {
			x.addProblem(r.Location, Wrong, lintTitle, "a rule without a literal id needs METADATA",
				"write above it: # METADATA, # title: and # custom: {rule: the id, or the prefix of the ids}")
		}
		return
	}
	if !ruleID.MatchString(strings.TrimSuffix(id, ".")+".x") || !strings.Contains(id, ".") {
		x.idProblem(r, set, id)
		return
	}
	s := ids[id]
	if s == nil {
		s = &idDeclarations{titles: map[string]*ast.Location{}, uses: map[string]*ast.Rule{}}
		ids[id] = s
	}
	s.recordRule(module.PackageOf(m), r, about)
	x.findSharedID(s, m, r, id)
	if set == "deny" {
		x.hearStart(s, m, r, about)
	}
	x.findMissingSuggestion(r)
}

// findSharedID finds an id of two rules that do not answer the same, and one that the shipped policy uses:
// a reason with it does not say which rule it is of.
func (x *linter) findSharedID(s *idDeclarations, m *ast.Module, r *ast.Rule, id string) {
	set, point := module.RuleName(r), module.PackageOf(m)
	if !slices.Contains(titled, set) {
		return
	}
	if x.Taken[id] {
		x.addProblem(r.Location, Wrong, lintID, fmt.Sprintf("the id %q is of a rule of the shipped policy", id),
			"use another one, such as org."+id[strings.IndexByte(id, '.')+1:])
	}
	for _, other := range titled {
		first := s.uses[point+"."+other]
		if first == nil || other == set && haveOneMessage(first, r) {
			continue
		}
		what := "and another message"
		if other != set {
			what = "and is in the set " + other
		}
		x.addProblem(r.Location, Wrong, lintID,
			fmt.Sprintf("the id %q is also of the rule at %s:%d, which has another condition %s", id,
				first.Location.File, first.Location.Row, what), "give each rule its own id")
		return
	}
	if s.uses[point+"."+set] == nil {
		s.uses[point+"."+set] = r
	}
}

// haveOneMessage reports whether two rules say the same, as two bodies of one rule do, or compute it.
func haveOneMessage(a, b *ast.Rule) bool {
	return slices.Equal(literalMessage(a), literalMessage(b)) || literalMessage(a) == nil || literalMessage(b) == nil
}

func literalMessage(r *ast.Rule) []string {
	object, ok := r.Head.Key.Value.(ast.Object)
	if !ok {
		return nil
	}
	t := object.Get(ast.StringTerm("message"))
	if t == nil || !ast.IsConstant(t.Value) {
		return nil
	}
	return []string{t.String()}
}

// lintMemberShape finds members that are never valid answers: such an answer denies what it is about. It
// reports whether r's member is not an object.
func (x *linter) lintMemberShape(r *ast.Rule, set string) bool {
	if set == "programs" {
		return false
	}
	takes, known := module.MemberKeys(set)
	if !known {
		takes.Must = []string{"rule"}
	}
	keys := slices.Concat(takes.Must, takes.May)
	object, ok := r.Head.Key.Value.(ast.Object)
	if !ok && isLiteral(r.Head.Key.Value) {
		x.addProblem(r.Location, Wrong, lintShape,
			fmt.Sprintf("a member of %s must be an object, or it denies what it is about", set),
			"write "+set+" contains "+shapeOf(takes.Must)+" if {…}")
		return true
	}
	if !ok {
		return false
	}
	x.lintValues(r, set, object)
	for _, k := range object.Keys() {
		name, constant := k.Value.(ast.String)
		if known && constant && !slices.Contains(keys, string(name)) {
			x.addProblem(k.Location, Wrong, lintShape,
				fmt.Sprintf("%s must not have the key %q, or it denies what it is about", set, string(name)),
				module.SuggestName(string(name), keys))
		}
	}
	return false
}

// shapeOf is an object with these keys, to copy.
func shapeOf(keys []string) string {
	var pairs []string
	for _, k := range keys {
		pairs = append(pairs, fmt.Sprintf(`"%s": "…"`, k))
	}
	return "{" + strings.Join(pairs, ", ") + "}"
}

func (x *linter) idProblem(r *ast.Rule, set, id string) {
	switch {
	case id == "" && set == "limits":
	case id == "":
		x.addProblem(r.Location, Wrong, lintID, "a rule of "+set+" without an id",
			`write {"rule": "group.name", …}: reports and logs name it`)
	default:
		x.addProblem(r.Location, Wrong, lintID, fmt.Sprintf("%q is not a valid rule id", id),
			"write a group, a dot and a name, such as org.no-curl: letters, digits, - and _")
	}
}

// recordRule records what one rule declares.
func (s *idDeclarations) recordRule(pkg string, r *ast.Rule, about *ast.Annotations) {
	if !slices.Contains(titled, module.RuleName(r)) {
		return
	}
	if about != nil && about.Title != "" {
		s.titles[about.Title] = about.Location
	} else if s.untitled == nil {
		s.untitled = r
	}
	if about != nil && (about.Custom["match"] != nil || about.Custom["not_match"] != nil ||
		about.Custom["reaches"] != nil || about.Custom["not_reaches"] != nil) {
		s.examples = true
	} else if s.bare == nil && pkg == module.PointCommand {
		s.bare = r
	}
}

// hearStart records whether r denies a program by name in a command, or when it starts.
func (x *linter) hearStart(s *idDeclarations, m *ast.Module, r *ast.Rule, about *ast.Annotations) {
	switch module.PackageOf(m) {
	case module.PointExec:
		s.starts = true
	case module.PointCommand:
		if s.program == nil && !x.textOnly(about) && x.namesProgram(m, r, map[string]bool{}) {
			s.program = r
		}
	}
}

// textOnly reports whether a rule's METADATA, or that of the package fumehood.command, says that what is
// denied in a text may be started by other programs.
func (x *linter) textOnly(about *ast.Annotations) bool {
	if about != nil && about.Custom[module.KeyTextOnly] == true {
		return true
	}
	for _, m := range x.Modules {
		for _, a := range m.Annotations {
			if a.Scope == "package" && module.PackageOf(m) == module.PointCommand &&
				a.Custom[module.KeyTextOnly] == true {
				return true
			}
		}
	}
	return false
}

// namesProgram reports whether r, or a rule that it uses, is about the name of a command's program.
func (x *linter) namesProgram(m *ast.Module, r *ast.Rule, seen map[string]bool) (names bool) {
	names = module.NamesProgram(r)
	for _, e := range r.Body {
		x.graph.Walk(m, e, func(t module.Target) {
			if seen[t.Rule] {
				return
			}
			seen[t.Rule] = true
			for _, in := range x.graph.Rules[t.Rule] {
				names = names || x.namesProgram(in.Module, in.Rule, seen)
			}
		})
	}
	return names
}

// CollectIDs adds the literal ids of the layer's rules that are shown to people.
func (l Layer) CollectIDs(ids map[string]bool) {
	for _, m := range l.Modules {
		for _, r := range m.Rules {
			if id, ok := writtenIDOf(r); ok && slices.Contains(titled, module.RuleName(r)) {
				ids[id] = true
			}
		}
	}
}

// IDOf is the id of r in its METADATA, or else the literal one in its answer, or "".
func IDOf(r *ast.Rule) string {
	if id := customRule(ruleAnnotation(r)); id != "" {
		return id
	}
	id, _ := writtenIDOf(r)
	return id
}

// writtenIDOf is writtenID for any rule.
func writtenIDOf(r *ast.Rule) (id string, constant bool) {
	if r.Head.Key == nil {
		return "", false
	}
	return writtenID(r)
}

// writtenID is the literal id in r's answer: in an object, or the first argument of a
// function that makes one.
func writtenID(r *ast.Rule) (id string, constant bool) {
	switch v := r.Head.Key.Value.(type) {
	case ast.Object:
		t := v.Get(ast.StringTerm("rule"))
		if t == nil {
			return "", true
		}
		text, ok := t.Value.(ast.String)
		return string(text), ok
	case ast.Call:
		if len(v) > 1 {
			text, ok := v[1].Value.(ast.String)
			return string(text), ok && strings.Contains(string(text), ".")
		}
	}
	return "", false
}

// findMissingSuggestion finds denials without a message or a suggestion, which are not valid answers.
func (x *linter) findMissingSuggestion(r *ast.Rule) {
	object, ok := r.Head.Key.Value.(ast.Object)
	if !ok {
		return
	}
	takes, _ := module.MemberKeys(module.RuleName(r))
	for _, key := range takes.Must {
		t := object.Get(ast.StringTerm(key))
		if key != "rule" && (t == nil || t.Equal(ast.StringTerm(""))) {
			x.addProblem(r.Location, Wrong, lintSuggestion,
				fmt.Sprintf("%s needs %s, or it denies what it is about", module.RuleName(r), key), help[key])
		}
	}
}

var help = map[string]string{
	"message":    `write "message": what is wrong`,
	"suggestion": `write "suggestion": what to do instead`,
}

// ruleAnnotation is r's own METADATA.
func ruleAnnotation(r *ast.Rule) *ast.Annotations {
	for _, a := range r.Annotations {
		if a.Scope == "rule" || a.Scope == "document" {
			return a
		}
	}
	return nil
}

func customRule(a *ast.Annotations) string {
	if a == nil {
		return ""
	}
	id, _ := a.Custom["rule"].(string)
	return id
}
