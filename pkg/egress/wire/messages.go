// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/fumehood/fumehood/pkg/egress/segment"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Setup is what the gateway is told once, before it is confined.
type Setup struct {
	Segment segment.Segment `json:"segment"`
	// Resolvers are asked for names, in order; Hosts are known without asking.
	Resolvers []netip.AddrPort        `json:"resolvers"`
	Hosts     map[string][]netip.Addr `json:"hosts"`
	// Own are addresses that no name may resolve to, the host's among them.
	Own []netip.Prefix `json:"own"`
	// Roots are PEM certificates that servers are verified with where TLS is
	// intercepted; "" is the host's own.
	Roots       string       `json:"roots"`
	Credentials []Credential `json:"credentials"`
}

// A Credential is put on requests to one host; see package relay.
type Credential struct {
	Name        string `json:"name"`
	Host        string `json:"host"`
	Scheme      string `json:"scheme"`
	PathPrefix  string `json:"path_prefix"`
	Placeholder string `json:"placeholder"`
	Header      string `json:"header"`
	Value       string `json:"value"`
}

// EncodeSetup returns s as the gateway's standard input.
func EncodeSetup(s Setup) ([]byte, error) {
	text, err := json.Marshal(s)
	if err == nil && len(text) > MaxSetup {
		err = fmt.Errorf("%d bytes are too many", len(text))
	}
	if err != nil {
		return nil, fmt.Errorf("cannot encode the gateway's setup: %v", err)
	}
	return text, nil
}

// DecodeSetup reads what EncodeSetup wrote.
func DecodeSetup(text []byte) (s Setup, err error) {
	if len(text) > MaxSetup {
		return Setup{}, fmt.Errorf("setup of more than %d bytes", MaxSetup)
	}
	return s, exactly(text, &s)
}

// A Hello says that the gateway is confined and in force.
type Hello struct {
	CA string `json:"ca"` // PEM of the run's certificate authority
}

// An Ask asks about Egress, whose Command, Phase, Grants and Registries the supervisor
// knows better.
type Ask struct {
	Egress proposal.Egress `json:"egress"`
}

// A Flow tells of one.
type Flow struct {
	Time int64         `json:"time"` // of its end, ns since 1970
	Flow proposal.Flow `json:"flow"`
}

// A Done answers a Begin or an End: the wire is as it asked for.
type Done struct {
	Dropped uint64 `json:"dropped"` // frames that were neither passed nor told of
}

// A Fault is the gateway's last word: why it cannot go on.
type Fault struct {
	Text string `json:"text"`
}

// A Begin opens the wire for one command.
type Begin struct{}

// An End closes it.
type End struct{}

// An Answer is policy's, about the Ask with its seq.
type Answer struct {
	Decision proposal.EgressDecision `json:"decision"`
}
