// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

const hintDefect = "this is a defect: report it"

// unpassable says why nothing could let x pass: the rule, a message and a suggestion,
// or nothing. What a field must hold is checked here, so that a rule which compares it
// with nothing allows nothing.
func unpassable(x proposal.Egress) (rule, message, suggestion string) {
	if complaint := noStep(x); complaint != "" {
		return "floor.egress", "what was asked about is no step of a connection: " + complaint, hintDefect
	}
	switch {
	case len(x.Grants) == 0:
		return "egress.none", "this command was granted no host", "use what the repository and the machine already hold"
	case x.Kind == proposal.EgressDatagram:
		return "egress.datagram", fmt.Sprintf("%s does not leave: only TCP does, and lookups through the resolver that the sandbox names", protocolName(x)), "use TCP, and the sandbox's own resolver"
	case x.Kind == proposal.EgressLookup && x.Type != "A" && x.Type != "AAAA":
		return "egress.type", fmt.Sprintf("a lookup of type %s: only addresses are looked up", x.Type), "ask for A or AAAA"
	case x.Kind == proposal.EgressHello && x.SNI != x.Name:
		return "egress.mismatch", fmt.Sprintf("the TLS hello is for %q on a connection to %q", x.SNI, x.Name), "connect to the name that is meant"
	}
	return "", "", ""
}

func protocolName(x proposal.Egress) string {
	if x.Protocol == "" {
		return "this"
	}
	return strings.ToUpper(x.Protocol)
}

// protocols are those that a step of each kind may be of.
var protocols = map[string][]string{
	proposal.EgressConnect: {"tcp"},
	proposal.EgressHello:   {"tls"},
	proposal.EgressRequest: {"http", "https"},
}

// noStep says what makes x none of the steps that can be allowed, or "". What is never
// allowed may lack anything.
func noStep(x proposal.Egress) string {
	switch {
	case x.Command == "":
		return "no command"
	case x.Phase != proposal.PhaseSetup && x.Phase != proposal.PhaseRun:
		return fmt.Sprintf("unknown phase %q", x.Phase)
	case x.Kind == proposal.EgressDatagram:
		return ""
	case x.Name != "" && !plainHost(x.Name):
		return fmt.Sprintf("%q is no name", x.Name)
	case x.Kind == proposal.EgressLookup:
		if x.Name == "" {
			return "no name"
		}
		return ""
	case protocols[x.Kind] == nil:
		return fmt.Sprintf("unknown kind %q", x.Kind)
	case !slices.Contains(protocols[x.Kind], x.Protocol):
		return fmt.Sprintf("unknown protocol %q", x.Protocol)
	case x.Port < 1 || x.Port > 65535:
		return fmt.Sprintf("port %d", x.Port)
	}
	if _, err := netip.ParseAddr(x.Address); err != nil {
		return fmt.Sprintf("%q is no address", x.Address)
	}
	if x.Kind == proposal.EgressRequest && (x.Method == "" || !strings.HasPrefix(x.Path, "/")) {
		return fmt.Sprintf("method %q and path %q", x.Method, x.Path)
	}
	return ""
}

// plainHost holds for what a lookup makes of a name: lower case, no empty part, no
// final dot, nothing but letters, digits, hyphens and underscores, and no address.
func plainHost(name string) bool {
	if len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	_, err := netip.ParseAddr(name)
	return err != nil
}

// A grantInput is one entry of Grant.Network, taken apart.
type grantInput struct {
	Text string `json:"text"` // as written
	// Kind is "name", "suffix" (of the entry "*.example.com"), "address" or "registry";
	// "" for what is none.
	Kind string `json:"kind"`
	// Host is what is compared: "example.com", ".example.com", "192.0.2.1", "npm".
	Host string `json:"host"`
	Port int    `json:"port"` // 0 when the entry names none
}

func grantOf(entry string) grantInput {
	g := grantInput{Text: entry}
	if name, ok := strings.CutPrefix(entry, "registry:"); ok {
		g.Kind, g.Host = "registry", name
		return g
	}
	if a, err := netip.ParseAddr(entry); err == nil {
		g.Kind, g.Host = "address", a.Unmap().WithZone("").String()
		return g
	}
	if a, err := netip.ParseAddrPort(entry); err == nil {
		g.Kind, g.Host, g.Port = "address", a.Addr().Unmap().WithZone("").String(), int(a.Port())
		return g
	}
	name, port, given := strings.Cut(entry, ":")
	below, wild := strings.CutPrefix(name, "*")
	if g.Port = portOf(port); given && g.Port == 0 || !plainHost(strings.TrimPrefix(below, ".")) || wild && !strings.HasPrefix(below, ".") {
		return grantInput{Text: entry}
	}
	if g.Kind, g.Host = "name", name; wild {
		g.Kind, g.Host = "suffix", below
	}
	return g
}

// portOf reads a port, and is 0 for anything else.
func portOf(text string) int {
	n := 0
	for _, c := range []byte(text) {
		if c < '0' || c > '9' || len(text) > 5 {
			return 0
		}
		n = 10*n + int(c-'0')
	}
	if n > 65535 {
		return 0
	}
	return n
}
