// SPDX-License-Identifier: Apache-2.0

// Package upstream connects through the proxy of the host's network, where the host has no
// other way out.
//
// The proxies are those of fumehood's own environment: HTTPS_PROXY, HTTP_PROXY and NO_PROXY, in
// upper or lower case, as curl, git and Go read them. Nothing that a pull request or a sandbox
// says has an effect on them. A proxy has the scheme http or https, and is asked to CONNECT for
// every port: HTTP_PROXY applies to port 80, HTTPS_PROXY to all others. A variable that cannot be
// used is an error, and never means a direct connection.
//
// # What it does not protect against
//
// A proxy resolves names itself and connects to what it finds. It can also connect to anything
// else: TLS that the gateway or the program verifies shows that, plain HTTP does not.
package upstream

import (
	"cmp"
	"context"
	"encoding/base64"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/fumehood/fumehood/internal/egress/names"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Config says which proxy is used for what. The zero value uses none.
type Config struct {
	HTTP    *Proxy `json:"http"`     // for port 80
	HTTPS   *Proxy `json:"https"`    // for every other port
	NoProxy string `json:"no_proxy"` // what is connected to directly, as httpproxy.Config has it
}

// A Proxy is one proxy server.
type Proxy struct {
	TLS  bool   `json:"tls"`
	Host string `json:"host"` // a name in lower case, or an address
	Port uint16 `json:"port"`
	// Addrs are Host's, as the host itself resolves it; see ResolveProxies.
	Addrs []netip.Addr `json:"addrs"`
	// Authorization is the value of the header Proxy-Authorization, "" for none.
	Authorization string   `json:"authorization"`
	secrets       []string // in it
}

const (
	resolveTimeout = 10 * time.Second
	maxAddrs       = 8
)

// FromEnvironment returns the proxies of this process's environment, not yet resolved. Its
// error is a *proposal.StopError, which quotes nothing of the variables.
func FromEnvironment() (Config, error) { return Parse(httpproxy.FromEnvironment()) }

// Parse is FromEnvironment for other values.
func Parse(e *httpproxy.Config) (c Config, err error) {
	c.NoProxy = e.NoProxy
	if c.HTTPS, err = parseProxy("HTTPS_PROXY", e.HTTPSProxy); err != nil {
		return Config{}, err
	}
	if c.HTTP, err = parseProxy("HTTP_PROXY", e.HTTPProxy); err != nil {
		return Config{}, err
	}
	return c, nil
}

// parseProxy reads one variable as httpproxy does: a URL, or only a host and a port.
func parseProxy(variable, text string) (*Proxy, error) {
	if text == "" {
		return nil, nil
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, proxyError("invalid proxy in "+variable, nil) // err quotes a password
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, proxyError("unsupported proxy in "+variable+": its scheme is not http or https", nil)
	}
	p := &Proxy{TLS: u.Scheme == "https"}
	if !p.setServer(u) {
		return nil, proxyError("invalid proxy in "+variable+": it has no valid host and port", nil)
	}
	p.setAuthorization(u.User)
	return p, nil
}

func proxyError(message string, err error) error {
	return &proposal.StopError{Code: "network.proxy", Message: message, Err: err,
		Hint: "set HTTPS_PROXY and HTTP_PROXY to http://HOST:PORT or https://HOST:PORT, or unset them where fumehood starts"}
}

// setServer reports whether u names a server, which p then is.
func (p *Proxy) setServer(u *url.URL) bool {
	p.Port = 80
	if p.TLS {
		p.Port = 443
	}
	if text := u.Port(); text != "" {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 {
			return false
		}
		p.Port = uint16(port)
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil {
		p.Host = a.Unmap().String()
		return a.Zone() == ""
	}
	name, err := names.Parse(u.Hostname())
	p.Host = name
	return err == nil
}

func (p *Proxy) setAuthorization(user *url.Userinfo) {
	if user == nil {
		return
	}
	password, _ := user.Password()
	token := base64.StdEncoding.EncodeToString([]byte(user.Username() + ":" + password))
	p.Authorization, p.secrets = "Basic "+token, []string{token, cmp.Or(password, user.Username())}
}

// String returns the proxy's host and port.
func (p *Proxy) String() string { return net.JoinHostPort(p.Host, strconv.Itoa(int(p.Port))) }

// Proxies are the different proxies of c, at most two.
func (c Config) Proxies() (all []*Proxy) {
	for _, p := range []*Proxy{c.HTTPS, c.HTTP} {
		if p != nil && !slices.ContainsFunc(all,
			func(q *Proxy) bool { return p.String() == q.String() && p.Authorization == q.Authorization }) {
			all = append(all, p)
		}
	}
	return all
}

// Secrets returns what must not be shown: passwords, and what the headers have of them.
func (c Config) Secrets() (secrets []string) {
	for _, p := range c.Proxies() {
		secrets = append(secrets, p.secrets...)
	}
	return secrets
}

// ResolveProxies sets the proxies' addresses with lookup, such as net.Resolver.LookupNetIP. They are
// not checked: proxies are often private or on the host itself. Its error is a
// *proposal.StopError.
func (c Config) ResolveProxies(
	ctx context.Context, lookup func(ctx context.Context, network, host string) ([]netip.Addr, error),
) error {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	for _, p := range []*Proxy{c.HTTPS, c.HTTP} {
		if p == nil {
			continue
		}
		found, err := lookup(ctx, "ip", p.Host)
		if err != nil || len(found) == 0 {
			return proxyError("cannot resolve the upstream proxy "+p.Host, err)
		}
		p.Addrs = nil
		for _, a := range found[:min(len(found), maxAddrs)] {
			p.Addrs = append(p.Addrs, a.Unmap())
		}
	}
	return nil
}
