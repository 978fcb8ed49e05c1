// SPDX-License-Identifier: Apache-2.0

package module

import (
	"slices"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
)

// A built-in that a newer OPA brings is judged by a person before policies have it.
func TestEveryBuiltinIsJudged(t *testing.T) {
	var all []string
	for _, b := range ast.CapabilitiesForThisVersion().Builtins {
		all = append(all, b.Name)
		_, gone := RemovedBuiltin(b.Name)
		kept := slices.Contains(allowed, b.Name) || slices.Contains(unhurried, b.Name)
		if gone == kept {
			t.Errorf("%s: removed is %v, allowed is %v: judge it", b.Name, gone, kept)
		}
		if kept && b.IsNondeterministic() {
			t.Errorf("%s is not repeatable", b.Name)
		}
	}
	for _, name := range slices.Concat(allowed, unhurried) {
		if !slices.Contains(all, name) {
			t.Errorf("OPA has no %s any more", name)
		}
	}
	for _, r := range removedBuiltins {
		if r.instead == "" {
			t.Errorf("%s: no word on what to do instead", r.name)
		}
	}
}

// Each decision point has what its answers need, and no more.
func TestCapabilitiesOfPoints(t *testing.T) {
	has := func(point, name string) bool {
		return slices.ContainsFunc(CapabilitiesAt(point).Builtins, func(b *ast.Builtin) bool { return b.Name == name })
	}
	for _, point := range Points() {
		c := CapabilitiesAt(point)
		if len(c.AllowNet) != 0 || c.AllowNet == nil {
			t.Errorf("%s: hosts %q", point, c.AllowNet)
		}
		for _, f := range withoutFeatures {
			if slices.Contains(c.Features, f) {
				t.Errorf("%s has %s", point, f)
			}
		}
		if slow := slices.Contains(hurried, point); has(point, "json.unmarshal") == slow || !has(point, "regex.match") || has(point, "http.send") {
			t.Errorf("%s has other built-ins than it is to", point)
		}
	}
}

func TestPlainNumber(t *testing.T) {
	for n, want := range map[string]bool{"1": true, "-1.5": true, "1e3": true, "1E+400": true, "1e-400": true, "1e401": false, "1e999999999": false, "1e0000000001": true, "1e-999999999": false} {
		if PlainNumber(n) != want {
			t.Errorf("%s: %v", n, !want)
		}
	}
}
