// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/shell/parse"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	exampleRegistries = "../../policies/examples/registries"
	exampleHosts      = "../../policies/examples/hosts"
)

// opening is an engine of the shipped policy and directories that may grant hosts.
func opening(t testing.TB, observe bool, dirs ...string) *policy.Engine {
	t.Helper()
	layers := layersOf(t, policy.Opens, dirs...)
	if observe { // another policy; the first is in force
		layers = append(layers, layersOf(t, policy.Restricts, folder(t, "observed.rego",
			`package fumehood.command

deny contains {"rule": "observed.any", "message": "m", "suggestion": "s"} if input.command.program == "no-such-tool"
`))...)
	}
	e, err := policy.New(t.Context(), policy.Options{Layers: layers, Observe: observe})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func judged(t testing.TB, e *policy.Engine, p proposal.Proposal) proposal.Decision {
	t.Helper()
	p.ID = "t"
	d, err := e.Decide(t.Context(), p, parse.Analyze(p))
	if err != nil {
		t.Fatalf("cannot decide %+v: %v", p, err)
	}
	return d
}

// TestHostsAreGranted holds who may grant hosts, and what a grant says.
func TestHostsAreGranted(t *testing.T) {
	lanetest.SkipShort(t)
	asks := func(phase string, network ...string) proposal.Proposal {
		return proposal.Proposal{Run: "npm ci", Phase: phase, Network: network}
	}
	for name, c := range map[string]struct {
		p    proposal.Proposal
		want proposal.Effect
	}{
		"set-up":               {asks("setup", "registry:npm"), proposal.Allow},
		"set-up, several":      {asks("setup", "registry:npm", "registry:go", "files.example.com"), proposal.Allow},
		"run":                  {asks("run", "registry:npm"), proposal.Deny},
		"phase left out":       {asks("", "registry:npm"), proposal.Deny},
		"one that is not":      {asks("setup", "registry:npm", "evil.example"), proposal.Deny},
		"host of another":      {asks("setup", "api.example.com"), proposal.Deny},
		"host":                 {asks("run", "api.example.com"), proposal.Allow},
		"host with port":       {asks("run", "api.example.com:443"), proposal.Deny},
		"wildcard, letters":    {asks("setup", "*.cdn.example.com"), proposal.Allow},
		"wildcard, what fits":  {asks("setup", "x.cdn.example.com"), proposal.Deny},
		"wildcard, wider":      {asks("setup", "*.example.com"), proposal.Deny},
		"nothing":              {asks("setup"), proposal.Allow},
		"unknown registry":     {asks("setup", "registry:docker"), proposal.Deny},
		"command that may not": {proposal.Proposal{Run: "eval $x", Phase: "setup", Network: []string{"registry:npm"}}, proposal.Deny},
	} {
		t.Run(name, func(t *testing.T) {
			for _, observe := range []bool{false, true} {
				d := judged(t, opening(t, observe, exampleRegistries, exampleHosts), c.p)
				if d.Effect != c.want {
					t.Fatalf("%v by %v, want %v (observe: %v)", d.Effect, d.Rules, c.want, observe)
				}
				if d.Effect == proposal.Allow && !granted(d.Grant, c.p) {
					t.Errorf("grant %+v", d.Grant)
				}
			}
			if d := judged(t, shipped(t), c.p); len(c.p.Network) > 0 && (d.Effect != proposal.Deny || !slices.Contains(d.Rules, "network.none") || d.Grant != nil) {
				t.Errorf("the shipped policy alone: %+v", d)
			}
			other, err := policy.New(t.Context(), policy.Options{Layers: layersOf(t, policy.Restricts, exampleRegistries, exampleHosts)})
			if err != nil {
				t.Fatal(err)
			}
			d := judged(t, other, c.p)
			if len(c.p.Network) > 0 && d.Effect != proposal.Deny {
				t.Errorf("a folder that may not grant hosts: %+v", d)
			}
			if c.want == proposal.Allow && len(c.p.Network) > 0 && len(other.Warnings()) == 0 {
				t.Error("no warning that a grant is ignored")
			}
		})
	}
}

func granted(g *proposal.Grant, p proposal.Proposal) bool {
	phase := proposal.PhaseRun
	if p.Phase == proposal.PhaseSetup {
		phase = proposal.PhaseSetup
	}
	return g.Phase == phase && slices.Equal(g.Network, p.Network) && slices.Contains(g.Exec, "network") == (len(p.Network) > 0)
}

// A refusal says what a policy would have to say: the file compiles, and grants the host.
func TestNetworkRefusalHelps(t *testing.T) {
	d := judged(t, shipped(t), proposal.Proposal{Run: "curl https://x.example", Network: []string{"x.example", "registry:npm"}})
	var hosts []string
	for _, r := range d.Reasons {
		if r.Rule == "network.none" {
			hosts = append(hosts, r.Text)
			_, advised, found := strings.Cut(r.Suggestion, "network: policy): ")
			head, rule, two := strings.Cut(advised, ", and below it ")
			if !found || !two {
				t.Fatalf("%+v", r)
			}
			dir := folder(t, "hosts.rego", head+"\n"+rule+"\n")
			asks := proposal.Proposal{Run: "npm ci", Phase: proposal.PhaseSetup, Network: []string{r.Text}}
			if d := judged(t, opening(t, false, dir), asks); d.Effect != proposal.Allow {
				t.Errorf("%s: %+v", advised, d.Reasons)
			}
		}
	}
	if !slices.Equal(hosts, []string{"x.example", "registry:npm"}) {
		t.Errorf("said of %q: %+v", hosts, d.Reasons)
	}
}

// TestOpeningLayers holds what a directory that may grant hosts can and cannot do.
func TestOpeningLayers(t *testing.T) {
	all := folder(t, "p.rego", "package fumehood.proposal\n\nnetwork contains {\"rule\": \"x\", \"host\": h} if some h in input.proposal.network\n\nenv contains {\"rule\": \"x\", \"name\": \"MINE_PATH\"}\n",
		"c.rego", "package fumehood.command\n\nallow contains {\"rule\": \"mine.all\"} if true\n\nexec contains {\"rule\": \"mine.built\", \"kind\": \"built\"}\n",
		"e.rego", egressHead+`allow contains {"rule": "mine.all"} if true

deny contains {"rule": "mine.kiosk", "message": "m", "suggestion": "s"} if input.name == "kiosk.example"
`)
	for _, observe := range []bool{false, true} {
		e := opening(t, observe, all)
		if d := judged(t, e, proposal.Proposal{Run: "sudo ls"}); d.Effect != proposal.Deny {
			t.Errorf("it allowed a command: %+v", d)
		}
		if d := judged(t, e, proposal.Proposal{Run: "no-such-program x"}); d.Effect != proposal.Deny || !slices.Contains(d.Rules, "default.no-rule") {
			t.Errorf("it allowed a command that no other rule is about: %+v", d)
		}
		if d := judged(t, e, proposal.Proposal{Run: "cat x", Env: map[string]string{"MINE_PATH": "1"}}); d.Effect != proposal.Deny {
			t.Errorf("it let a variable in: %+v", d)
		}
		if d := judged(t, e, proposal.Proposal{Run: "cat x"}); d.Grant == nil || len(d.Grant.Exec) != 0 {
			t.Errorf("it let a command start what it builds: %+v", d)
		}
		x := plainEgress()
		lookup("evil.example", "A", "api.example.com")(&x)
		if d := pass(t, e, x); d.Effect != proposal.Deny {
			t.Errorf("it allowed a host that was not granted: %+v", d)
		}
		lookup("kiosk.example", "A", "kiosk.example")(&x)
		if d := pass(t, e, x); d.Effect != proposal.Deny || !slices.Contains(d.Rules, "mine.kiosk") {
			t.Errorf("its grants hold and its denials do not (observe: %v): %+v", observe, d)
		}
	}
	two := append(layersOf(t, policy.Grants, all), layersOf(t, policy.Grants, all)...)
	if _, err := policy.New(t.Context(), policy.Options{Layers: two}); codeOf(err) != "policy.missing" {
		t.Errorf("two layers that grant: %v", err)
	}
	if opening(t, false, all).Digest() == with(t, all).Digest() {
		t.Error("what may grant hosts has the digest of what may not")
	}
}

// TestWebSocketIsOptIn holds that a request opens a WebSocket only where a rule says so for requests,
// intercepted or not, and never to a registry.
func TestWebSocketIsOptIn(t *testing.T) {
	socket := folder(t, "a.rego", egressHead+`intercept contains {"rule": "s.i"} if true

raw contains {"rule": "s.r"} if {
	input.kind == "request"
	input.path == "/socket"
}
`)
	for name, test := range map[string]struct {
		engine *policy.Engine
		step   step
		want   bool
	}{
		"rule":       {opening(t, false, socket), request("GET", "/socket"), true},
		"other path": {opening(t, false, socket), request("GET", "/"), false},
		"no rule":    {shipped(t), request("GET", "/socket"), false},
		"no right":   {with(t, socket), request("GET", "/socket"), false},
		"connection": {opening(t, false, socket), func(x *proposal.Egress) {}, false},
		"registry":   {opening(t, false, socket), func(x *proposal.Egress) { request("GET", "/socket")(x); x.Registries = []string{"npm"} }, false},
	} {
		x := plainEgress()
		test.step(&x)
		if d := pass(t, test.engine, x); d.Effect != proposal.Allow || d.Raw != test.want {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// TestEgressLayers holds what layers add to the answer.
func TestEgressLayers(t *testing.T) {
	strict := folder(t, "a.rego", egressHead+`intercept contains {"rule": "s.i"} if true

filter contains {"rule": "s.f"} if true

budget contains {"rule": "s.b", "bytes": 1000} if true

raw contains {"rule": "s.r"} if true

private contains {"rule": "s.p"} if true

redact contains {"rule": "s.d"} if true

allow contains {"rule": "s.a"} if true
`)
	secret := func(x *proposal.Egress) {
		request("POST", "/")(x)
		x.Secrets = []proposal.EgressSecret{{Rule: "aws-access-token", Where: "body"}}
	}
	x := plainEgress()
	plain := with(t, strict)
	if d := pass(t, plain, x); !d.Intercept || !d.Filter || d.Most != 1000 || d.Raw || d.Private {
		t.Errorf("a layer that may not grant: %+v", d)
	}
	secret(&x)
	if d := pass(t, plain, x); d.Effect != proposal.Deny || d.Redact {
		t.Errorf("a layer that may not grant lets secrets be redacted: %+v", d)
	}
	if w := unlinted(plain); len(w) != 4 {
		t.Errorf("warnings %q", w)
	}
	open := opening(t, false, strict)
	if d := pass(t, open, x); d.Effect != proposal.Allow || !d.Redact {
		t.Errorf("a layer that may grant hosts does not redact: %+v", d)
	}
	if d := pass(t, open, plainEgress()); !d.Private || d.Raw || !d.Intercept || d.Redact {
		t.Errorf("a layer that may grant hosts: %+v", d)
	}
	seen := observing(t, strict)
	if d := pass(t, seen, plainEgress()); d.Intercept || d.Most == 1000 || d.Observed {
		t.Errorf("an observed layer: %+v", d)
	}
	denying := observing(t, folder(t, "a.rego", egressHead+`deny contains {"rule": "o.d", "message": "m", "suggestion": "s"} if true`))
	if d := pass(t, denying, plainEgress()); d.Effect != proposal.Allow || !d.Observed || d.Reason == nil || d.Reason.Rule != "o.d" {
		t.Errorf("an observed denial: %+v", d)
	}
}

// A granting policy without rules for egress allows no connection, with a warning; one that
// allows everything is still subject to the floor.
func TestEgressGranting(t *testing.T) {
	silent := granting(t, folder(t, "p.rego", "package fumehood.proposal\n\nnetwork contains {\"rule\": \"x\", \"host\": h} if some h in input.proposal.network\n"))
	if d := pass(t, silent, plainEgress()); d.Effect != proposal.Deny || d.Reason.Rule != "egress.no-rule" {
		t.Errorf("%+v", d)
	}
	if w := silent.Warnings(); !slices.ContainsFunc(w, func(s string) bool { return strings.HasPrefix(s, "policy.no-egress") }) {
		t.Errorf("warnings %q", w)
	}
	lax := granting(t, folder(t, "e.rego", egressHead+`allow contains {"rule": "x"} if true`))
	for name, c := range map[string]struct {
		step step
		rule string
	}{
		"datagram": {func(x *proposal.Egress) { x.Kind = points.EgressDatagram }, "egress.datagram"},
		"text":     {lookup("api.example.com", "TXT", "api.example.com"), "egress.type"},
		"mismatch": {hello("api.example.com", "evil.example", "api.example.com"), "egress.mismatch"},
		"secret": {request("GET", "/", func(x *proposal.Egress) { x.Secrets = []proposal.EgressSecret{{Rule: "r", Where: "url"}} }),
			"egress.secret"},
		"no grant":     {func(x *proposal.Egress) { x.Grants = nil }, "egress.none"},
		"unknown kind": {func(x *proposal.Egress) { x.Kind = "x" }, "floor.egress"},
	} {
		x := plainEgress()
		c.step(&x)
		if d := pass(t, lax, x); d.Effect != proposal.Deny || d.Reason == nil || d.Reason.Rule != c.rule {
			t.Errorf("%s: %+v, want %s", name, d, c.rule)
		}
	}
}

// TestExampleHosts holds that the example does what it says.
func TestExampleHosts(t *testing.T) {
	e := opening(t, false, exampleHosts)
	x := plainEgress()
	if d := pass(t, e, x); !d.Intercept || d.Most != proposal.MiB {
		t.Errorf("%+v", d)
	}
	request("POST", "/")(&x)
	if d := pass(t, e, x); d.Effect != proposal.Deny || d.Reason.Rule != "org.read-only" {
		t.Errorf("%+v", d)
	}
	x.Method, x.Secrets = "GET", []proposal.EgressSecret{{Rule: "r", Where: "header"}}
	if d := pass(t, e, x); d.Effect != proposal.Allow || !d.Redact {
		t.Errorf("%+v", d)
	}
	x = plainEgress()
	connect("git.corp.example", "10.1.2.3", 22, "git.corp.example:22")(&x)
	if d := pass(t, e, x); d.Effect != proposal.Allow || !d.Private || !d.Raw || d.Intercept {
		t.Errorf("%+v", d)
	}
}

// TestReachesExamples runs the reaches and not_reaches examples of rules about
// commands: allowed, or not, where hosts were granted. Without hosts none is allowed.
func TestReachesExamples(t *testing.T) {
	lanetest.SkipShort(t)
	all := folder(t, "p.rego", "package fumehood.proposal\n\nnetwork contains {\"rule\": \"x\", \"host\": h} if some h in input.proposal.network\n")
	e := opening(t, false, all)
	found := 0
	for _, a := range annotations(t) {
		for _, text := range examples(t, a, "reaches") {
			found++
			if d := judged(t, e, proposal.Proposal{Run: text, Network: []string{"api.example.com"}}); d.Effect != proposal.Allow {
				t.Errorf("%q: %s", text, grounds(d))
			}
			if d := judged(t, e, proposal.Proposal{Run: text}); d.Effect == proposal.Allow && !strings.HasPrefix(text, "npm ci") {
				t.Errorf("%q is allowed without hosts", text)
			}
		}
		for _, text := range examples(t, a, "not_reaches") {
			found++
			if d := judged(t, e, proposal.Proposal{Run: text, Network: []string{"api.example.com"}}); d.Effect == proposal.Allow {
				t.Errorf("%q is allowed by %v", text, d.Rules)
			}
		}
	}
	if found < 60 {
		t.Errorf("only %d examples", found)
	}
}

// TestHostileStaysRefusedWithHosts holds that a grant of hosts frees clients and nothing
// else: what is hostile without them stays so, except for commands that only reach the network.
func TestHostileStaysRefusedWithHosts(t *testing.T) {
	all := folder(t, "p.rego", "package fumehood.proposal\n\nnetwork contains {\"rule\": \"x\", \"host\": h} if some h in input.proposal.network\n")
	e, freed := opening(t, false, all), map[string]int{}
	for _, c := range sample.EveryNth(t, readEntries(t, "hostile"), 8, 40) {
		p := proposal.Proposal{ID: "corpus", Run: c.text, Network: []string{"api.example.com"}}
		d, err := e.Decide(t.Context(), p, parse.Analyze(p))
		if err != nil {
			t.Fatal(err)
		}
		if d.Effect != proposal.Allow {
			continue
		}
		p.Network = nil
		before := judged(t, e, p)
		for _, r := range before.Reasons {
			freed[r.Rule]++
			if !slices.Contains(freeing, r.Rule) {
				t.Errorf("%q is allowed with hosts; without, %s", c.text, r.Rule)
			}
		}
	}
	t.Logf("%v", freed)
	if freed["network.client"] == 0 {
		t.Error("no client is freed, so that this shows nothing")
	}
}

// freeing are the rules that refuse for want of a network.
var freeing = []string{"network.client", "code.package", "code.url", "go.verb", "git.verb", "judged.verb"}

// TestBelow: a look-up that only the grant of a suffix allows is one of a bounded number,
// unless a layer that may grant hosts says that there are many names.
func TestBelow(t *testing.T) {
	lookup := func(name string, grants ...string) proposal.Egress {
		x := plainEgress()
		x.Kind, x.Name, x.Grants, x.Address, x.Port, x.Protocol = points.EgressLookup, name, grants, "", 0, "udp"
		return x
	}
	plain := opening(t, false)
	for _, c := range []struct {
		x    proposal.Egress
		want string
	}{
		{lookup("a.example.org", "*.example.org"), ".example.org"},
		{lookup("a.example.org", "*.example.org:8443"), ".example.org"},
		{lookup("b.a.example.org", "*.a.example.org", "*.example.org"), ".example.org"},
		{lookup("a.example.org", "*.example.org", "a.example.org"), ""},
		{lookup("api.example.com", "api.example.com"), ""},
		{plainEgress(), ""},
	} {
		if d := pass(t, plain, c.x); d.Effect != proposal.Allow || d.Below != c.want {
			t.Errorf("%s of %v: %+v, want below %q", c.x.Name, c.x.Grants, d, c.want)
		}
	}
	many := folder(t, "a.rego", egressHead+`many_names contains {"rule": "s.m"} if endswith(input.name, ".example.org")
`)
	for _, test := range []struct {
		engine *policy.Engine
		want   string
	}{{opening(t, false, many), ""}, {with(t, many), ".example.org"}} {
		if d := pass(t, test.engine, lookup("a.example.org", "*.example.org")); d.Effect != proposal.Allow || d.Below != test.want {
			t.Errorf("%+v, want below %q", d, test.want)
		}
	}
}
