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

var points = []string{PointCommand, PointEgress, PointEvent, PointExec, PointOutput, PointProposal, PointSnippet,
	PointTrigger}

// sets are the rule names with a meaning at each point.
var sets = map[string][]string{
	PointCommand:  {"allow", "ask", "cache", "deny", "exec", "limits", SetOverride},
	PointEgress:   {"allow", "budget", "deny", "filter", "intercept", "many_names", "private", "raw", "redact"},
	PointEvent:    {"note"},
	PointExec:     {"allow", "ask", "deny", SetOverride},
	PointOutput:   {"deny", "redact"},
	PointProposal: {"ask", "deny", "env", "limits", "network", SetOverride, "programs"},
	PointSnippet:  {"ask", "deny", SetOverride},
	PointTrigger:  {"allow", "ask", "deny"},
}

// widening are the sets of which each member allows more.
var widening = []string{"allow", "cache", "env", "exec", "many_names", "network", SetOverride, "private", "programs",
	"raw", "redact"}

// IsWidening reports whether each member of a set allows more. Each of another set allows less, or nothing.
func IsWidening(set string) bool { return slices.Contains(widening, set) }

// CoversID reports whether the id known, which may end in a dot and then means all that begin with it, means the rule
// id.
func CoversID(known, id string) bool {
	return known == id || strings.HasSuffix(known, ".") && strings.HasPrefix(id, known)
}

// OwnPackage is the first name of every package of a layer. Data files must not use it.
const OwnPackage = "fumehood"

// Keys are the keys that the objects of a set must have, and may have.
type Keys struct{ Must, May []string }

// fieldsOf are the Keys of each set's objects.
var fieldsOf = map[string]Keys{
	"deny":    {[]string{"rule", "message", "suggestion"}, []string{"text"}},
	"ask":     {[]string{"rule", "message", "suggestion"}, []string{"text"}},
	"allow":   {[]string{"rule"}, []string{"message"}},
	"env":     {[]string{"rule", "name"}, nil},
	"network": {[]string{"rule", "host"}, nil},
	"exec":    {[]string{"rule", "kind"}, nil},
	"cache":   {[]string{"rule"}, nil},
	"note":    {[]string{"rule", "message"}, nil},

	SetOverride: {[]string{"rule", "effect"}, nil},

	"intercept":  {[]string{"rule"}, nil},
	"many_names": {[]string{"rule"}, nil},
	"private":    {[]string{"rule"}, nil},
	"raw":        {[]string{"rule"}, nil},
	"filter":     {[]string{"rule"}, nil},
	"redact":     {[]string{"rule"}, []string{"secret"}},
}

// LimitKeys are the keys of limits' objects besides rule. Their values are positive numbers, and
// whole ones except for cpus.
var LimitKeys = []string{"wall_ms", "cpus", "memory_bytes", "pids", "disk_bytes", "files", "output_bytes"}

// LimitFloors are the limits below which no command starts. A layer's limit below its floor denies.
var LimitFloors = map[string]int64{"wall_ms": 1000, "memory_bytes": 16 << 20, "pids": 8}

// PackageOf is the name of m's package, without data.
func PackageOf(m *ast.Module) string {
	return strings.TrimPrefix(m.Package.Path.String(), "data.")
}

// InLib reports whether pkg is part of the library, which the rules of all points use.
func InLib(pkg string) bool {
	return pkg == PackageLib || strings.HasPrefix(pkg, PackageLib+".")
}

// RuleName is r's name within its package.
func RuleName(r *ast.Rule) string { return string(r.Head.Ref()[0].Value.(ast.Var)) }

// Points are the names of the decision points.
func Points() []string { return slices.Clone(points) }

// Sets are the names of the sets with a meaning at point, or nil.
func Sets(point string) []string { return slices.Clone(sets[point]) }

// MemberKeys are the keys of the objects in a set. ok is false for a set with another kind
// of objects.
func MemberKeys(set string) (k Keys, ok bool) {
	k, ok = fieldsOf[set]
	return k, ok
}
