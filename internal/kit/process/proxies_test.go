// SPDX-License-Identifier: Apache-2.0

package process

import (
	"testing"

	"golang.org/x/net/http/httpproxy"
)

func TestProxies(t *testing.T) {
	env := map[string]string{"HTTPS_PROXY": "http://user:hidden@proxy.corp:3128", "http_proxy": "http://lower:1", "HTTP_PROXY": "http://upper:1", "NO_PROXY": ".corp"}
	found := FindProxies(func(name string) string { return env[name] })
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"} {
		t.Setenv(name, "")
	}
	if err := found.Use(); err != nil {
		t.Fatal(err)
	}
	want := httpproxy.Config{HTTPSProxy: env["HTTPS_PROXY"], HTTPProxy: env["http_proxy"], NoProxy: ".corp"}
	if got := *httpproxy.FromEnvironment(); got.HTTPSProxy != want.HTTPSProxy || got.HTTPProxy != want.HTTPProxy || got.NoProxy != want.NoProxy {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Without a proxy, the list of hosts that need none changes nothing.
func TestNoProxies(t *testing.T) {
	t.Setenv("no_proxy", "before")
	p := FindProxies(func(name string) string { return map[string]string{"NO_PROXY": ".corp"}[name] })
	if err := p.Use(); p != (Proxies{}) || err != nil || httpproxy.FromEnvironment().NoProxy != "before" {
		t.Errorf("%+v, %v", p, err)
	}
}
