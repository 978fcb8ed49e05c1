// SPDX-License-Identifier: Apache-2.0

package module

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

// The keys of METADATA's custom that say how a rule, or each rule of a package, counts, and until when.
const (
	KeyMode  = "mode"
	KeyUntil = "until"
)

// The modes. An observed rule has no effect; what it would refuse is recorded. A rule enforces without a
// mode, and from the day that KeyUntil names.
const (
	ModeObserve = "observe"
	ModeEnforce = "enforce"
)

// observable are the sets whose members can be recorded in place of having an effect. In a package that
// is observed, the rules of other sets have no effect: its grants would apply without its denials.
var observable = []string{"ask", "deny", "limits"}

// IsObservable reports whether rules of a set can be observed one by one.
func IsObservable(set string) bool { return slices.Contains(observable, set) }

// observed begins the name of a set of observed rules. It cannot be written in Rego.
const observed = "observed:"

// ObservedSet is the set that has the observed rules of set.
func ObservedSet(set string) string { return observed + set }

// WrittenSet is the set in which a rule is written, and whether the rule is observed.
func WrittenSet(set string) (written string, isObserved bool) {
	return strings.CutPrefix(set, observed)
}

// ModeOf is the mode that a says, and the start of the day, in UTC, from which on its rules enforce. valid
// is false for METADATA without a mode, with another one, or without a date; nothing is observed then.
func ModeOf(a *ast.Annotations) (mode string, until time.Time, valid bool) {
	mode, _ = a.Custom[KeyMode].(string)
	until = dateOf(a.Custom[KeyUntil])
	return mode, until, mode == ModeEnforce && a.Custom[KeyUntil] == nil || mode == ModeObserve && !until.IsZero()
}

// isObservedAt reports whether one of list has the scope and observes at now.
func isObservedAt(list []*ast.Annotations, scope string, now time.Time) bool {
	return slices.ContainsFunc(list, func(a *ast.Annotations) bool {
		mode, until, valid := ModeOf(a)
		return a.Scope == scope && valid && mode == ModeObserve && now.Before(until)
	})
}

// IsObservedPackage reports whether a module of pkg says that the package is observed at now.
func IsObservedPackage(modules map[string]*ast.Module, pkg string, now time.Time) bool {
	for _, m := range modules {
		if PackageOf(m) == pkg && isObservedAt(m.Annotations, "package", now) {
			return true
		}
	}
	return false
}

// ObserveRules makes the rules in modules that are observed at now members of ObservedSet, and returns
// these sets by package, and the rules. The names of the written sets remain, so that others may refer to
// them. The modules must be parsed with METADATA.
func ObserveRules(modules map[string]*ast.Module, now time.Time) (map[string][]string, []*ast.Rule) {
	observedSets, rules := map[string][]string{}, []*ast.Rule{}
	for _, m := range modules {
		pkg := PackageOf(m)
		all, further := IsObservedPackage(modules, pkg, now), false
		for i, r := range slices.Clone(m.Rules) {
			set := RuleName(r)
			isFurther := i > 0 && strings.HasPrefix(string(r.Location.Text), "{") // a body of the rule before
			further = isFurther && further || isObservedAt(r.Annotations, "rule", now)
			if !all && !further || !slices.Contains(sets[pkg], set) || set == "note" || set == "programs" {
				continue
			}
			if IsObservable(set) {
				m.Rules = append(m.Rules, observedCopy(r, set))
				rules = append(rules, r)
				if !slices.Contains(observedSets[pkg], set) {
					observedSets[pkg] = append(observedSets[pkg], set)
				}
			}
			disableBody(r)
		}
	}
	return observedSets, rules
}

func observedCopy(r *ast.Rule, set string) *ast.Rule {
	c := r.Copy()
	c.Annotations = nil
	name := ast.VarTerm(ObservedSet(set)).SetLocation(r.Location)
	c.Head.SetRef(append(ast.Ref{name}, r.Head.Ref()[1:]...))
	c.Head.Name = ast.Var(ObservedSet(set))
	return c
}

// ObservedNames are the observed rules, by id, and packages, by the date until which they are observed.
func ObservedNames(
	modules map[string]*ast.Module, now time.Time, idOf func(*ast.Rule) string,
) map[string][]string {
	names := map[string][]string{}
	add := func(list []*ast.Annotations, scope, name string) {
		for _, a := range list {
			if _, until, _ := ModeOf(a); isObservedAt([]*ast.Annotations{a}, scope, now) {
				date := until.Format(time.DateOnly)
				names[date] = append(names[date], name)
			}
		}
	}
	for _, m := range modules {
		add(m.Annotations, "package", "package "+PackageOf(m))
		for _, r := range m.Rules {
			add(r.Annotations, "rule", cmp.Or(idOf(r), RuleName(r)))
		}
	}
	for date, list := range names {
		slices.Sort(list)
		names[date] = slices.Compact(list)
	}
	return names
}
