// SPDX-License-Identifier: Apache-2.0

package policy

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
// bits.lsh and graph.reachable_paths are here because a deadline does not stop
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
	{"fumehood.", "it is there for tests, in files that end in _test.rego: use input"},
}

var capabilities = sync.OnceValue(func() *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion()
	kept := make([]*ast.Builtin, 0, len(c.Builtins))
	for _, b := range c.Builtins {
		if _, gone := removed(b.Name); !gone {
			kept = append(kept, b)
		}
	}
	c.Builtins = kept
	c.AllowNet = []string{}
	return c
})

// removed says whether OPA's built-in name is removed, and what to do instead.
func removed(name string) (string, bool) {
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

var builtinNames = sync.OnceValue(func() []string {
	var names []string
	for _, b := range capabilities().Builtins {
		names = append(names, b.Name)
	}
	return names
})
