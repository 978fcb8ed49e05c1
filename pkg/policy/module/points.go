// SPDX-License-Identifier: Apache-2.0

package module

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// The decision points of this version.
const (
	PointCommand  = "fumehood.command"
	PointEgress   = "fumehood.egress"
	PointEvent    = "fumehood.event"
	PointExec     = "fumehood.exec"
	PointOutput   = "fumehood.output"
	PointProposal = "fumehood.proposal"
	PointSnippet  = "fumehood.snippet"
	PointTrigger  = "fumehood.trigger"
	PackageLib    = "fumehood.lib"
)

var points = []string{PointCommand, PointEgress, PointEvent, PointExec, PointOutput, PointProposal, PointSnippet, PointTrigger}

// sets are the rule names with a meaning, and at which points they have it.
var sets = map[string][]string{
	PointCommand:  {"allow", "ask", "deny", "exec", "limits"},
	PointEgress:   {"allow", "budget", "deny", "filter", "intercept", "private", "raw", "redact"},
	PointEvent:    {"note"},
	PointExec:     {"allow", "ask", "deny"},
	PointOutput:   {"deny", "redact"},
	PointProposal: {"ask", "deny", "env", "limits", "network", "programs"},
	PointSnippet:  {"ask", "deny"},
	PointTrigger:  {"allow", "ask", "deny"},
}

// OwnPackage is the first name of every package of a layer, and of none of its data.
const OwnPackage = "fumehood"

// A Keys names those that the objects of a set must have, and may have.
type Keys struct{ Must, May []string }

// fieldsOf are the keys each set's objects must have, and may have.
var fieldsOf = map[string]Keys{
	"deny":    {[]string{"rule", "message", "suggestion"}, []string{"text"}},
	"ask":     {[]string{"rule", "message", "suggestion"}, []string{"text"}},
	"allow":   {[]string{"rule"}, []string{"message"}},
	"env":     {[]string{"rule", "name"}, nil},
	"network": {[]string{"rule", "host"}, nil},
	"exec":    {[]string{"rule", "kind"}, nil},
	"note":    {[]string{"rule", "message"}, nil},

	"intercept": {[]string{"rule"}, nil},
	"private":   {[]string{"rule"}, nil},
	"raw":       {[]string{"rule"}, nil},
	"filter":    {[]string{"rule"}, nil},
	"redact":    {[]string{"rule"}, []string{"secret"}},
}

// PackageOf is the name of m's package, without data.
func PackageOf(m *ast.Module) string {
	return strings.TrimPrefix(m.Package.Path.String(), "data.")
}

// InLib reports whether pkg is the library, which holds rules for those of the points.
func InLib(pkg string) bool {
	return pkg == PackageLib || strings.HasPrefix(pkg, PackageLib+".")
}

// RuleName is r's name within its package.
func RuleName(r *ast.Rule) string { return string(r.Head.Ref()[0].Value.(ast.Var)) }

// Points are the names of the decision points.
func Points() []string { return slices.Clone(points) }

// Sets are the names of the sets that mean something at point, or nil.
func Sets(point string) []string { return slices.Clone(sets[point]) }

// MemberKeys are the keys of the objects in a set. ok is false for one whose objects are read
// otherwise.
func MemberKeys(set string) (k Keys, ok bool) {
	k, ok = fieldsOf[set]
	return k, ok
}
