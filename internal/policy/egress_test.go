// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// plainEgress is what the shipped policy lets pass: a connection for TLS to the one
// host that was granted.
func plainEgress() proposal.Egress {
	return proposal.Egress{
		Command: "t", Phase: proposal.PhaseRun, Kind: points.EgressConnect, Name: "api.example.com", Type: "A", Address: "192.0.2.10", Port: 443,
		Protocol: "tcp", Grants: []string{"api.example.com"},
	}
}

func pass(t testing.TB, e *policy.Engine, x proposal.Egress) proposal.EgressDecision {
	t.Helper()
	d, err := e.Egress(t.Context(), x)
	if err != nil {
		t.Fatalf("cannot decide %+v: %v", x, err)
	}
	return d
}

// A step is a change of the plain one.
type step func(*proposal.Egress)

func lookup(name, of string, grants ...string) step {
	return func(x *proposal.Egress) {
		x.Kind, x.Name, x.Type, x.Grants, x.Address, x.Port, x.Protocol = points.EgressLookup, name, of, grants, "", 0, "udp"
	}
}

func connect(name, address string, port int, grants ...string) step {
	return func(x *proposal.Egress) { x.Name, x.Address, x.Port, x.Grants = name, address, port, grants }
}

func hello(name, sni string, grants ...string) step {
	return func(x *proposal.Egress) {
		x.Kind, x.Protocol, x.Name, x.SNI, x.Grants = points.EgressHello, "tls", name, sni, grants
	}
}

func request(method, path string, more ...step) step {
	return func(x *proposal.Egress) {
		x.Kind, x.Protocol, x.Method, x.Path = points.EgressRequest, "https", method, path
		for _, change := range more {
			change(x)
		}
	}
}

func of(registry string) step {
	return func(x *proposal.Egress) {
		x.Name, x.Registries, x.Grants = "mirror.example", []string{registry}, []string{"registry:" + registry}
	}
}

