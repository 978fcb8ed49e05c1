// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"slices"
	"strconv"
	"strings"
)

// An Egress is one thing that a program in the sandbox asked of the network: the
// input of policy's decision point fumehood.egress. Names, paths and addresses are a
// stranger's text.
//
// A connection is asked about step by step, as it becomes known: a name is looked up,
// then an address that stands for it is connected to, then the first bytes say what is
// meant by it. Each step must be allowed.
type Egress struct {
	Command string `json:"command"` // id of the proposal
	Phase   string `json:"phase"`   // PhaseSetup or PhaseRun
	Kind    string `json:"kind"`    // an Egress constant
	// Name is what was looked up, lower case, without a final dot: it is known for
	// every connection but one to a raw address.
	Name string `json:"name"`
	Type string `json:"type"` // of a lookup: "A", "AAAA", "TXT" …
	// Address is what would be connected to: one that was found for Name and passed the
	// checks of addresses, or the raw one that the program asked for.
	Address  string         `json:"address"`
	Port     int            `json:"port"`
	Protocol string         `json:"protocol"` // "tcp", "udp", "icmp"; of a hello "tls"; of a request "http" or "https"
	SNI      string         `json:"sni"`      // of a hello
	Method   string         `json:"method"`   // of a request
	Path     string         `json:"path"`     // of a request, without the query, cleaned
	Query    int            `json:"query"`    // bytes of the query
	Size     int64          `json:"size"`     // of a request's body; -1 when not known
	Secrets  []EgressSecret `json:"secrets"`  // found in a request, where the host is filtered
	// Grants are the entries of the command's Grant.Network.
	Grants []string `json:"grants"`
	// Registries are those of Grants' registries that Name, Port and, of a request,
	// Path belong to: "npm" for an entry "registry:npm".
	Registries []string `json:"registries"`
}

// An EgressSecret is what looks like a secret in a request that would leave. It never
// holds the secret.
type EgressSecret struct {
	Rule  string `json:"rule"`  // of the detector
	Where string `json:"where"` // "url", "header", "body"
}

// The kinds of Egress.
const (
	EgressLookup   = "lookup"   // a name, before anything is known of its addresses
	EgressConnect  = "connect"  // a connection, before a byte of it
	EgressHello    = "hello"    // TLS that will not be intercepted, by its first message
	EgressRequest  = "request"  // one HTTP request
	EgressDatagram = "datagram" // anything that is neither TCP nor a lookup; never allowed
)

// The phases of a plan.
const (
	PhaseSetup = "setup" // proposals that fetch what the others need
	PhaseRun   = "run"
)

// An EgressDecision is policy's answer about one Egress. Only Allow lets it pass.
type EgressDecision struct {
	Effect Effect   `json:"effect"`
	Rules  []string `json:"rules"`
	Reason *Reason  `json:"reason,omitempty"` // the first that speaks against it
	// Intercept ends TLS at the gateway, so that each request is asked about. It counts
	// in the answer about a connect.
	Intercept bool `json:"intercept,omitempty"`
	// Private lets the name resolve to addresses of private networks: never to
	// loopback, link-local, metadata or the host's own. It counts in the answer about
	// a lookup or a connect.
	Private bool `json:"private,omitempty"`
	// Raw passes bytes on that are neither TLS nor HTTP. It counts in the answer about a
	// connect.
	Raw bool `json:"raw,omitempty"`
	// Filter has intercepted and plain requests searched for secrets.
	Filter bool `json:"filter,omitempty"`
	// Redact has what was found replaced, in answer to a request with Secrets.
	Redact bool `json:"redact,omitempty"`
	// Most is how many bytes may leave for the name in the whole run; 0 is no limit
	// beside the gateway's own.
	Most     Bytes `json:"most,omitempty"`
	Observed bool  `json:"observed,omitempty"` // it would have been refused
}

// A Flow is what became of one lookup, connection or request.
type Flow struct {
	Egress   Egress         `json:"egress"`
	Decision EgressDecision `json:"decision"`
	// Code says why it ended otherwise than its peers wished: refused by policy
	// ("policy"), or by the gateway itself ("address", "mismatch", "hello", "protocol",
	// "limit", "unreachable", "cut" …); "" when it did not.
	Code string `json:"code,omitempty"`
	// Inside is the address and port that the program itself spoke to, where that stands
	// for a name: "198.18.0.5:443". By it the kernel's record and the gateway's are joined.
	Inside   string `json:"inside,omitempty"`
	Sent     int64  `json:"sent"`             // bytes that left
	Received int64  `json:"received"`         // bytes that came
	Status   int    `json:"status,omitempty"` // of an HTTP response
	WallMS   int64  `json:"wall_ms"`
}

// mishaps are the codes of what was let through and came to nothing, or to an early end.
var mishaps = []string{"", "unreachable", "unresolved", "upstream", "timeout", "idle", "cut", "closed"}

// Refused reports whether policy or the gateway refused what f tells of. What was let
// through and came to nothing was not.
func (f Flow) Refused() bool {
	return f.Decision.Effect != Allow || !slices.Contains(mishaps, f.Code)
}

// Destination is where e would go: "name:443", "192.0.2.1:22", or the name alone of a
// lookup.
func (e Egress) Destination() string { return destination(e.Name, e.Address, e.Port) }

func destination(name, address string, port int) string {
	if name == "" {
		name = address
	}
	if port == 0 {
		return name
	}
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	return name + ":" + strconv.Itoa(port)
}
