// SPDX-License-Identifier: Apache-2.0

package module

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// A Place is the place of a rule.
type Place struct {
	Layer string
	File  string // within the layer
	Row   int
}

// RuleAt is the place of r in its layer, or false if r makes no member of a set with a
// meaning.
func RuleAt(layer string, r *ast.Rule) (Place, bool) {
	if r.Module == nil || r.Location == nil || r.Head.RuleKind() != ast.MultiValue {
		return Place{}, false
	}
	name, _ := WrittenSet(RuleName(r))
	if name == "programs" || !slices.Contains(sets[PackageOf(r.Module)], name) {
		return Place{}, false
	}
	return Place{layer, r.Location.File, r.Location.Row}, true
}

// A Listener receives OPA's trace events and calls Held with each rule that held.
type Listener struct {
	Layer string
	Set   string // only rules of this set; "" for all
	Held  func(Place)
}

// Enabled, Config and TraceEvent implement OPA's interface.
func (l Listener) Enabled() bool               { return l.Held != nil }
func (l Listener) Config() topdown.TraceConfig { return topdown.TraceConfig{} }
func (l Listener) TraceEvent(e topdown.Event) {
	if r, ok := e.Node.(*ast.Rule); ok && e.Op == topdown.ExitOp && l.isListenedTo(RuleName(r)) {
		if at, ok := RuleAt(l.Layer, r); ok {
			l.Held(at)
		}
	}
}

func (l Listener) isListenedTo(set string) bool {
	written, _ := WrittenSet(set)
	return l.Set == "" || l.Set == written
}