// TestEgressMatrix holds what passes and what does not, by the rule that counts.
func TestEgressMatrix(t *testing.T) {
	e := shipped(t)
	const api = "api.example.com"
	for name, c := range map[string]struct {
		step step
		rule string // "" passes
	}{
		"granted":                     {func(*proposal.Egress) {}, ""},
		"set-up":                      {func(x *proposal.Egress) { x.Phase = proposal.PhaseSetup }, ""},
		"lookup":                      {lookup(api, "A", api), ""},
		"lookup of IPv6":              {lookup(api, "AAAA", api), ""},
		"lookup of text":              {lookup(api, "TXT", api), "egress.type"},
		"lookup of a service":         {lookup(api, "HTTPS", api), "egress.type"},
		"lookup of another":           {lookup("evil.example", "A", api), "egress.host"},
		"lookup of a name above":      {lookup("example.com", "A", api), "egress.host"},
		"lookup of a name below":      {lookup("x."+api, "A", api), "egress.host"},
		"lookup of a lookalike":       {lookup("xapi.example.com", "A", api), "egress.host"},
		"lookup with capitals":        {lookup("API.example.com", "A", api), "floor.egress"},
		"lookup of nothing":           {lookup("", "A", api), "floor.egress"},
		"lookup of an address":        {lookup("192.0.2.10", "A", "192.0.2.10"), "floor.egress"},
		"wildcard":                    {lookup("a.b.example.com", "A", "*.example.com"), ""},
		"wildcard, itself":            {lookup("example.com", "A", "*.example.com"), "egress.host"},
		"wildcard, lookalike":         {lookup("evilexample.com", "A", "*.example.com"), "egress.host"},
		"wildcard, tunnel":            {lookup(strings.Repeat("a", 49)+".example.com", "A", "*.example.com"), "egress.long-name"},
		"wildcard, tunnel in parts":   {lookup("a.b.c.d.example.com", "A", "*.example.com"), "egress.long-name"},
		"wildcard, metadata":          {lookup("metadata.google.internal", "A", "*.google.internal"), "egress.local"},
		"wildcard, resolver":          {lookup("mozilla.cloudflare-dns.com", "A", "*.cloudflare-dns.com"), "egress.resolver"},
		"exact, resolver":             {lookup("dns.google", "A", "dns.google"), ""},
		"exact, inner name":           {lookup("git.corp.internal", "A", "git.corp.internal"), ""},
		"no grant":                    {lookup(api, "A"), "egress.host"},
		"odd grants":                  {lookup(api, "A", "*", "*.", "", "api.example.com:", "api.example.com:0", "api.example.com:x", "registry:npm", "API.example.com"), "egress.host"},
		"plain HTTP":                  {connect(api, "192.0.2.10", 80, api), ""},
		"ssh":                         {connect(api, "192.0.2.10", 22, api), "egress.port"},
		"ssh, granted":                {connect(api, "192.0.2.10", 22, api+":22"), ""},
		"TLS, but ssh granted":        {connect(api, "192.0.2.10", 443, api+":22"), "egress.port"},
		"raw address":                 {connect("", "192.0.2.10", 443, api), "egress.address"},
		"raw address, granted":        {connect("", "192.0.2.10", 443, "192.0.2.10"), ""},
		"raw address in IPv6 clothes": {connect("", "::ffff:192.0.2.10", 443, "192.0.2.10"), ""},
		"raw address, port granted":   {connect("", "192.0.2.10", 5432, "192.0.2.10:5432"), ""},
		"raw address, other port":     {connect("", "192.0.2.10", 5433, "192.0.2.10:5432"), "egress.address"},
		"raw IPv6":                    {connect("", "2001:db8::1", 443, "[2001:db8::1]:443"), ""},
		"raw metadata":                {connect("", "169.254.169.254", 80, api), "egress.address"},
		"an address as a name":        {connect("evil.example", "192.0.2.10", 443, "192.0.2.10"), "egress.host"},
		"no address":                  {connect("", "", 443, api), "floor.egress"},
		"unresolved":                  {connect(api, "", 443, api), ""},
		"unresolved, with port":       {connect(api, "", 8443, api+":8443"), ""},
		"unresolved, other port":      {connect(api, "", 8443, api), "egress.unresolved"},
		"unresolved, below a suffix":  {connect(api, "", 443, "*.example.com"), "egress.unresolved"},
		"hello, unresolved":           {func(x *proposal.Egress) { hello(api, api, api)(x); x.Address = "" }, ""},
		"no port":                     {connect(api, "192.0.2.10", 0, api), "floor.egress"},
		"hello":                       {hello(api, api, api), ""},
		"hello for another":           {hello(api, "evil.example", api), "egress.mismatch"},
		"hello without a name":        {hello(api, "", api), "egress.mismatch"},
		"hello to an address":         {hello("", "", "192.0.2.10"), ""},
		"hello to an address, named":  {hello("", api, "192.0.2.10", api), "egress.mismatch"},
		"request":                     {request("POST", "/v1/x"), ""},
		"request without method":      {request("", "/v1/x"), "floor.egress"},
		"request without path":        {request("GET", ""), "floor.egress"},
		"request to the proxy":        {request("GET", "http://evil.example/"), "floor.egress"},
		"request with a secret": {request("POST", "/", func(x *proposal.Egress) {
			x.Secrets = []proposal.EgressSecret{{Rule: "aws-access-token", Where: "body"}}
		}),
			"egress.secret"},
		"request in another's TLS": {request("GET", "/", func(x *proposal.Egress) { x.SNI = "evil.example" }), "egress.mismatch"},
		"request in its TLS":       {request("GET", "/", func(x *proposal.Egress) { x.SNI = api }), ""},
		"request, plain on 443":    {request("GET", "/", func(x *proposal.Egress) { x.Protocol = "http" }), "egress.port"},
		"request, gopher":          {request("GET", "/", func(x *proposal.Egress) { x.Protocol = "gopher" }), "floor.egress"},
		"registry":                 {func(x *proposal.Egress) { of("npm")(x); x.Port = 4873 }, ""},
		"registry, lookup":         {func(x *proposal.Egress) { lookup("", "A")(x); of("npm")(x) }, ""},
		"registry, read":           {request("GET", "/left-pad", of("npm")), ""},
		"registry, head":           {request("HEAD", "/left-pad", of("npm")), ""},
		"registry, publish":        {request("PUT", "/left-pad", of("npm")), "egress.registry-method"},
		"registry, upload":         {request("POST", "/legacy/", of("pypi")), "egress.registry-method"},
		"registry, token":          {request("GET", "/-/npm/v1/tokens", of("npm")), "egress.publish"},
		"registry, crate":          {request("PUT", "/api/v1/crates/new", of("crates")), "egress.publish"},
		"registry, gem":            {request("POST", "/api/v1/gems", of("rubygems")), "egress.publish"},
		"registry, module":         {request("GET", "/example.com/m/@v/v1.0.0.zip", of("go")), ""},
		"registry, gist":           {request("GET", "/somebody/0123456789abcdef", of("github-releases")), "egress.no-rule"},
		"registry, release":        {request("GET", "/cli/cli/releases/latest", of("github-releases")), ""},
		"registry, not seen":       {func(x *proposal.Egress) { hello("mirror.example", "mirror.example")(x); of("npm")(x) }, "egress.registry-hidden"},
		"registry, other path":     {request("GET", "/x", func(x *proposal.Egress) { of("npm")(x); x.Registries = nil }), "egress.host"},
		"datagram":                 {func(x *proposal.Egress) { x.Kind, x.Protocol = points.EgressDatagram, "udp" }, "egress.datagram"},
		"datagram of nothing": {func(x *proposal.Egress) {
			*x = proposal.Egress{Command: "t", Phase: "run", Kind: "datagram", Grants: x.Grants}
		}, "egress.datagram"},
		"QUIC to a granted host":   {func(x *proposal.Egress) { x.Protocol = "udp" }, "floor.egress"},
		"unknown kind":             {func(x *proposal.Egress) { x.Kind = "tunnel" }, "floor.egress"},
		"no kind":                  {func(x *proposal.Egress) { x.Kind = "" }, "floor.egress"},
		"no command":               {func(x *proposal.Egress) { x.Command = "" }, "floor.egress"},
		"no phase":                 {func(x *proposal.Egress) { x.Phase = "" }, "floor.egress"},
		"nothing":                  {func(x *proposal.Egress) { *x = proposal.Egress{} }, "floor.egress"},
		"grants of a registry set": {func(x *proposal.Egress) { x.Grants = nil; x.Registries = []string{"npm"} }, "egress.none"},
	} {
		t.Run(name, func(t *testing.T) {
			x := plainEgress()
			c.step(&x)
			d := pass(t, e, x)
			if diff := cmp.Diff(d, pass(t, e, x)); diff != "" {
				t.Errorf("asked again: %s", diff) // the gateway uses what is allowed again
			}
			if want := c.rule == ""; want != (d.Effect == proposal.Allow) || want != (d.Reason == nil) {
				t.Fatalf("%+v of %+v, want rule %q", d, x, c.rule)
			}
			if d.Reason == nil {
				return
			}
			if !slices.Contains(d.Rules, c.rule) || d.Reason.Message == "" || d.Reason.Suggestion == "" {
				t.Errorf("%v %+v, want rule %q", d.Rules, d.Reason, c.rule)
			}
			d.Effect, d.Rules, d.Reason = 0, nil, nil
			if !cmp.Equal(d, proposal.EgressDecision{}) {
				t.Errorf("a refusal gives something: %+v", d)
			}
		})
	}
}

