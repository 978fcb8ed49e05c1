// SPDX-License-Identifier: Apache-2.0

package module

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// SetOverride is the set of rules that take the effect of a rule of the shipped policy, or ask in its place.
const SetOverride = "override"

// The keys of METADATA's custom about overrides: the digest of the shipped rule that an override was written
// for, and on a shipped rule, that no override is possible.
const (
	KeyDigest = "digest"
	KeyFloor  = "floor"
)

// Floor takes the place of a digest for rules that no override may name.
const Floor = "floor"

// An Override is a rule of SetOverride. Its texts are "" where METADATA or its head has none.
type Override struct {
	Point  string
	ID     string // of the shipped rule
	Effect string // what applies in its place: "allow" or "ask"
	Digest string
	Exception
}

// Place is the file and line of o.
func (o Override) Place() string {
	return fmt.Sprintf("%s:%d", o.Rule.Location.File, o.Rule.Location.Row)
}

func markKey(point, id string) string { return point + " " + id }

// Overrides are the rules of m that override. m must be parsed with METADATA.
func Overrides(m *ast.Module) (all []Override) {
	for _, r := range m.Rules {
		if RuleName(r) != SetOverride || !slices.Contains(Sets(PackageOf(m)), SetOverride) {
			continue
		}
		o := Override{Point: PackageOf(m), ID: literalKey(r, "rule"), Effect: literalKey(r, "effect"),
			Exception: Exception{Rule: r}}
		for _, a := range r.Annotations {
			if a.Scope == "rule" {
				o.Exception = exceptionOf(r, a)
				o.Digest, _ = a.Custom[KeyDigest].(string)
			}
		}
		all = append(all, o)
	}
	return all
}

// literalKey is the constant of a key in the member of r, if the member is an object of two keys.
func literalKey(r *ast.Rule, key string) string {
	if r.Head.Key == nil {
		return ""
	}
	object, ok := r.Head.Key.Value.(ast.Object)
	if !ok || object.Len() != 2 {
		return ""
	}
	if t := object.Get(ast.StringTerm(key)); t != nil {
		return stringOf(t)
	}
	return ""
}

// Disable makes o, a rule of m, hold never.
func (o Override) Disable(m *ast.Module) { o.disableRule(m) }

// Mark adds to the member of o where it is, which no author can write.
func (o Override) Mark() {
	object, _ := o.Rule.Head.Key.Value.(ast.Object)
	object.Insert(ast.StringTerm("at"), ast.StringTerm(o.Place()))
}

// MarkRules returns, by point and id, a digest of each rule that denies or asks, and of all rules that it
// reaches; or Floor.
func MarkRules(modules map[string]*ast.Module, idOf func(*ast.Rule) string) map[string]string {
	graph, texts, floors := NewGraph(modules), map[string]map[*ast.Rule]string{}, map[string]bool{}
	for _, m := range modules {
		point := PackageOf(m)
		for _, r := range m.Rules {
			if set := RuleName(r); Sets(point) == nil || set != "deny" && set != "ask" {
				continue
			}
			key := markKey(point, idOf(r))
			if idOf(r) == "" {
				continue
			}
			if texts[key] == nil {
				texts[key] = map[*ast.Rule]string{}
			}
			graph.collectTexts(m, r, texts[key])
			floors[key] = floors[key] || IsFloor(m, r)
		}
	}
	marks := map[string]string{}
	for key, all := range texts {
		if marks[key] = digestTexts(all); floors[key] {
			marks[key] = Floor
		}
	}
	return marks
}

// DigestRule is a digest of r, a rule of m, and of all rules that it reaches. Comments and METADATA do not count.
func (a *Graph) DigestRule(m *ast.Module, r *ast.Rule) string {
	texts := map[*ast.Rule]string{}
	a.collectTexts(m, r, texts)
	return digestTexts(texts)
}

func digestTexts(texts map[*ast.Rule]string) string {
	all := slices.Compact(slices.Sorted(maps.Values(texts)))
	sum := sha256.Sum256([]byte(strings.Join(all, "\x00")))
	return hex.EncodeToString(sum[:])[:12]
}

// collectTexts adds the texts of r and of all rules that it reaches, each with what its file imports.
func (a *Graph) collectTexts(m *ast.Module, r *ast.Rule, texts map[*ast.Rule]string) {
	if texts[r] != "" {
		return
	}
	texts[r] = fmt.Sprint(a.Packages[m], m.Imports, r)
	a.Walk(m, r, func(t Target) {
		for _, reached := range a.Rules[t.Rule] {
			a.collectTexts(reached.Module, reached.Rule, texts)
		}
		if !t.All {
			return
		}
		for _, rules := range a.Rules {
			for _, reached := range rules {
				a.collectTexts(reached.Module, reached.Rule, texts)
			}
		}
	})
}

// IsFloor reports whether no override may name r, a rule of the shipped policy: its METADATA says so, or its point has
// no overrides.
func IsFloor(m *ast.Module, r *ast.Rule) bool {
	set, says := RuleName(r), func(a *ast.Annotations) bool { return a.Custom[KeyFloor] == true }
	return (set == "deny" || set == "ask") &&
		(!slices.Contains(Sets(PackageOf(m)), SetOverride) || slices.ContainsFunc(r.Annotations, says))
}

// MarkOf is the mark of an id at a point, and the points that have the id. An id below one that ends in a dot has the
// mark of that.
func MarkOf(marks map[string]string, point, id string) (mark string, elsewhere []string) {
	longest := ""
	for key, m := range marks {
		at, known, _ := strings.Cut(key, " ")
		switch {
		case !CoversID(known, id):
		case at != point:
			elsewhere = append(elsewhere, at)
		case len(known) > len(longest):
			mark, longest = m, known
		}
	}
	slices.Sort(elsewhere)
	return mark, elsewhere
}

// MarkedIDs are the ids of a point.
func MarkedIDs(marks map[string]string, point string) (ids []string) {
	for key := range marks {
		if at, id, _ := strings.Cut(key, " "); at == point {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
