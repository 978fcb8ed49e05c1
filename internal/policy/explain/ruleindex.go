// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"path"
	"slices"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/module"
)

// A ruleIndex has the METADATA of one layer's rules. A file is read when it is needed: a
// run without denials needs none.
type ruleIndex struct {
	layer policy.LoadedLayer
	mu    sync.Mutex
	files map[string][]definition
}

// A definition is one rule of a set with a meaning.
type definition struct {
	layer   policy.LoadedLayer
	point   string
	set     string
	id      string // ends in a dot if the rule has several
	title   string
	file    string
	row     int
	match   []string
	rule    *ast.Rule // as written, not compiled
	imports []*ast.Import
}

func newRuleIndex(l policy.LoadedLayer) *ruleIndex {
	return &ruleIndex{layer: l, files: map[string][]definition{}}
}

// definitionsIn returns the definitions in the files that interest selects.
func (b *ruleIndex) definitionsIn(interest func(policy.File) bool) []definition {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []definition
	for _, f := range b.layer.Files {
		if path.Ext(f.Name) != ".rego" || !f.Decides() || !interest(f) {
			continue
		}
		found, read := b.files[f.Name]
		if !read {
			found = b.readDefinitions(f)
			b.files[f.Name] = found
		}
		all = append(all, found...)
	}
	return all
}

// readDefinitions reads one file, which has compiled. Invalid METADATA is ignored: policy check
// reports it.
func (b *ruleIndex) readDefinitions(f policy.File) []definition {
	m, err := module.Parse(b.layer.Name, f.Name, f.Content, true)
	if err != nil {
		if m, err = module.Parse(b.layer.Name, f.Name, f.Content, false); err != nil {
			return nil
		}
	}
	point := module.PackageOf(m)
	last := map[string]definition{}
	var found []definition
	for _, r := range m.Rules {
		if !slices.Contains(module.Sets(point), module.RuleName(r)) {
			continue
		}
		d := definition{layer: b.layer, point: point, set: module.RuleName(r), id: idOf(r), file: f.Name,
			row: r.Location.Row, rule: r, imports: m.Imports}
		d.setAnnotations(r.Annotations)
		if before, ok := last[d.set+d.id]; ok && d.title == "" && len(r.Annotations) == 0 {
			d.title, d.match = before.title, before.match // a further body
		}
		last[d.set+d.id] = d
		found = append(found, d)
	}
	return found
}

func (d *definition) setAnnotations(list []*ast.Annotations) {
	for _, a := range list {
		d.title = a.Title
		if id, ok := a.Custom["rule"].(string); ok && id != "" {
			d.id = id
		}
		d.match = stringMembers(a.Custom["match"])
	}
}

// stringMembers are the members of v that are strings; other points have objects as examples.
func stringMembers(v any) []string {
	list, _ := v.([]any)
	var all []string
	for _, item := range list {
		if s, ok := item.(string); ok {
			all = append(all, s)
		}
	}
	return all
}

var plainID = pattern.New(`^[a-z0-9_-]+(\.[a-z0-9_-]+)+$`)

// idOf finds the id in a rule's head: the value of "rule", or the first argument of a
// function that makes the member.
func idOf(r *ast.Rule) string {
	if r.Head.Key == nil {
		return ""
	}
	id := ""
	ast.WalkTerms(r.Head.Key, func(t *ast.Term) bool {
		if s, ok := t.Value.(ast.String); ok && id == "" && plainID.MatchString(string(s)) {
			id = string(s)
		}
		return id != ""
	})
	return id
}

// allFiles selects all files.
func allFiles(policy.File) bool { return true }
