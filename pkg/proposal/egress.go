// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"slices"
	"strconv"
	"strings"
)

// An Egress is one network operation of a program in the sandbox: the input of policy's
// decision point fumehood.egress. Names, paths and addresses are untrusted text.
//
// A connection is decided step by step, as it becomes known: a name is looked up, then
// an address that represents it is connected to, then the first bytes show the
// intended use. Each step must be allowed.
type Egress struct {
	Command string `json:"command"` // ID of the proposal
	Phase   string `json:"phase"`   // PhaseSetup or PhaseRun
	Kind    string `json:"kind"`    // "lookup", "connect", "hello", "request" or "datagram"
	// Name is the looked-up name, lower case, without a final dot. It is known for every
	// connection except for one to a raw address.
	Name string `json:"name"`
	Type string `json:"type"` // of a lookup: "A", "AAAA", "TXT" …
	// Address is the address to connect to: one that was found for Name and passed the
	// address checks, or the raw one that the program used. It is empty for a name that only
	// the upstream proxy can resolve.
	Address  string         `json:"address"`
	Port     int            `json:"port"`
	Protocol string         `json:"protocol"` // "tcp", "udp", "icmp"; of a hello "tls"; of a request "http" or "https"
	SNI      string         `json:"sni"`      // of a hello; of a raw connection the server name or HTTP host in its first bytes
	Method   string         `json:"method"`   // of a request
	Path     string         `json:"path"`     // of a request, without the query, cleaned
	Query    int            `json:"query"`    // bytes of the query
	Size     int64          `json:"size"`     // of a request's body; -1 if not known
	Secrets  []EgressSecret `json:"secrets"`  // found in a request, if the host is filtered
	// Escaped means that a slash of Path was sent as "%2F".
	Escaped bool `json:"escaped,omitempty"`
	// Grants are the entries of the command's Grant.Network.
	Grants []string `json:"grants"`
	// Registries are the registries in Grants to which Name, Port and, for a request,
	// Path belong: "npm" for an entry "registry:npm".
	Registries []string `json:"registries"`
}

// An EgressSecret describes text in an outgoing request that looks like a secret. It
// never contains the secret.
type EgressSecret struct {
	Rule  string `json:"rule"`  // of the detector
	Where string `json:"where"` // "url", "header", "body"
}

// The phases of a plan.
const (
	PhaseSetup = "setup" // proposals that fetch what others need
	PhaseRun   = "run"
)

// An EgressDecision is policy's decision about one Egress. Only Allow lets it pass.
type EgressDecision struct {
	Effect Effect   `json:"effect"`
	Rules  []string `json:"rules"`
	Reason *Reason  `json:"reason,omitempty"` // the first reason against it
	// Intercept ends TLS at the gateway, so that each request is decided. It is used in
	// the decision about a connect.
	Intercept bool `json:"intercept,omitempty"`
	// Private allows the name to resolve to addresses of private networks, but never
	// to loopback, link-local, metadata or the host's own addresses. It is used in
	// the decision about a lookup or a connect.
	Private bool `json:"private,omitempty"`
	// Unresolved lets the name go to the host's upstream proxy although the host cannot resolve
	// it, so that its addresses are not checked. It is used in the decision about a lookup or a
	// connect.
	Unresolved bool `json:"unresolved,omitempty"`
	// Raw forwards bytes that are neither TLS nor HTTP. It is used in the decision about
	// a connect, and about a request that opens a WebSocket.
	Raw bool `json:"raw,omitempty"`
	// Filter searches intercepted and plain requests for secrets.
	Filter bool `json:"filter,omitempty"`
	// Redact replaces the secrets found, in the decision about a request with Secrets.
	Redact bool `json:"redact,omitempty"`
	// Most is how many bytes may be sent to the name in the whole run; 0 means only the
	// gateway's own limit.
	Most Bytes `json:"most,omitempty"`
	// Below is the suffix, ".example.org", whose grant alone allows a lookup, if policy does not
	// say that there are many names below it: a run may look up 64 of them.
	Below    string `json:"below,omitempty"`
	Observed bool   `json:"observed,omitempty"` // it would have been refused
	// Firm is the first reason of a layer that does not replace the shipped policy, such as an
	// organization's, to deny it; nil if there is none. Such a denial also applies where the
	// network is only observed. It is not recorded.
	Firm *Reason `json:"-"`
}

// A Flow is the outcome of one lookup, connection or request.
type Flow struct {
	Egress   Egress         `json:"egress"`
	Decision EgressDecision `json:"decision"`
	// Code is why it did not end normally: refused by policy ("policy"), or by the
	// gateway itself ("address", "mismatch", "hello", "protocol", "limit",
	// "unreachable", "upstream" by the host's proxy, "cut" …); "" if it did.
	Code string `json:"code,omitempty"`
	// Inside is the address and port that the program itself used, if that represents a
	// name: "198.18.0.5:443". It links the kernel's record with the gateway's.
	Inside string `json:"inside,omitempty"`
	// Verdict is VerdictObserved if nothing about the network was enforced, and the flow was not
	// refused; otherwise "".
	Verdict  string `json:"verdict,omitempty"`
	Sent     int64  `json:"sent"`             // bytes sent
	Received int64  `json:"received"`         // bytes received
	Status   int    `json:"status,omitempty"` // of an HTTP response; of a connection with code "upstream", the proxy's
	WallMS   int64  `json:"wall_ms"`
}

// flowCut is the Code of a flow that ended, or was not decided, because the command or the run ended.
const flowCut = "cut"

// mishaps are the codes of flows that were allowed but failed or ended early.
var mishaps = []string{"", "unreachable", "unresolved", "upstream", "timeout", "idle", flowCut, "closed"}

// Refused reports whether policy or the gateway refused f. A flow that was allowed but
// failed was not refused, nor was one that ended before policy had answered.
func (f Flow) Refused() bool {
	return f.Code != flowCut && (f.Decision.Effect != Allow || !slices.Contains(mishaps, f.Code))
}

// Destination returns the destination of e: "name:443", "192.0.2.1:22", or only the name
// for a lookup.
func (e Egress) Destination() string { return formatDestination(e.Name, e.Address, e.Port) }

func formatDestination(name, address string, port int) string {
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
