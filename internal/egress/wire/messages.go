// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/fumehood/fumehood/internal/egress/segment"
	"github.com/fumehood/fumehood/internal/egress/upstream"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Setup configures the gateway. It is sent once, before the gateway is confined.
type Setup struct {
	Segment segment.Segment `json:"segment"`
	// Resolvers are asked for names, in order; Hosts are known without asking.
	Resolvers []netip.AddrPort        `json:"resolvers"`
	Hosts     map[string][]netip.Addr `json:"hosts"`
	// Own are addresses that no name may resolve to, including the host's.
	Own []netip.Prefix `json:"own"`
	// Roots are PEM certificates used to verify servers where TLS is intercepted; "" means
	// the host's.
	Roots       string       `json:"roots"`
	Credentials []Credential `json:"credentials"`
	// Proxies are those of the host's network, resolved.
	Proxies upstream.Config `json:"proxies"`
}

// A Credential is added to requests to one host; see package relay.
type Credential struct {
	Name        string `json:"name"`
	Host        string `json:"host"`
	Scheme      string `json:"scheme"`
	PathPrefix  string `json:"path_prefix"`
	Placeholder string `json:"placeholder"`
	Header      string `json:"header"`
	Query       string `json:"query"`
	Value       string `json:"value"`
}

// EncodeSetup returns s as the gateway's standard input.
func EncodeSetup(s Setup) ([]byte, error) {
	text, err := json.Marshal(s)
	if err == nil && len(text) > MaxSetup {
		err = fmt.Errorf("%d bytes are more than the limit", len(text))
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
	return s, decodeExactly(text, &s)
}

// A Hello says that the gateway is confined and ready.
type Hello struct {
	CA string `json:"ca"` // PEM of the run's certificate authority
}

// An Ask asks for a decision about Egress. The supervisor sets its Command, Phase, Grants
// and Registries.
type Ask struct {
	Egress proposal.Egress `json:"egress"`
}

// A Flow reports a flow.
type Flow struct {
	Time int64         `json:"time"` // of its end, ns since 1970
	Flow proposal.Flow `json:"flow"`
}

// A Done answers a Begin or an End, which has taken effect.
type Done struct {
	Dropped uint64 `json:"dropped"` // frames that were neither passed nor reported
}

// A Fault is the gateway's last message: the reason why it stops.
type Fault struct {
	Text string `json:"text"`
}

// A Begin enables the link for one command.
type Begin struct{}

// An End disables the link.
type End struct{}

// An Answer is policy's decision about the Ask with the same seq.
type Answer struct {
	Decision proposal.EgressDecision `json:"decision"`
}
