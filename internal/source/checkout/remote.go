// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"encoding/base64"
	"net/netip"
	"net/url"
	"strings"
)

// A remote is a Source that was checked.
type remote struct {
	url    string
	header string // holds the token; "" without one
	secret []string
	env    []string // environment of the fetch: proxy and certificates
	ca     string   // Source.CA
}

func newRemote(source Source) (remote, error) {
	u, why := checkURL(source.URL, source.Server)
	if why != "" {
		return remote{}, newStopError(CodeSource, "give the https clone URL of the base repository", nil,
			"invalid repository URL: %s", why)
	}
	if source.Dir == "" {
		return remote{}, newStopError(CodeSource, "", nil, "no scratch directory was given")
	}
	r := remote{url: u.String(), ca: source.CA}
	if source.Token != "" {
		if strings.ContainsFunc(source.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return remote{}, newStopError(CodeSource, "", nil,
				"invalid token: it contains a blank, a control or a non-ASCII character")
		}
		basic := base64.StdEncoding.EncodeToString([]byte("x-access-token:" + source.Token))
		r.header = "Authorization: Basic " + basic
		r.secret = []string{source.Token, basic}
	}
	// Only for https: a proxy for plain http could read the token.
	if source.Proxy != "" && u.Scheme == "https" {
		r.env = append(r.env, "https_proxy="+source.Proxy, "no_proxy="+source.NoProxy)
	}
	if source.CA != "" {
		r.env = append(r.env, "GIT_SSL_CAINFO="+source.CA)
	}
	return r, nil
}

// checkURL returns the URL, or the reason why it is refused. The reason never
// quotes it, since it may hold a password.
func checkURL(text, server string) (*url.URL, string) {
	u, err := url.Parse(text)
	switch {
	case err != nil || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }):
		return nil, "it cannot be read"
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, "its scheme is not https"
	case u.Opaque != "" || u.Hostname() == "":
		return nil, "it names no host"
	case u.User != nil:
		return nil, "it contains user information"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(text, "#"):
		return nil, "it has a query or a fragment"
	case strings.Trim(u.Path, "/") == "":
		return nil, "it names no repository"
	case u.Scheme == "http" && !isLoopbackHost(u.Hostname()) && !sameServer(u, server):
		return nil, "plain http is only for a loopback address or the runner's own server"
	}
	return u, ""
}

func isLoopbackHost(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

func sameServer(u *url.URL, server string) bool {
	s, err := url.Parse(server)
	return err == nil && s.Scheme == u.Scheme && s.Host != "" && strings.EqualFold(s.Host, u.Host)
}

// redactToken removes the token from the output of a server or of git.
func (r remote) redactToken(said string) string {
	for _, secret := range r.secret {
		said = strings.ReplaceAll(said, secret, "***")
	}
	return said
}
