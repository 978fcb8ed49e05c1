// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// parseEndpoint parses the URL of the collector, to which /v1/traces, /v1/logs and
// /v1/metrics are added. Plain HTTP is allowed only for this machine or, if plain is set, for any.
func parseEndpoint(raw string, plain bool) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.Opaque != "":
		// raw may hold a password
		return nil, wrongEndpoint("it is not a URL", "for example https://otlp.example or http://127.0.0.1:4318")
	case u.User != nil:
		return nil, wrongEndpoint("it contains a user or a password",
			"name a variable that holds it: --otlp-header Authorization=VARIABLE")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, wrongEndpoint("it has a query or a fragment", "remove everything after the path")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, wrongEndpoint(fmt.Sprintf("its scheme is %q", text.Inline(u.Scheme, 20)),
			"use https:// and OTLP over HTTP: gRPC is not supported")
	case u.Scheme == "http" && !plain && !isLoopback(u.Hostname()):
		return nil, wrongEndpoint("it is plain HTTP to another machine",
			"use https://, or set --otlp-plain-unsafe where no one can listen")
	}
	if strings.HasSuffix(u.Path, "/v1/traces") || strings.HasSuffix(u.Path, "/v1/logs") ||
		strings.HasSuffix(u.Path, "/v1/metrics") {
		return nil, wrongEndpoint("it names one signal's path",
			"remove /v1/traces, /v1/logs or /v1/metrics: they are added")
	}
	return u, nil
}

func wrongEndpoint(why, hint string) error {
	return &proposal.StopError{Code: "otlp.endpoint", Message: "cannot use the collector's address: " + why, Hint: hint}
}

// isLoopback accepts no name but localhost: the owner of any other name decides what
// it resolves to.
func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}
