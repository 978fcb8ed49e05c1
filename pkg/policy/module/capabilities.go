// SPDX-License-Identifier: Apache-2.0

package module

import (
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
)

// removedBuiltins are the built-ins that policies may not use, by name or by
// prefix, each with what to do instead. Besides these, every built-in that OPA
// calls non-deterministic is removed.
//
// bits.lsh, regex.globs_match and graph.reachable_paths are here because a deadline does not stop
// them; the rest reach the network, the host, the clock or chance, or build code.
var removedBuiltins = []struct{ name, instead string }{
	{"http.send", "policies have no network: put what the rule needs into the policy folder"},
	{"net.lookup_ip_addr", "policies have no network: compare names, or use net.cidr_contains"},
	{"opa.runtime", "policies do not see the host or its environment: use input"},
	{"rand.", "policies are repeatable: use input"},
	{"uuid.", "policies are repeatable: use input"},
	{"time.now_ns", "policies are repeatable: the time is not an input of decisions"},
	{"io.jwt.", "tokens are not judged here: use input"},
	{"crypto.x509.", "certificates are not judged here: use input"},
	{"json.match_schema", "the input's schema is already checked when the policy compiles"},
	{"json.verify_schema", "the input's schema is already checked when the policy compiles"},
	{"trace", "use print in a test"},
	{"rego.", "policies do not build policies: write the rule"},
	{"providers.aws.", "policies have no network and no credentials"},
	{"bits.lsh", "a deadline does not stop it: write the number"},
	{"graph.reachable_paths", "a deadline does not stop it: use graph.reachable"},
	{"walk", "input is flat: name the field"},
	{"graphql.", "its parser knows no bounds, and no input holds GraphQL"},
	{"yaml.", "a few aliases stand for gigabytes, and no input holds YAML: use a data file"},
	{"json.patch", "its copies grow without bound: build the object"},
	{"json.marshal_with_options", "use json.marshal"},
	{"regex.globs_match", "its time doubles with each character: use glob.match"},
	{"strings.render_template", "a template is a program: use sprintf or concat"},
	{"crypto.parse_private_keys", "keys are not judged here: use input"},
	{"all", instead2016}, {"any", instead2016}, {"re_match", "use regex.match"}, {"set_diff", "use a - b"},
	{"net.cidr_overlap", "use net.cidr_intersects"}, {"cast_array", instead2016}, {"cast_boolean", instead2016},
	{"cast_null", instead2016}, {"cast_object", instead2016}, {"cast_set", instead2016}, {"cast_string", instead2016},
	{"fumehood.", "it is there for tests, in files that end in _test.rego: use input"},
}

const instead2016 = "it is of an older Rego: write every, some or is_… instead"

// Capabilities are what a policy may use of OPA, in a copy.
func Capabilities() *ast.Capabilities {
	c := *capabilities()
	c.Builtins = slices.Clone(c.Builtins)
	return &c
}

// capabilities are what policies may use at some point, and what they are read with.
var capabilities = sync.OnceValue(func() *ast.Capabilities { return capable(slices.Concat(allowed, unhurried)) })

var hurriedCapabilities = sync.OnceValue(func() *ast.Capabilities { return capable(allowed) })

// CapabilitiesAt are what policies may use at point.
func CapabilitiesAt(point string) *ast.Capabilities {
	if slices.Contains(hurried, point) {
		return hurriedCapabilities()
	}
	return capabilities()
}

// withoutFeatures are features of Rego that policies have not: a later version, whose
// meaning nobody judged.
var withoutFeatures = []string{ast.FeatureRegoV2, ast.FeatureRegoV2Import}

func capable(names []string) *ast.Capabilities {
	boundBuiltins()
	c := ast.CapabilitiesForThisVersion()
	c.Builtins = slices.DeleteFunc(slices.Clone(c.Builtins), func(b *ast.Builtin) bool { return !slices.Contains(names, b.Name) })
	c.Features = slices.DeleteFunc(slices.Clone(c.Features), func(f string) bool { return slices.Contains(withoutFeatures, f) })
	c.AllowNet = []string{}
	return c
}

// Removed says whether OPA's built-in name is removed, and what to do instead.
func Removed(name string) (string, bool) {
	for _, r := range removedBuiltins {
		if name == r.name || strings.HasSuffix(r.name, ".") && strings.HasPrefix(name, r.name) {
			return r.instead, true
		}
	}
	if slices.Contains(nondeterministic(), name) {
		return "policies are repeatable: use input", true
	}
	return "", false
}

var nondeterministic = sync.OnceValue(func() []string {
	var names []string
	for _, b := range ast.CapabilitiesForThisVersion().Builtins {
		if b.IsNondeterministic() {
			names = append(names, b.Name)
		}
	}
	return names
})

// BuiltinNames are the built-ins that policies may use.
var BuiltinNames = sync.OnceValue(func() []string {
	var names []string
	for _, b := range capabilities().Builtins {
		names = append(names, b.Name)
	}
	return names
})
