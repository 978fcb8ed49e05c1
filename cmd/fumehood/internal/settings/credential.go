// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/fumehood/fumehood/internal/egress/wire"
	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var (
	variableName = pattern.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// credentialPlace is HOST[:PORT][/PATH], without the scheme of a URL.
	credentialPlace = pattern.New(`^[A-Za-z0-9._-]+(:[0-9]{1,5})?(/[^?#@ ]*)?$`)
)

// ParseCredential reads NAME@HOST[:PORT][/PATH], with ;header=HEADER or ;query=PARAMETER at its end or neither.
// The value is that of the variable NAME, never the command line's, which every process can read; so an error
// repeats nothing that may be a value. It is a *proposal.StopError.
func ParseCredential(text string, getenv func(string) string) (gate.Credential, error) {
	name, place, ok := strings.Cut(text, "@")
	place, header, other := strings.Cut(place, ";header=")
	place, query, queried := strings.Cut(place, ";query=")
	if !ok || !variableName.MatchString(name) || !credentialPlace.MatchString(place) ||
		other && !wire.IsCredentialHeader(header) || queried && (other || !wire.IsWord(query)) {
		return gate.Credential{}, credentialError("invalid --credential: want VARIABLE@HOST[:PORT][/PATH], and ;header=HEADER or ;query=PARAMETER or neither, with the name of a variable, no scheme, and a header such as X-Api-Key")
	}
	value := getenv(name)
	switch {
	case value == "":
		return gate.Credential{}, credentialError("the variable of --credential for requests to " + place +
			" is empty or not set")
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return gate.Credential{}, credentialError("the variable of --credential for requests to " + place +
			" contains a line break or another control character")
	}
	host, path, _ := strings.Cut(place, "/")
	return gate.Credential{Name: name, Host: host, Path: "/" + path, Header: header, Query: query, Value: value}, nil
}

func credentialError(message string) error {
	return &proposal.StopError{Code: "network.credential", Message: message,
		Hint: "use for example --credential GITHUB_TOKEN@api.github.com/repos with GITHUB_TOKEN in the environment; sudo drops variables without --preserve-env"}
}

// ParseResolver reads the address of a name server, with port 53 unless it says another.
// Its error is a *proposal.StopError.
func ParseResolver(text string) (netip.AddrPort, error) {
	server, err := netip.ParseAddrPort(text)
	if err != nil {
		var a netip.Addr
		a, err = netip.ParseAddr(text)
		server = netip.AddrPortFrom(a, 53)
	}
	if err != nil || server.Port() == 0 {
		return netip.AddrPort{}, &proposal.StopError{Code: "network.resolver",
			Message: fmt.Sprintf("invalid resolver %q: want an address or address:port", text),
			Hint:    "give an address, for example --resolver 192.0.2.53; names cannot be resolved yet"}
	}
	return server, nil
}
