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
	case x.SNI != x.Name && (x.Kind == proposal.EgressHello || x.Kind == proposal.EgressRequest && x.SNI != ""):
		return "egress.mismatch", fmt.Sprintf("TLS is spoken for %q on a connection to %q", x.SNI, x.Name), "connect to the name that is meant"
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

// A namingInput is an entry of Grant.Network that names what is asked about.
type namingInput struct {
	Text  string `json:"text"`  // as written
	Kind  string `json:"kind"`  // "name", "suffix" (of the entry "*.example.com") or "address"
	Below string `json:"below"` // of a suffix: what stands before it in the name
	Port  int    `json:"port"`  // 0 when the entry names none
	// Fits says that the entry means the port: its own or, when it names none, 443 and
	// 80. A lookup fits every entry.
	Fits bool `json:"fits"`
}

const kindSuffix = "suffix"

// namings finds the entries of in.Grants that name in.Name or, when it is "",
// in.Address. What is no entry names nothing.
func namings(in egressInput) []namingInput {
	var found []namingInput
	name, address := in.Name, in.Address
	for _, entry := range in.Grants {
		host, port := parted(entry)
		fits := in.Kind == proposal.EgressLookup || port == in.Port || port == 0 && (in.Port == 443 || in.Port == 80)
		n := namingInput{Text: entry, Port: port, Fits: fits}
		suffix, wild := strings.CutPrefix(host, "*")
		switch {
		case port < 0:
			continue
		case name == "":
			if a, err := netip.ParseAddr(host); err != nil || address == "" || a.Unmap().WithZone("").String() != address {
				continue
			}
			n.Kind = "address"
		case host == name:
			n.Kind = "name"
		case wild && strings.HasPrefix(suffix, ".") && strings.HasSuffix(name, suffix) && plainHost(suffix[1:]):
			n.Kind, n.Below = kindSuffix, strings.TrimSuffix(name, suffix)
		default:
			continue
		}
		found = append(found, n)
	}
	return found
}

// parted takes an entry apart: the port is 0 when it names none, and -1 when it is no
// entry of a host.
func parted(entry string) (host string, port int) {
	if strings.Count(entry, ":") > 1 { // IPv6
		if a, err := netip.ParseAddrPort(entry); err == nil {
			return a.Addr().String(), int(a.Port())
		}
		return entry, 0
	}
	host, text, given := strings.Cut(entry, ":")
	if port = portOf(text); given && port == 0 {
		return host, -1
	}
	return host, port
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
