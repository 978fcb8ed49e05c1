// SPDX-License-Identifier: Apache-2.0

package module

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// A Place is where a rule stands.
type Place struct {
	Layer string
	File  string // within the layer
	Row   int
}

// RuleAt says where r stands in its layer, or false where r gives no member of a set
// that means something.
func RuleAt(layer string, r *ast.Rule) (Place, bool) {
	if r.Module == nil || r.Location == nil || r.Head.RuleKind() != ast.MultiValue {
		return Place{}, false
	}
	name := RuleName(r)
	if name == "programs" || !slices.Contains(sets[PackageOf(r.Module)], name) {
		return Place{}, false
	}
	return Place{layer, r.Location.File, r.Location.Row}, true
}

// A Listener is told by OPA what is evaluated, and tells which rules held.
type Listener struct {
	Layer string
	Held  func(Place)
}

// Enabled, Config and TraceEvent are OPA's.
func (l Listener) Enabled() bool               { return l.Held != nil }
func (l Listener) Config() topdown.TraceConfig { return topdown.TraceConfig{} }
func (l Listener) TraceEvent(e topdown.Event) {
	if r, ok := e.Node.(*ast.Rule); ok && e.Op == topdown.ExitOp {
		if at, ok := RuleAt(l.Layer, r); ok {
			l.Held(at)
		}
	}
}
