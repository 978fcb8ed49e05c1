// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/kit/document"
	"github.com/fumehood/fumehood/internal/policy/module"
)

// lintValues checks the literal values of a member. One that is not valid denies what the rule
// answers about, and a host that can never be requested grants nothing.
func (x *linter) lintValues(r *ast.Rule, set string, member ast.Object) {
	member.Foreach(func(k, v *ast.Term) {
		key, constant := k.Value.(ast.String)
		if !constant {
			return
		}
		if wrong, hint := valueProblem(set, string(key), v.Value); wrong != "" {
			x.addProblem(v.Location, Wrong, lintShape, wrong, hint)
		} else if floor, low := floorOf(set, string(key), v.Value); low {
			x.addProblem(v.Location, Wrong, lintFloor,
				fmt.Sprintf("no command runs with %s of %v: with less than %d, a run is denied", key, v.Value, floor),
				"write at least the floor; memory and disk are in bytes, time is in milliseconds")
		} else if isNumberSet(set) && key != "rule" && !isLiteral(v.Value) {
			x.addProblem(v.Location, Doubtful, lintShape,
				fmt.Sprintf("%q of %s is computed, so it is not checked here; if it is not valid, it denies what the rule is about", string(key), set),
				"write a number, or an example that has the rule answer: fumehood policy test finds an invalid one")
		}
	})
	if numbers := slices.DeleteFunc(member.Keys(),
		func(k *ast.Term) bool { return k.Equal(ast.StringTerm("rule")) }); isNumberSet(set) && len(numbers) == 0 {
		x.addProblem(r.Location, Wrong, lintShape, "a member of "+set+" without a number has no effect",
			"write "+set+" contains {\"rule\": \"…\", "+example[set]+"} if {…}")
	}
}

// example is a number of a set, to copy.
var example = map[string]string{"limits": `"wall_ms": 60000`, "budget": `"bytes": 1048576`}

func isNumberSet(set string) bool { return set == "limits" || set == "budget" }

// valueProblem says what is wrong with a value that is written in the rule.
func valueProblem(set, key string, v ast.Value) (wrong, hint string) {
	switch {
	case isNumberSet(set) && key != "rule":
		return numberProblem(set, key, v)
	case !isLiteral(v):
		return "", ""
	}
	text, ok := v.(ast.String)
	if !ok {
		return fmt.Sprintf("%s needs a string for %q", set, key), "write it in quotes"
	}
	if set == "network" && key == "host" {
		if wrong := document.InvalidHost(string(text)); wrong != "" {
			return "no proposal can request this host: " + wrong,
				`write a host such as "example.com", "*.example.com", "example.com:8080" or "192.0.2.1:443", or "registry:npm"`
		}
	}
	return "", ""
}

// floorOf is the floor of a limit, and whether a literal is below it.
func floorOf(set, key string, v ast.Value) (floor int64, low bool) {
	floor, known := module.LimitFloors[key]
	n, ok := v.(ast.Number)
	if set != "limits" || !known || !ok {
		return 0, false
	}
	f, err := json.Number(n).Float64()
	return floor, err == nil && f < float64(floor)
}

func numberProblem(set, key string, v ast.Value) (wrong, hint string) {
	keys := module.LimitKeys
	if set == "budget" {
		keys = []string{"bytes"}
	}
	if !slices.Contains(keys, key) {
		return fmt.Sprintf("%s must not have the key %q, or it denies what it is about", set, key),
			module.SuggestName(key, append([]string{"rule"}, keys...))
	}
	if !isLiteral(v) {
		return "", ""
	}
	if n, ok := v.(ast.Number); ok {
		f, err := json.Number(n).Float64()
		if err == nil && f > 0 && (key == "cpus" || f >= 1 && f == float64(int64(f))) {
			return "", ""
		}
	}
	unit := "a positive whole number"
	switch {
	case key == "cpus":
		unit = "a positive number"
	case strings.HasSuffix(key, "_ms"):
		unit += " of milliseconds"
	case strings.HasSuffix(key, "bytes"):
		unit += " of bytes"
	}
	return fmt.Sprintf("%s needs %s for %q, not %v", set, unit, key, v), "write a number without quotes and unit"
}

func isLiteral(v ast.Value) bool {
	switch v.(type) {
	case ast.String, ast.Number, ast.Boolean, ast.Null, *ast.Array, ast.Set, ast.Object:
		return true
	}
	return false
}