// TestEgressGives holds what comes with a connection.
func TestEgressGives(t *testing.T) {
	e := shipped(t)
	const most = 64 * proposal.MiB
	for name, c := range map[string]struct {
		step step
		want proposal.EgressDecision
	}{
		"TLS":                 {func(*proposal.Egress) {}, proposal.EgressDecision{Filter: true, Most: most}},
		"HTTP":                {connect("api.example.com", "192.0.2.10", 80, "api.example.com"), proposal.EgressDecision{Filter: true, Most: most}},
		"port":                {connect("api.example.com", "192.0.2.10", 22, "api.example.com:22"), proposal.EgressDecision{Filter: true, Raw: true, Most: most}},
		"port 443":            {connect("api.example.com", "192.0.2.10", 443, "api.example.com:443"), proposal.EgressDecision{Filter: true, Most: most}},
		"address":             {connect("", "10.0.0.7", 5432, "10.0.0.7:5432"), proposal.EgressDecision{Filter: true, Raw: true, Private: true, Most: most}},
		"lookup":              {lookup("api.example.com", "A", "api.example.com"), proposal.EgressDecision{}},
		"registry":            {of("npm"), proposal.EgressDecision{Intercept: true, Private: true, Most: most}},
		"registry, odd port":  {func(x *proposal.Egress) { of("npm")(x); x.Port = 4873 }, proposal.EgressDecision{Intercept: true, Private: true, Most: most}},
		"registry and a port": {func(x *proposal.Egress) { of("npm")(x); x.Port, x.Grants = 4873, append(x.Grants, x.Name+":4873") }, proposal.EgressDecision{Intercept: true, Private: true, Most: most}},
		"registry, lookup":    {func(x *proposal.Egress) { lookup("", "A")(x); of("npm")(x) }, proposal.EgressDecision{Private: true}},
	} {
		x := plainEgress()
		c.step(&x)
		got := pass(t, e, x)
		if got.Effect != proposal.Allow {
			t.Errorf("%s: %+v", name, got)
		}
		got.Effect, got.Rules, got.Reason = 0, nil, nil
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestEgressFirm holds that the denials of layers beside the granting one are firm, unless they
// are only observed, and that those of the granting one and of the floor are not.
func TestEgressFirm(t *testing.T) {
	const rego = egressHead + `deny contains {"rule": "own.never", "message": "never", "suggestion": "none"} if input.name == "evil.example"`
	at := func(role policy.Role) policy.Layer {
		return policy.Layer{Name: "own", Role: role, Files: []policy.File{{Name: "a.rego", Content: []byte(rego)}}}
	}
	for name, c := range map[string]struct {
		o    policy.Options
		host string
		want bool
	}{
		"organization":    {policy.Options{Layers: []policy.Layer{at(policy.Allows)}}, "evil.example", true},
		"policy":          {policy.Options{Layers: []policy.Layer{at(policy.Restricts)}}, "evil.example", true},
		"policy on trial": {policy.Options{Layers: []policy.Layer{at(policy.Restricts)}, Observe: true}, "evil.example", false},
		"granting":        {policy.Options{Layers: []policy.Layer{at(policy.Grants)}}, "evil.example", false},
		"another host":    {policy.Options{Layers: []policy.Layer{at(policy.Allows)}}, "other.example", false},
		"no layer":        {policy.Options{}, "evil.example", false},
		"hosts":           {policy.Options{Layers: []policy.Layer{at(policy.Opens)}}, "evil.example", true},
	} {
		e, err := policy.New(t.Context(), c.o)
		if err != nil {
			t.Fatal(err)
		}
		x := plainEgress()
		x.Name, x.Grants = c.host, nil
		d := pass(t, e, x)
		if d.Effect != proposal.Deny || (d.Firm != nil) != c.want || c.want && d.Firm.Rule != "own.never" {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

const egressHead = "package fumehood.egress\n\n"

// TestEgressStops holds that a late answer is an error.
func TestEgressStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d, err := shipped(t).Egress(ctx, plainEgress()); codeOf(err) != "policy.deadline" || d.Effect != proposal.Deny {
		t.Errorf("%+v %v", d, err)
	}
	for name, c := range map[string]struct{ rego, code string }{
		"bomb":             {`deny contains {"rule": "x", "message": "m", "suggestion": "s"} if { some a in numbers.range(1, 100000); some b in numbers.range(1, 100000); a * b == 0 }`, "policy.deadline"},
		"builtin error":    {`deny contains {"rule": "x", "message": "m", "suggestion": "s"} if to_number(input.name) > 3`, "policy.eval"},
		"unknown key":      {`intercept contains {"rule": "x", "host": "y"} if true`, "policy.malformed"},
		"budget of text":   {`budget contains {"rule": "x", "bytes": "many"} if true`, "policy.malformed"},
		"budget of none":   {`budget contains {"rule": "x", "bytes": 0} if true`, "policy.malformed"},
		"budget, no rule":  {`budget contains {"bytes": 5} if true`, "policy.malformed"},
		"budget of a part": {`budget contains {"rule": "x", "bytes": 1.5} if true`, "policy.malformed"},
	} {
		e := hurried(t, folder(t, "a.rego", egressHead+c.rego))
		if d, err := e.Egress(t.Context(), plainEgress()); failure(err, d.Rules) != c.code || d.Effect != proposal.Deny {
			t.Errorf("%s: %+v %v, want %s", name, d, err, c.code)
		}
	}
	for name, rego := range map[string]string{
		"field": `deny contains {"rule": "x", "message": "m", "suggestion": "s"} if input.host == "x"`,
		"type":  `deny contains {"rule": "x", "message": "m", "suggestion": "s"} if input.port == "443"`,
		"set":   `ask contains {"rule": "x", "message": "m", "suggestion": "s"} if true`,
	} {
		if _, err := policy.New(t.Context(), policy.Options{Layers: layersOf(t, policy.Restricts, folder(t, "a.rego", egressHead+rego))}); err == nil {
			t.Errorf("%s: the policy compiles", name)
		}
	}
}

// BenchmarkEgress is the part that policy may take of a connection: below 60 µs.
func BenchmarkEgress(b *testing.B) {
	e := shipped(b)
	many := plainEgress()
	many.Grants = nil
	for _, c := range "abcdefghijklmnopqrst" {
		many.Grants = append(many.Grants, string(c)+".example.org", "*."+string(c)+".example.net")
	}
	many.Grants = append(many.Grants, many.Name)
	for name, change := range map[string]step{
		"lookup": lookup("api.example.com", "A", "api.example.com"), "connect": func(*proposal.Egress) {}, "hello": hello("api.example.com", "api.example.com", "api.example.com"),
		"registry": request("GET", "/example.com/m/@v/v1.0.0.zip", of("go")), "refused": lookup("evil.example", "A", "api.example.com"),
		"41 grants": func(x *proposal.Egress) { *x = many },
	} {
		b.Run(name, func(b *testing.B) {
			x := plainEgress()
			change(&x)
			var took []time.Duration
			for b.Loop() {
				start := time.Now()
				if d, err := e.Egress(b.Context(), x); err != nil || (d.Effect == proposal.Allow) == (name == "refused") {
					b.Fatal(d, err)
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}
