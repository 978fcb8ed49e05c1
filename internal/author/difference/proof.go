// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/module"
)

// proveNotLooser says why the changed rules allow nothing new, for any input, or "".
func (o Options) proveNotLooser(changed []digested, added []Rule) string {
	replaces := o.Old.Role == policy.Grants || o.New.Role == policy.Grants
	switch {
	case replaces && (o.Old.Files == nil || o.New.Files == nil):
		return "" // the rules of the default policy change, too
	case slices.ContainsFunc(added, Rule.CanLoosen):
		return "" // what every rule is asked about changes
	case len(changed) == 0 && len(added) == 0:
		return "no rule changed"
	case len(changed) == 0:
		return "places were only added, which are allowed less"
	case !slices.ContainsFunc(changed, func(r digested) bool { return r.CanLoosen() || replaces && r.Set == "limits" }):
		return "rules that restrict were only added, and rules that allow were only removed"
	case len(added) > 0:
		return ""
	}
	return proveByEnumeration(changed)
}

// maxCombinations bounds how many values of all fields are tried.
const maxCombinations = 1 << 14

// proveByEnumeration tries all values of the fields that the changed rules read, if these have few values. It
// understands no more than comparisons of fields with constants: for other rules it proves nothing.
func proveByEnumeration(changed []digested) string {
	byPoint, names, combinations := map[string][]digested{}, map[string]bool{}, 0
	for _, r := range changed {
		object, constant := r.rule.Head.Key.Value.(ast.Object)
		if !slices.Contains([]string{"allow", "ask", "deny"}, r.Set) || !constant || !ast.IsConstant(object) ||
			r.rule.Else != nil || r.rule.Default || r.effect != changed[0].effect ||
			strings.Contains(r.effect, " "+module.KeyMode+" ") ||
			strings.Contains(r.effect, " "+module.KeyExpires+" ") {
			return ""
		}
		if r.Set == "allow" && r.In == inNew && !slices.ContainsFunc(changed, func(was digested) bool {
			return was.In == inOld && was.Set == "allow" && was.rule.Head.Key.Equal(r.rule.Head.Key)
		}) {
			return ""
		}
		byPoint[r.Point] = append(byPoint[r.Point], r)
	}
	for point, rules := range byPoint {
		values, all := map[string][]ast.Value{}, fieldValues(point)
		for _, r := range rules {
			for _, e := range r.rule.Body {
				path, _, ok := readComparison(e)
				if !ok || path != "" && all[path] == nil {
					return ""
				}
				if path != "" {
					values[path], names[path] = all[path], true
				}
			}
		}
		n := 1
		for _, list := range values {
			if n *= len(list); n > maxCombinations {
				return ""
			}
		}
		if !isNeverLooser(rules, values) {
			return ""
		}
		combinations += n
	}
	return fmt.Sprintf("the changed rules compare only %s with constants, and none of all %d combinations of values is newly allowed",
		strings.Join(slices.Sorted(maps.Keys(names)), ", "), combinations)
}

// isNeverLooser tries all combinations of values.
func isNeverLooser(rules []digested, values map[string][]ast.Value) bool {
	paths := slices.Sorted(maps.Keys(values))
	given := map[string]ast.Value{}
	var try func(int) bool
	try = func(i int) bool {
		if i < len(paths) {
			for _, v := range values[paths[i]] {
				if given[paths[i]] = v; !try(i + 1) {
					return false
				}
			}
			return true
		}
		held := map[string]bool{}
		for _, r := range rules {
			if bodyHolds(r.rule.Body, given) {
				held[r.In+" "+r.Set] = true
			}
		}
		return (!held["old deny"] || held["new deny"]) && (!held["old ask"] || held["new ask"] || held["new deny"]) &&
			(!held["new allow"] || held["old allow"])
	}
	return try(0)
}

func bodyHolds(body ast.Body, given map[string]ast.Value) bool {
	for _, e := range body {
		path, holds, _ := readComparison(e)
		if holds(given[path]) == e.Negated {
			return false
		}
	}
	return true
}

// readComparison reads a condition that compares one field with constants. The path is "" for a constant condition.
// holds does not consider not.
func readComparison(e *ast.Expr) (path string, holds func(ast.Value) bool, ok bool) {
	never := func(ast.Value) bool { return false }
	if len(e.With) > 0 {
		return "", never, false
	}
	if t, isTerm := e.Terms.(*ast.Term); isTerm {
		if b, isBool := t.Value.(ast.Boolean); isBool {
			return "", func(ast.Value) bool { return bool(b) }, true
		}
		return fieldPath(t), func(v ast.Value) bool { return v != ast.Boolean(false) }, fieldPath(t) != ""
	}
	if !e.IsCall() || len(e.Operands()) != 2 {
		return "", never, false
	}
	left, right := e.Operand(0), e.Operand(1)
	operator := e.Operator().String()
	if fieldPath(left) == "" && operator != ast.Member.Name {
		left, right = right, left
	}
	if path = fieldPath(left); path == "" || !ast.IsConstant(right.Value) {
		return "", never, false
	}
	switch operator {
	case ast.Equal.Name, ast.Equality.Name:
		return path, func(v ast.Value) bool { return v.Compare(right.Value) == 0 }, true
	case ast.NotEqual.Name:
		return path, func(v ast.Value) bool { return v.Compare(right.Value) != 0 }, true
	case ast.Member.Name:
		return path, func(v ast.Value) bool {
			found := false
			eachMember(right.Value, func(m ast.Value) { found = found || m.Compare(v) == 0 })
			return found
		}, true
	}
	return "", never, false
}

// eachMember calls do with each member of an array or a set.
func eachMember(list ast.Value, do func(ast.Value)) {
	switch list := list.(type) {
	case *ast.Array:
		list.Foreach(func(t *ast.Term) { do(t.Value) })
	case ast.Set:
		list.Foreach(func(t *ast.Term) { do(t.Value) })
	}
}

// fieldPath is the path of a field of the input, such as input.command.place, or "".
func fieldPath(t *ast.Term) string {
	ref, ok := t.Value.(ast.Ref)
	if !ok || !ref[0].Equal(ast.InputRootDocument) || len(ref) < 2 {
		return ""
	}
	path := "input"
	for _, part := range ref[1:] {
		name, ok := part.Value.(ast.String)
		if !ok {
			return ""
		}
		path += "." + string(name)
	}
	return path
}

// fieldValues are all values of those fields of the input that have few.
func fieldValues(point string) map[string][]ast.Value {
	data, err := policy.InputSchema(point)
	var schema any
	if err == nil {
		err = json.Unmarshal(data, &schema)
	}
	if err != nil {
		panic("difference: internal error: " + err.Error())
	}
	values := map[string][]ast.Value{}
	var read func(string, any)
	read = func(path string, schema any) {
		s, _ := schema.(map[string]any)
		if list, ok := s["enum"].([]any); ok {
			for _, v := range list {
				values[path] = append(values[path], ast.MustInterfaceToValue(v))
			}
		} else if s["type"] == "boolean" {
			values[path] = []ast.Value{ast.Boolean(false), ast.Boolean(true)}
		}
		properties, _ := s["properties"].(map[string]any)
		for name, below := range properties {
			read(path+"."+name, below)
		}
	}
	read("input", schema)
	return values
}
