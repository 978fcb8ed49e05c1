// SPDX-License-Identifier: Apache-2.0

package document

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/policies"
)

// Registries are the names that may follow "registry:".
var Registries = policies.RegistryNames(func(policies.Registry) bool { return true })

var (
	hostName = pattern.New(`^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)
	portText = pattern.New(`^[1-9][0-9]{0,4}$`)
	// numeric matches the last part of addresses in unusual forms that resolvers
	// accept: 127.1, 0x7f000001, 017700000001.
	numeric = pattern.New(`(^|\.)([0-9]+|0x[0-9a-f]*)$`)
)

func validHost(n *Node) string { return InvalidHost(n.Value) }

// InvalidHost returns what is wrong with an entry of network, or "". An entry has
// only one spelling, so the text of a grant is exactly what is compared.
func InvalidHost(entry string) string {
	if name, ok := strings.CutPrefix(entry, "registry:"); ok {
		if slices.Contains(Registries, name) {
			return ""
		}
		return UnknownRegistry(name)
	}
	if word, name, ok := strings.Cut(entry, ":"); ok && (strings.EqualFold(word, "registry") || word == "registries") {
		return fmt.Sprintf("%s is not a host: write \"registry:%s\"", Quote(entry),
			strings.Trim(Quote(strings.ToLower(name)), `"`))
	}
	if addr, err := netip.ParseAddr(strings.Trim(entry, "[]")); err == nil {
		return addressComplaint(addr, entry, addr.String())
	}
	if addr, err := netip.ParseAddrPort(entry); err == nil {
		if addr.Port() == 0 {
			return "has the port 0: want a port from 1 to 65535"
		}
		return addressComplaint(addr.Addr(), entry, addr.String())
	}
	name, port, given := strings.Cut(entry, ":")
	if number, err := strconv.Atoi(port); given && (err != nil || number > 65535 || !portText.MatchString(port)) {
		return fmt.Sprintf("%s has the port %s: want a port from 1 to 65535, written without zeros before it",
			Quote(entry), Quote(port))
	}
	return nameComplaint(name, entry)
}

// UnknownRegistry returns the message for a name that is not one of Registries.
func UnknownRegistry(name string) string {
	near := NearestName(name, Registries)
	for _, r := range policies.Registries() {
		if slices.Contains(r.Aliases, strings.ToLower(name)) {
			near = r.Name
		}
	}
	if near != "" {
		return fmt.Sprintf("unknown registry %s: did you mean %q?", Quote(name), near)
	}
	return fmt.Sprintf("unknown registry %s: known are %s", Quote(name), strings.Join(Registries, ", "))
}

func addressComplaint(addr netip.Addr, entry, plain string) string {
	switch {
	case addr.Zone() != "":
		return fmt.Sprintf("%s has a zone, which names an interface: leave it out", Quote(entry))
	case addr.Is4In6():
		return fmt.Sprintf("%s is an IPv4 address in IPv6 notation: write %s", Quote(entry), addr.Unmap())
	case plain != entry:
		return fmt.Sprintf("%s is not the canonical form: write %q", Quote(entry), plain)
	}
	return ""
}

func nameComplaint(name, entry string) string {
	below, wild := strings.CutPrefix(name, "*.")
	switch {
	case name == "*" || wild && !strings.Contains(below, "."):
		return fmt.Sprintf("%s is too wide: name at least two parts behind \"*.\", as in \"*.example.com\"",
			Quote(entry))
	case strings.Contains(below, "*"):
		return fmt.Sprintf("%s has a star in an unsupported place: it must be the whole first part, as in \"*.example.com\"", Quote(entry))
	case strings.ContainsAny(name, "[]:"):
		return fmt.Sprintf("%s is not an address or a name: write an IPv6 address with a port as \"[2001:db8::1]:443\"",
			Quote(entry))
	case strings.ToLower(name) != name:
		return fmt.Sprintf("%s has capital letters: write %s", Quote(entry), Quote(strings.ToLower(entry)))
	case strings.HasSuffix(name, "."):
		return fmt.Sprintf("%s ends in a dot: leave it out", Quote(name))
	case numeric.MatchString(below):
		return fmt.Sprintf("%s is an address in an unsupported form: write four numbers from 0 to 255", Quote(entry))
	case len(below) > 253 || !hostName.MatchString(below):
		return fmt.Sprintf("%s is not a host name: want parts of at most 63 letters, digits, _ and -, with dots between them", Quote(entry))
	}
	return ""
}
