// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const hintDefect = "this is a defect: report it"

// alwaysDenied returns the rule, message and suggestion of a step that no rule can allow,
// or nothing. It checks the fields of x, so that a rule that compares none of them
// allows nothing invalid.
func alwaysDenied(x proposal.Egress) (rule, message, suggestion string) {
	if complaint := invalidStep(x); complaint != "" {
		return "floor.egress", "invalid step of a connection: " + complaint, hintDefect
	}
	switch {
	case len(x.Grants) == 0:
		return "egress.none", "no host was granted to this command",
			"use what is already in the repository or installed"
	case x.Kind == points.EgressDatagram:
		return "egress.datagram", fmt.Sprintf("%s is not allowed: only TCP, and lookups with the sandbox's resolver",
			protocolName(x)), "use TCP, and the sandbox's resolver"
	case x.Kind == points.EgressLookup && x.Type != "A" && x.Type != "AAAA":
		return "egress.type", fmt.Sprintf("lookups of type %s are not allowed: only addresses may be looked up",
			x.Type), "look up A or AAAA"
	case x.Address == "" && x.Kind != points.EgressLookup && !IsGrantedByName(x):
		return "egress.unresolved", "this host cannot resolve the name, and the upstream proxy only gets names that are granted themselves", "request the host by its name, not by a wildcard"
	case x.SNI != x.Name && (x.Kind == points.EgressHello || x.Kind == points.EgressRequest && x.SNI != ""):
		return "egress.mismatch", fmt.Sprintf("the TLS hello is for %q on a connection to %q", x.SNI, x.Name),
			"connect to the name in the hello"
	}
	return "", "", ""
}

func protocolName(x proposal.Egress) string {
	if x.Protocol == "" {
		return "this"
	}
	return strings.ToUpper(x.Protocol)
}

// protocols are the protocols of each kind of step.
var protocols = map[string][]string{
	points.EgressConnect: {"tcp"},
	points.EgressHello:   {"tls"},
	points.EgressRequest: {"http", "https"},
}

// invalidStep returns what is wrong with x, or "". It does not check steps that are never
// allowed.
func invalidStep(x proposal.Egress) string {
	switch {
	case x.Command == "":
		return "no command"
	case x.Phase != proposal.PhaseSetup && x.Phase != proposal.PhaseRun:
		return fmt.Sprintf("unknown phase %q", x.Phase)
	case x.Kind == points.EgressDatagram:
		return ""
	case x.Name != "" && !plainHost(x.Name):
		return fmt.Sprintf("%q is not a name", x.Name)
	case x.Kind == points.EgressLookup:
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
	// Only the upstream proxy may know the address of a name.
	if _, err := netip.ParseAddr(x.Address); err != nil && (x.Address != "" || x.Name == "") {
		return fmt.Sprintf("%q is not an address", x.Address)
	}
	if x.Kind == points.EgressRequest && (x.Method == "" || !strings.HasPrefix(x.Path, "/")) {
		return fmt.Sprintf("invalid method %q or path %q", x.Method, x.Path)
	}
	return ""
}

// plainHost reports whether a name has the form that a lookup gives it: lower case, no
// empty part, no final dot, only letters, digits, hyphens and underscores, not an address.
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

// A namingInput is an entry of Grant.Network that names the host of the step.
type namingInput struct {
	Text  string `json:"text"`               // as written
	Kind  string `json:"kind" enum:"naming"` // of the entry; "*.example.com" is a suffix
	Below string `json:"below"`              // for a suffix: the part of the name before it
	Port  int    `json:"port"`               // 0 when the entry names none
	// Fits means that the entry includes the port: its own or, when it names none, 443 and
	// 80. A lookup fits every entry.
	Fits bool `json:"fits"`
}

const kindSuffix = "suffix"

// findNamings finds the entries of in.Grants that name in.Name or, when it is "", in.Address.
// Invalid entries name nothing.
func findNamings(in egressInput) []namingInput {
	var found []namingInput
	name, address := in.Name, in.Address
	for _, entry := range in.Grants {
		host, port := splitEntry(entry)
		fits := in.Kind == points.EgressLookup || port == in.Port || port == 0 && (in.Port == 443 || in.Port == 80)
		n := namingInput{Text: entry, Port: port, Fits: fits}
		suffix, wild := strings.CutPrefix(host, "*")
		switch {
		case port < 0:
			continue
		case name == "":
			if a, err := netip.ParseAddr(host); err != nil || address == "" ||
				a.Unmap().WithZone("").String() != address {
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

// splitEntry splits an entry: the port is 0 when it names none, and -1 when it is not an entry
// for a host.
func splitEntry(entry string) (host string, port int) {
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
