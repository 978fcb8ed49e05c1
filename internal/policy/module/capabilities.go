// SPDX-License-Identifier: Apache-2.0

package module

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"
)

// removedBuiltins are the built-ins that policies must not use, by name or by prefix, each
// with an alternative. Besides these, every built-in that OPA calls non-deterministic is
// removed.
//
// bits.lsh, regex.globs_match and graph.reachable_paths are removed because a deadline does
// not stop them. The others reach the network, the host, the clock or random numbers, or
// build code.
var removedBuiltins = []struct{ name, instead string }{
	{"http.send", "put the data into the policy directory: policies have no network"},
	{"net.lookup_ip_addr", "compare names, or use net.cidr_contains: policies have no network"},
	{"opa.runtime", "use input: policies cannot see the host or its environment"},
	{"rand.", "use input: policies must be repeatable"},
	{"uuid.", "use input: policies must be repeatable"},
	{"time.now_ns", "use input.context.started: policies must be repeatable"},
	{"io.jwt.", "use input: policies do not verify tokens"},
	{"crypto.x509.", "use input: policies do not verify certificates"},
	{"json.match_schema", "remove it: the compiler already checks the input's schema"},
	{"json.verify_schema", "remove it: the compiler already checks the input's schema"},
	{"trace", "use print in a test"},
	{"rego.", "write the rule: policies must not build policies"},
	{"providers.aws.", "remove it: policies have no network and no credentials"},
	{"bits.lsh", "write the number: a deadline does not stop bits.lsh"},
	{"graph.reachable_paths", "use graph.reachable: a deadline does not stop graph.reachable_paths"},
	{"walk", "name the field: input is flat"},
	{"graphql.", "remove it: its parser has no limits, and no input contains GraphQL"},
	{"yaml.", "use a data file: a few YAML aliases expand to gigabytes"},
	{"json.patch", "build the object: json.patch copies without limit"},
	{"json.marshal_with_options", "use json.marshal"},
	{"regex.globs_match", "use glob.match: the time of regex.globs_match doubles with each character"},
	{"strings.render_template", "use sprintf or concat: a template is a program"},
	{"crypto.parse_private_keys", "use input: policies do not read keys"},
	{"all", instead2016}, {"any", instead2016}, {"re_match", "use regex.match"}, {"set_diff", "use a - b"},
	{"net.cidr_overlap", "use net.cidr_intersects"}, {"cast_array", instead2016}, {"cast_boolean", instead2016},
	{"cast_null", instead2016}, {"cast_object", instead2016}, {"cast_set", instead2016}, {"cast_string", instead2016},
	{"fumehood.", "use input: this is only for tests, in files that end in _test.rego"},
}

const instead2016 = "write every, some or is_…: this is from an older version of Rego"

// Capabilities are a copy of the OPA capabilities that policies may use.
func Capabilities() *ast.Capabilities {
	c := *capabilities()
	c.Builtins = slices.Clone(c.Builtins)
	return &c
}

// The built-ins that only tests have; see package trial. Those that end in _with have two
// arguments: OPA's functions have no optional ones.
const (
	BuiltinParse      = "fumehood.parse"
	BuiltinDecide     = "fumehood.decide"
	BuiltinParseWith  = "fumehood.parse_with"
	BuiltinDecideWith = "fumehood.decide_with"
)

// EditorCapabilities are the Capabilities with the built-ins for tests, as JSON for
// `opa --capabilities` and editors. OPA can check what uses those, but cannot run it.
func EditorCapabilities() ([]byte, error) {
	c := Capabilities()
	options := types.NewObject(nil, types.NewDynamicProperty(types.S, types.A))
	for _, name := range []string{BuiltinDecide, BuiltinParse} {
		c.Builtins = append(c.Builtins, &ast.Builtin{Name: name, Decl: types.NewFunction(types.Args(types.S), types.A)})
	}
	for _, name := range []string{BuiltinDecideWith, BuiltinParseWith} {
		c.Builtins = append(c.Builtins,
			&ast.Builtin{Name: name, Decl: types.NewFunction(types.Args(types.S, options), types.A)})
	}
	data, err := json.Marshal(c)
	return append(data, '\n'), err
}

// capabilities are those that policies may use at any point. Policies are parsed with them.
var capabilities = sync.OnceValue(func() *ast.Capabilities { return capabilitiesOf(slices.Concat(allowed, unhurried)) })

var hurriedCapabilities = sync.OnceValue(func() *ast.Capabilities { return capabilitiesOf(allowed) })

// CapabilitiesAt are the capabilities that policies may use at point.
func CapabilitiesAt(point string) *ast.Capabilities {
	if slices.Contains(hurried, point) {
		return hurriedCapabilities()
	}
	return capabilities()
}

// withoutFeatures are features of Rego that policies must not use: a later version, which
// was not reviewed.
var withoutFeatures = []string{ast.FeatureRegoV2, ast.FeatureRegoV2Import}

func capabilitiesOf(names []string) *ast.Capabilities {
	boundBuiltins()
	c := ast.CapabilitiesForThisVersion()
	c.Builtins = slices.DeleteFunc(slices.Clone(c.Builtins),
		func(b *ast.Builtin) bool { return !slices.Contains(names, b.Name) })
	c.Features = slices.DeleteFunc(slices.Clone(c.Features),
		func(f string) bool { return slices.Contains(withoutFeatures, f) })
	c.AllowNet = []string{}
	return c
}

// RemovedBuiltin reports whether OPA's built-in name is removed, and what to use instead.
func RemovedBuiltin(name string) (string, bool) {
	for _, r := range removedBuiltins {
		if name == r.name || strings.HasSuffix(r.name, ".") && strings.HasPrefix(name, r.name) {
			return r.instead, true
		}
	}
	if slices.Contains(nondeterministic(), name) {
		return "use input: policies must be repeatable", true
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
