// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"
	"os"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Proxies are the proxies of an environment, with their passwords: in arguments, every user and the
// log of sudo would see them. None lists the hosts that are reached without.
type Proxies struct{ HTTPS, HTTP, None string }

// FindProxies returns the proxies of an environment, for a process that has another one.
func FindProxies(getenv func(string) string) Proxies {
	p := Proxies{
		HTTPS: cmp.Or(getenv("https_proxy"), getenv("HTTPS_PROXY")),
		HTTP:  cmp.Or(getenv("http_proxy"), getenv("HTTP_PROXY")),
		None:  cmp.Or(getenv("no_proxy"), getenv("NO_PROXY")),
	}
	if p.HTTPS+p.HTTP == "" {
		return Proxies{}
	}
	return p
}

// Use puts p into this process's environment. Call it before anything connects. The zero value
// changes nothing. Its error is a *proposal.StopError.
func (p Proxies) Use() error {
	if p == (Proxies{}) {
		return nil
	}
	for name, value := range map[string]string{"https_proxy": p.HTTPS, "http_proxy": p.HTTP, "no_proxy": p.None} {
		if err := os.Setenv(name, value); err != nil {
			return &proposal.StopError{Code: "network.proxy", Message: "cannot use the proxies of the job", Err: err}
		}
	}
	return nil
}
