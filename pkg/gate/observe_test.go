// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"bytes"
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// never is an organization's policy that denies one host by a rule of its own.
const never = `package fumehood.egress

deny contains {"rule": "own.never", "message": "never", "suggestion": "none"} if input.name == "evil1.example"
`

// A network is observed only for code of the repository itself, in a run that leaves nothing
// behind and has no credentials.
func TestObservedNetworkRefused(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]gate.Options{
		"a fork":              {Subject: gate.Subject{Repository: "o/r", Fork: "x/r", PR: 1}},
		"a fork that is gone": {Subject: gate.Subject{Repository: "o/r", Fork: "a repository that is gone", PR: 1}},
		"of unknown origin":   {Subject: gate.Subject{PR: 1}},
		"credentials":         {Credentials: []gate.Credential{{Name: "T", Host: "a.example", Value: "secret-value"}}},
		"decides only":        {DecideOnly: true},
	} {
		o.ObserveNetworkUnsafe = true
		g, err := gate.New(t.Context(), o)
		var stop *proposal.StopError
		if !errors.As(err, &stop) || stop.Code != "network.observe" && stop.Code != "gate.options" || stop.Hint == "" || g != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Every command has the network, whatever was granted; lookups are recorded as observed, and
// explained to no command; the report, the log's first entry and the comment say so. What an
// organization's rule denies stays refused.
func TestObservedNetwork(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	g, err := gate.New(t.Context(), gate.Options{
		Workspace: "testdata/project", ObserveNetworkUnsafe: true, Subject: gate.Subject{Repository: "o/r", PR: 1},
		Policies:  []gate.Policy{{Name: "own", Role: "allows", Files: map[string][]byte{"never.rego": []byte(never)}}},
		Resolvers: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:9")},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if _, err := g.Open(t.Context(), gate.SessionOptions{}); err == nil || proposal.FailureOf(err).Code != "network.observe" {
		t.Errorf("a session: %v", err)
	}
	r, err := g.Run(t.Context(), decode(t, "schema: fumehood.plan/v1\nproposals:\n  - {id: lookup, run: ./task lookup}\n  - {id: env, run: ./task online}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if said := string(r.Records[0].Result.Stderr.Head); !strings.HasPrefix(said, "begun\nfumehood: the network policy refused evil1.example (own.never)") || strings.Count(said, "\n") != 2 {
		t.Errorf("the error output is\n%s", said)
	}
	if got := string(r.Records[1].Result.Stdout.Head); got != "online\n" {
		t.Errorf("variables that keep tools off the network: %q", got)
	}
	verdicts := map[string]string{}
	for _, h := range r.Hosts.Rows {
		verdicts[h.Host] = h.Verdict + " " + h.Rule
	}
	if len(verdicts) != 10 || verdicts["evil.example"] != "observed egress.host" || verdicts["evil1.example"] != "refused own.never" {
		t.Errorf("hosts %v", verdicts)
	}
	if !r.Run.NetworkObserved || !slices.ContainsFunc(r.Run.Unenforced, func(s string) bool { return strings.HasPrefix(s, "the network: ") }) {
		t.Errorf("%+v", r.Run)
	}
	log, err := os.ReadFile(r.Audit.File)
	first, _, _ := bytes.Cut(log, []byte(`"kind":"decision"`))
	if err != nil || !bytes.Contains(first, []byte(`"network_observed":true`)) {
		t.Errorf("%v: the log begins with\n%.2000s", err, first)
	}
}
