// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// hosts grants one host.
const hosts = `package fumehood.proposal

network contains {"rule": "own.hosts", "host": "api.example"} if input.proposal.network == ["api.example"]
`

const networked = `
schema: fumehood.plan/v1
proposals:
  - {id: without, run: cat /etc/resolv.conf}
  - {id: granted, run: cat /etc/resolv.conf, network: [api.example]}
  - {id: variable, run: ./task token, network: [api.example]}
  - {id: refused, run: ./task lookup, network: [api.example]}
  - {id: refused-too, run: ./task lookup}
  - {id: in-a-new-sandbox, run: ./task lookup, network: [api.example], new-sandbox: true}
`

// refused is what the error output says about hosts that policy refused.
const refused = `fumehood: the network policy refused evil.example (egress.host): use only granted hosts, or request this one in the proposal's network
fumehood: the network policy refused evil1.example (`

// The gateway is this program in a separate process, which the line in TestMain
// makes possible. Inside, a credential is a placeholder, and its value is nowhere.
func TestNetwork(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	const secret = "Bearer 5ccb7d0c-value"
	g, err := gate.New(t.Context(), gate.Options{
		Workspace:   "testdata/project",
		Policies:    []gate.Policy{{Name: "hosts", Role: "opens", Files: map[string][]byte{"hosts.rego": []byte(hosts)}}},
		Resolvers:   []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:9")},
		Credentials: []gate.Credential{{Name: "API_TOKEN", Host: "api.example", Value: secret}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	report, err := g.Run(t.Context(), decode(t, networked))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"nameserver ", "nameserver ", "fumehood-\n"} {
		r := report.Records[i]
		if r.Result == nil || r.Result.Status != proposal.Exited || !strings.HasPrefix(string(r.Result.Stdout.Head), want) {
			t.Errorf("%s: %s, %+v", r.Proposal.ID, r.Decision.Effect, r.Result)
		}
	}
	for _, r := range report.Records[3:] {
		whole := string(r.Result.Stderr.Head)
		said := strings.Replace(whole, "begun\n", "", 1) // it may come after the gateway's first line
		if said == whole || !strings.HasPrefix(said, refused) || strings.Count(said, "\n") != 9 || !strings.HasSuffix(said, "\nfumehood: the network policy refused further hosts\n") {
			t.Errorf("%s: the error output is\n%s", r.Proposal.ID, whole)
		}
	}
	if origin := report.Run.Policies[1]; origin.Spec != "hosts" || origin.Role != "opens" || origin.Digest == "" {
		t.Errorf("origin %+v", origin)
	}
}
