// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"strings"

	"github.com/fumehood/fumehood/pkg/egress/registry"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// registriesFrom reads the file of --registries when the run needs it; without one the
// gate asks this host's own tools.
func registriesFrom(path string) func(context.Context, []string) ([]registry.Registry, error) {
	if path == "" {
		return nil
	}
	return func(context.Context, []string) ([]registry.Registry, error) {
		data, err := os.ReadFile(path)
		var all []registry.Registry
		if err == nil {
			err = json.Unmarshal(data, &all)
		}
		if err != nil {
			return nil, &proposal.StopError{Code: "network.registries", Message: "the file of --registries cannot be read", Hint: "leave it out; fumehood action writes it", Err: err}
		}
		return all, nil
	}
}

// servers are those of --resolver.
func (s *setup) servers() ([]netip.AddrPort, error) {
	var given []netip.AddrPort
	for _, text := range s.resolvers {
		a, err := resolverOf(text)
		if err != nil || a.Port() == 0 {
			return nil, &proposal.StopError{Code: "network.resolver", Message: fmt.Sprintf("resolver %q is no address and no address:port", text),
				Hint: "for example --resolver 192.0.2.53: an address, since there is nobody yet to ask for a name"}
		}
		given = append(given, a)
	}
	return given, nil
}

func resolverOf(text string) (netip.AddrPort, error) {
	if a, err := netip.ParseAddrPort(text); err == nil {
		return a, nil
	}
	a, err := netip.ParseAddr(text)
	return netip.AddrPortFrom(a, 53), err
}

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// credentialPlace is HOST[:PORT][/PATH]. Who has a URL in mind writes a scheme before it.
	credentialPlace = regexp.MustCompile(`^[A-Za-z0-9._-]+(:[0-9]{1,5})?(/[^?#@ ]*)?$`)
)

// credentialOf reads NAME@HOST[:PORT][/PATH]. The value is the variable's, never the
// command line's, which every process can read; so a refusal repeats nothing that may
// be a value.
func credentialOf(text string) (gate.Credential, error) {
	name, place, ok := strings.Cut(text, "@")
	if !ok || !variableName.MatchString(name) || !credentialPlace.MatchString(place) {
		return gate.Credential{}, credentialError("a value of --credential is not VARIABLE@HOST[:PORT][/PATH], with the name of a variable and no scheme")
	}
	value := os.Getenv(name)
	switch {
	case value == "":
		return gate.Credential{}, credentialError("--credential says what is put on requests to " + place + " by a variable that is not set, or empty")
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return gate.Credential{}, credentialError("the variable whose value is put on requests to " + place + " has a line break or another control character, which no header holds")
	}
	host, path, _ := strings.Cut(place, "/")
	return gate.Credential{Name: name, Host: host, Path: "/" + path, Value: value}, nil
}

func credentialError(message string) error {
	return &proposal.StopError{Code: "network.credential", Message: message,
		Hint: "for example --credential GITHUB_TOKEN@api.github.com/repos with GITHUB_TOKEN in the environment; sudo drops variables without --preserve-env"}
}
